#include "ir/conditions.h"

#include "ir/build.h"

namespace lathe::ir {

std::vector<Expr> conjuncts(const Expr& predicate) {
  std::vector<Expr> found, open;
  if (predicate) open.push_back(predicate);
  while (!open.empty()) {
    const Expr part = open.back();
    open.pop_back();
    if (const auto* both = part.as<And>()) {
      open.push_back(both->b);
      open.push_back(both->a);
    } else if (!is_int(part, 1)) {
      found.push_back(part);
    }
  }
  return found;
}

}  // namespace lathe::ir
