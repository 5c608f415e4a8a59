#include "ir/visit.h"

#include <unordered_set>

namespace lathe::ir {

void post_order(const NodeRef& root, support::function_ref<void(const NodeRef&)> visit) {
  if (!root) return;
  root->node_class().for_each_child(*root, [&](const NodeRef& child) { post_order(child, visit); });
  visit(root);
}

void pre_order(const NodeRef& root, support::function_ref<bool(const NodeRef&)> visit) {
  if (!root || !visit(root)) return;
  root->node_class().for_each_child(*root, [&](const NodeRef& child) { pre_order(child, visit); });
}

namespace {

class PostOrder : public Rewriter {
 public:
  explicit PostOrder(support::function_ref<NodeRef(NodeRef)> replace) : replace_(replace) {}

 protected:
  NodeRef visit(NodeRef node) override { return replace_(descend(std::move(node))); }

 private:
  support::function_ref<NodeRef(NodeRef)> replace_;
};

// Nodes with identity (buffers) are rebuilt once, so that definition and uses stay one node.
class Substitute : public Rewriter {
 public:
  explicit Substitute(const VarMap& map) : map_(map) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node->node_class().has_identity) {
      if (const auto it = done_.find(node.get()); it != done_.end()) return it->second;
      NodeRef original = node;
      NodeRef result;
      if (const auto* var = node.as<VarNode>()) {
        const auto it = map_.find(Var(var));
        result = it == map_.end() ? original : NodeRef(it->second);
      } else {
        result = descend(std::move(node));
      }
      kept_.push_back(original);
      return done_[original.get()] = result;
    }
    return descend(std::move(node));
  }

 private:
  const VarMap& map_;
  std::unordered_map<const Node*, NodeRef> done_;
  std::vector<NodeRef> kept_;
};

}  // namespace

NodeRef rewrite_post_order(const NodeRef& root, support::function_ref<NodeRef(NodeRef)> replace) {
  return PostOrder(replace)(root);
}

NodeRef substitute(const NodeRef& root, const VarMap& map) {
  if (map.empty() || !root) return root;
  return Substitute(map)(root);
}

std::vector<Var> free_vars(const NodeRef& root) {
  // A variable is bound once, by one node, so a first walk can collect all that are bound.
  std::unordered_set<const Node*> bound, seen;
  std::vector<Var> free;
  post_order(root, [&](const NodeRef& n) {
    if (const auto* let = n.as<Let>()) bound.insert(let->var.get());
    if (const auto* iter = n.as<IterVarNode>()) bound.insert(iter->var.get());
    if (const auto* combiner = n.as<CommReducerNode>()) {
      for (const Var& v : combiner->lhs) bound.insert(v.get());
      for (const Var& v : combiner->rhs) bound.insert(v.get());
    }
    if (n->node_class().family == "stmt" || n->node_class().family == "function")
      n->node_class().visit_fields(*n, [&](std::string_view name, const Value& value) {
        if (name != "loop_var" && name != "var" && name != "buffer_var" && name != "params") return;
        detail::each_child_in_value(value, [&](const NodeRef& v) { bound.insert(v.get()); });
      });
  });
  post_order(root, [&](const NodeRef& n) {
    if (const auto* v = n.as<VarNode>(); v && !bound.count(v) && seen.insert(v).second) free.push_back(Var(v));
  });
  return free;
}

bool uses_var(const NodeRef& root, const Var& var) {
  bool found = false;
  pre_order(root, [&](const NodeRef& n) {
    found = found || n.get() == static_cast<const Node*>(var.get());
    return !found;
  });
  return found;
}

}  // namespace lathe::ir
