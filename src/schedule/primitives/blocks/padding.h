// A choice between a value inside and a constant outside, as padding writes it.
#pragma once

#include "schedule/primitives/rewrite.h"

namespace lathe::schedule::primitives {

struct Padding {
  Expr inside, value, constant;
};

// if_then_else(inside, value, constant), or a Select.
std::optional<Padding> padding_of(const Expr& e);

}  // namespace lathe::schedule::primitives
