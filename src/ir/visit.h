// Walking and rewriting programs of either IR.
#pragma once

#include <functional>
#include <unordered_map>

#include "ir/expr.h"

namespace lathe::ir {

// Calls `visit` on every node, children before their parent; a shared node is visited each time it occurs.
void post_order(const NodeRef& root, support::function_ref<void(const NodeRef&)> visit);
// Calls `visit` on a node before its children, and descends where it returns true.
void pre_order(const NodeRef& root, support::function_ref<bool(const NodeRef&)> visit);

// Rewrites a program. A pass derives from it, handles the kinds it cares about in `visit`, and calls `descend` for the
// children. Results without an origin inherit the origin of what they replace.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  template <class T>
  Ref<T> operator()(Ref<T> handle) {
    if (!handle) return handle;
    return detail::narrow<T>(rewrite(NodeRef(std::move(handle))));
  }
  NodeRef operator()(NodeRef handle) { return handle ? rewrite(std::move(handle)) : handle; }

 protected:
  // What replaces `node`; the default rewrites its children.
  virtual NodeRef visit(NodeRef node) { return descend(std::move(node)); }
  NodeRef descend(NodeRef node) {
    return map_children(std::move(node), [this](NodeRef child) { return rewrite(std::move(child)); });
  }

 private:
  NodeRef rewrite(NodeRef node) {
    const Origin origin = node->origin();
    return with_origin(visit(std::move(node)), origin);
  }
};

// Rewrites bottom up: children first, then `replace` on the node. An expression that is shared may be replaced once and
// stay shared, so `replace` must depend on the node alone.
NodeRef rewrite_post_order(const NodeRef& root, support::function_ref<NodeRef(NodeRef)> replace);
template <class T>
Ref<T> rewrite_post_order(const Ref<T>& root, support::function_ref<NodeRef(NodeRef)> replace) {
  return detail::narrow<T>(rewrite_post_order(NodeRef(root), replace));
}

using VarMap = std::unordered_map<Var, Expr>;
// The expression or statement with variables replaced. Buffers whose shape, strides or data mention a replaced
// variable are replaced consistently by new ones.
NodeRef substitute(const NodeRef& root, const VarMap& map);
template <class T>
Ref<T> substitute(const Ref<T>& root, const VarMap& map) {
  return detail::narrow<T>(substitute(NodeRef(root), map));
}

// The variables used in `root` and not bound in it (by Let, loops, blocks, parameters), in order of first use.
std::vector<Var> free_vars(const NodeRef& root);
// Whether `var` occurs.
bool uses_var(const NodeRef& root, const Var& var);
// What conversions of dtype are made of.
Expr without_casts(Expr e);

}  // namespace lathe::ir
