// A choice between a value inside and another outside, as padding writes it.
#pragma once

#include "schedule/primitives/rewrite.h"

namespace lathe::schedule::primitives {

struct Padding {
  Expr inside, value, outside;
};

// if_then_else(inside, value, outside), or a Select.
std::optional<Padding> padding_of(const Expr& e);
// The same where what is outside is a constant.
std::optional<Padding> constant_padding_of(const Expr& e);

}  // namespace lathe::schedule::primitives
