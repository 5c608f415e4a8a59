#include "tir/analysis/loop_exits.h"

#include "ir/visit.h"

namespace lathe::tir {
namespace {

bool found(const NodeRef& node, support::function_ref<bool(const Stmt&)> wanted) {
  if (node->node_class().family != StmtNode::family || node.is<For>() || node.is<While>() || node.is<Block>())
    return false;
  if (node.is<Evaluate>()) return wanted(Stmt(static_cast<const StmtNode*>(node.get())));
  bool any = false;
  node->node_class().for_each_child(*node, [&](const NodeRef& child) { any = any || (child && found(child, wanted)); });
  return any;
}

}  // namespace

bool is_loop_exit(const Stmt& s, const Intrinsic& which) {
  const auto* evaluated = s.as<Evaluate>();
  const auto* call = evaluated ? evaluated->value.as<Call>() : nullptr;
  return call && call->op == &which;
}
bool is_loop_exit(const Stmt& s) {
  return is_loop_exit(s, intrinsic::break_loop) || is_loop_exit(s, intrinsic::continue_loop);
}

bool leaves_loops(const Stmt& s) {
  bool any = false;
  pre_order(s, [&](const NodeRef& node) {
    any = any || (node.is<Evaluate>() && is_loop_exit(Stmt(static_cast<const StmtNode*>(node.get()))));
    return !any && node->node_class().family != ExprNode::family;
  });
  return any;
}

bool has_loop_exits(const Stmt& body) {
  return found(body, [](const Stmt& s) { return is_loop_exit(s); });
}
bool has_loop_exits(const Stmt& body, const Intrinsic& which) {
  return found(body, [&](const Stmt& s) { return is_loop_exit(s, which); });
}

}  // namespace lathe::tir
