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

// Whether to remember what a walk made of a node. An expression such as x + x, repeated, holds few nodes and very many
// paths to them, so a walk must not enter a shared node each time; the lowest levels are walked anew quicker than
// looked up, and multiply the time by no more than a constant.
bool worth_remembering(const Node& n) { return n.depth() > 4 && !n.unique(); }

using NodeSet = std::unordered_set<const Node*>;

// As post_order and pre_order, but a shared node is visited once (where it is small, perhaps more often).
void post_order_once(const NodeRef& root, NodeSet& seen, detail::ChildVisitor visit) {
  if (!root || (worth_remembering(*root) && !seen.insert(root.get()).second)) return;
  root->node_class().for_each_child(*root, [&](const NodeRef& child) { post_order_once(child, seen, visit); });
  visit(root);
}
void pre_order_once(const NodeRef& root, NodeSet& seen, support::function_ref<bool(const NodeRef&)> visit) {
  if (!root || (worth_remembering(*root) && !seen.insert(root.get()).second) || !visit(root)) return;
  root->node_class().for_each_child(*root, [&](const NodeRef& child) { pre_order_once(child, seen, visit); });
}

// What shared nodes became; keeps them alive, so that no other node gets the address of one.
class Results {
 public:
  const NodeRef* find(const NodeRef& before) const {
    const auto it = results_.find(before);
    return it == results_.end() ? nullptr : &it->second;
  }
  NodeRef keep(NodeRef before, NodeRef after) { return results_[std::move(before)] = std::move(after); }

 private:
  std::unordered_map<NodeRef, NodeRef> results_;
};

// Nodes with identity (buffers) are rebuilt once, so that definition and uses stay one node.
class PostOrder : public Rewriter {
 public:
  explicit PostOrder(support::function_ref<NodeRef(NodeRef)> replace) : replace_(replace) {}

 protected:
  NodeRef visit(NodeRef node) override {
    const bool is_shared = node->node_class().family == ExprNode::family && worth_remembering(*node);
    if (!is_shared && !node->node_class().has_identity) return replace_(descend(std::move(node)));
    if (const NodeRef* done = results_.find(node)) return *done;
    return results_.keep(node, replace_(descend(node)));
  }

 private:
  support::function_ref<NodeRef(NodeRef)> replace_;
  Results results_;
};

// As in a PostOrder, nodes with identity are rebuilt once.
class Substitute : public Rewriter {
 public:
  explicit Substitute(const VarMap& map) : map_(map) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (!node->node_class().has_identity && !worth_remembering(*node)) return descend(std::move(node));
    if (const NodeRef* done = results_.find(node)) return *done;
    if (const auto* var = node.as<VarNode>()) {
      const auto it = map_.find(Var(var));
      return it == map_.end() ? node : NodeRef(it->second);
    }
    return results_.keep(node, descend(node));
  }

 private:
  const VarMap& map_;
  Results results_;
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
  NodeSet bound, seen, walked;
  std::vector<Var> free;
  post_order_once(root, walked, [&](const NodeRef& n) {
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
  walked.clear();
  post_order_once(root, walked, [&](const NodeRef& n) {
    if (const auto* v = n.as<VarNode>(); v && !bound.count(v) && seen.insert(v).second) free.push_back(Var(v));
  });
  return free;
}

Expr without_casts(Expr e) {
  while (const auto* converted = e.as<Cast>()) e = converted->value;
  return e;
}

bool uses_var(const NodeRef& root, const Var& var) {
  bool found = false;
  NodeSet walked;
  pre_order_once(root, walked, [&](const NodeRef& n) {
    found = found || n.get() == static_cast<const Node*>(var.get());
    return !found;
  });
  return found;
}

}  // namespace lathe::ir
