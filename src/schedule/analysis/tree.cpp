#include "schedule/analysis/tree.h"

#include "ir/visit.h"
#include "tir/rewrite.h"

namespace lathe::schedule {

void each_statement(const Stmt& root, support::function_ref<void(const Stmt&)> visit) {
  if (!root) return;
  visit(root);
  root->node_class().for_each_child(*root, [&](const NodeRef& child) {
    if (child->node_class().family == "stmt") each_statement(Stmt(static_cast<const StmtNode*>(child.get())), visit);
  });
}

namespace {

bool find(const Stmt& s, Id id, Path& path) {
  path.push_back(s);
  if (const auto* loop = s.as<For>(); loop && loop->id == id) return true;
  if (const auto* realize = s.as<BlockRealize>(); realize && realize->block->id == id) return true;
  bool found = false;
  s->node_class().for_each_child(*s, [&](const NodeRef& child) {
    if (!found && child->node_class().family == "stmt")
      found = find(Stmt(static_cast<const StmtNode*>(child.get())), id, path);
  });
  if (!found) path.pop_back();
  return found;
}

class Replacement : public Rewriter {
 public:
  explicit Replacement(const std::vector<std::pair<Stmt, Stmt>>& edits) : edits_(edits) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node->node_class().family != "stmt") return node;
    for (const auto& [target, replacement] : edits_)
      if (node.get() == static_cast<const Node*>(target.get())) return replacement;
    const Node* before = node.get();
    const NodeRef kept = node;
    NodeRef after = descend(std::move(node));
    if (after.get() == before) return after;
    if (const auto* sequence = after.as<SeqStmt>()) return seq(sequence->seq);
    if (const auto* loop = after.as<For>(); loop && is_nop(loop->body)) return nop();
    if (const auto* branch = after.as<IfThenElse>();
        branch && is_nop(branch->then_case) && (!branch->else_case || is_nop(branch->else_case)))
      return nop();
    return after;
  }

 private:
  const std::vector<std::pair<Stmt, Stmt>>& edits_;
};

}  // namespace

Path path_to(const Stmt& root, Id id) {
  Path path;
  if (root && id != 0) find(root, id, path);
  return path;
}

const For* find_loop(const PrimFunc& function, Id id) {
  const Path path = path_to(function.body, id);
  return path.empty() ? nullptr : path.back().as<For>();
}

const Block* find_block(const PrimFunc& function, Id id) {
  const Path path = path_to(function.body, id);
  const auto* realize = path.empty() ? nullptr : path.back().as<BlockRealize>();
  return realize ? realize->block.get() : nullptr;
}

std::vector<const For*> loops_above(const Path& path) {
  std::vector<const For*> loops;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    if (path[i].is<BlockRealize>()) loops.clear();
    if (const auto* loop = path[i].as<For>()) loops.push_back(loop);
  }
  return loops;
}

const BlockRealize* scope_of(const Path& path) {
  const BlockRealize* scope = nullptr;
  for (size_t i = 0; i + 1 < path.size(); ++i)
    if (const auto* realize = path[i].as<BlockRealize>()) scope = realize;
  return scope;
}

Stmt replace_all(const Stmt& root, const std::vector<std::pair<Stmt, Stmt>>& edits) { return Replacement(edits)(root); }

Stmt replace(const Stmt& root, const Stmt& target, const Stmt& replacement) {
  return replace_all(root, {{target, replacement}});
}

Function with_body(const Function& function, Stmt body) {
  return with(*function, [&](PrimFunc& copy) { copy.body = std::move(body); });
}

std::vector<Ref<BlockRealize>> outer_blocks(const Stmt& root) {
  std::vector<Ref<BlockRealize>> blocks;
  pre_order(root, [&](const NodeRef& n) {
    if (n->node_class().family != "stmt") return false;
    if (const auto* realize = n.as<BlockRealize>()) {
      blocks.emplace_back(realize);
      return false;
    }
    return true;
  });
  return blocks;
}

std::vector<Stmt> items(const Stmt& body) {
  if (const auto* sequence = body.as<SeqStmt>()) return sequence->seq;
  if (is_nop(body)) return {};
  return {body};
}

std::string name_of(const For& loop) { return "loop '" + loop.loop_var->name + "'"; }
std::string name_of(const Block& block) { return "block '" + block.name + "'"; }

Diagnostic refuse(const support::Code& code, std::string message) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.message = std::move(message);
  return diagnostic;
}

namespace {

class Duplicate : public Rewriter {
 public:
  Duplicate(Id& next, const std::string& suffix) : next_(next), suffix_(suffix) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node->node_class().has_identity) return node;
    node = descend(std::move(node));
    if (const auto* loop = node.as<For>()) return with(*loop, [&](For& copy) { copy.id = next_++; });
    if (const auto* block = node.as<Block>())
      return with(*block, [&](Block& copy) {
        copy.id = next_++;
        copy.name += suffix_;
      });
    return node;
  }

 private:
  Id& next_;
  const std::string& suffix_;
};

}  // namespace

Stmt duplicate(const Stmt& root, Id& next, const std::string& suffix) {
  // The memory and the views that it makes are its own, and so are the sizes that a view finds out.
  VarMap found_out;
  post_order(root, [&](const NodeRef& n) {
    const auto* match = n.as<MatchBufferRegionNode>();
    if (!match) return;
    std::vector<Expr> layout = match->buffer->strides;
    if (match->buffer->elem_offset) layout.push_back(match->buffer->elem_offset);
    for (const Expr& e : layout)
      if (const auto* symbol = e.as<VarNode>()) found_out.emplace(Var(symbol), with(*symbol, [](VarNode&) {}));
  });
  return Duplicate(next, suffix)(fresh_copy(root, found_out));
}

}  // namespace lathe::schedule
