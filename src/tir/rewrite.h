// Rewriting tensor programs: a base for passes, fresh copies of statements, and folding of constants.
#pragma once

#include "ir/pass.h"
#include "ir/visit.h"
#include "tir/stmt.h"

namespace lathe::tir {

// A Rewriter that leaves variables and buffers alone and tells statements from expressions.
class TirRewriter : public Rewriter {
 protected:
  NodeRef visit(NodeRef node) final {
    if (node->node_class().has_identity) return node;
    if (node->node_class().family == StmtNode::family)
      return visit_stmt(Stmt(static_cast<const StmtNode*>(node.get())));
    if (node->node_class().family == ExprNode::family)
      return visit_expr(Expr(static_cast<const ExprNode*>(node.get())));
    return visit_other(std::move(node));
  }
  virtual Stmt visit_stmt(Stmt s) { return children(std::move(s)); }
  virtual Expr visit_expr(Expr e) { return children(std::move(e)); }
  // Regions, iteration variables and other parts of statements.
  virtual NodeRef visit_other(NodeRef node) { return descend(std::move(node)); }
  // The node with its children rewritten.
  template <class T>
  Ref<T> children(Ref<T> node) {
    return detail::narrow<T>(descend(NodeRef(std::move(node))));
  }
};

// Applies `change` to every tensor function of the module; DiagnosticErrors become the result.
support::Result<IRModule> on_each_function(IRModule module, support::function_ref<Function(const Function&)> change);
// As above, where only the body changes.
support::Result<IRModule> on_each_body(IRModule module, support::function_ref<Stmt(const Stmt&)> change);

// On the context's threads: each call gets the function's name and a context of its own, whose remarks are made in the
// order of the functions when all are done, and which asks about cancelling on the caller's thread alone (the answer
// may come from Python).
using FunctionChange = support::function_ref<Function(const std::string&, const Function&, const PassContext&)>;
support::Result<IRModule> on_each_function(IRModule module, const PassContext& context, FunctionChange change);
support::Result<IRModule> on_each_body(IRModule module, const PassContext& context,
                                       support::function_ref<Stmt(const Stmt&, const PassContext&)> change);

// Every variable that `s` defines: loop, block and let variables, allocated addresses.
std::vector<Var> defined_vars(const Stmt& s);
// `s` with `map` applied and every variable that it defines replaced by a new one, so that it can stand beside `s`.
Stmt fresh_copy(const Stmt& s, const VarMap& map = {});

// Constants folded, through the builders; cheap, for code that a rewrite just produced.
NodeRef fold_constants(const NodeRef& root);
template <class T>
Ref<T> fold_constants(const Ref<T>& root) {
  return detail::narrow<T>(fold_constants(NodeRef(root)));
}

// a + b and a * b of an index that may be a Ramp or Broadcast: ramps stay ramps.
Expr add_index(const Expr& a, const Expr& b);
Expr sub_index(const Expr& a, const Expr& b);
Expr mul_index(const Expr& a, const Expr& b);
// `e` in `lanes` lanes.
Expr widen(const Expr& e, int64_t lanes);

}  // namespace lathe::tir
