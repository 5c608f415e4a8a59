// How a reduction combines values.
#pragma once

#include <functional>

#include "schedule/program.h"

namespace lathe::schedule {

// C[i] = combine(C[i], value): an operation that may be regrouped and reordered.
struct Combination {
  const BufferStore* store = nullptr;
  Expr value;
  std::function<Expr(Expr, Expr)> combine;
  Expr identity;
};
std::optional<Combination> combination(const Block& block);

// The two sides of a sum, a product, a maximum or a minimum.
std::optional<std::pair<Expr, Expr>> sides_of(const NodeRef& e);

}  // namespace lathe::schedule
