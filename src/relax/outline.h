// A nested sequence as a function of its own.
#pragma once

#include "relax/expr.h"

namespace lathe::relax {

// A variable replaced by an expression, by identity; struct info is kept where nothing else is known.
using Replacement = std::unordered_map<const ir::Node*, Expr>;
NodeRef replace_vars(NodeRef root, const Replacement& map);
template <class T>
Ref<T> replace_vars(Ref<T> root, const Replacement& map) {
  return ir::detail::narrow<T>(replace_vars(NodeRef(std::move(root)), map));
}

struct Outlined {
  Function function;           // private; its result is a tuple
  std::vector<Expr> captured;  // the arguments that follow `params`
};

// The sequence as a function of `params`, which it uses, and of what it uses without binding it: variables, in the
// order of their first use, then one shape of all symbols that no parameter's shape tells. Symbols keep their identity.
Outlined outline(const Expr& sequence, std::vector<Var> params);

}  // namespace lathe::relax
