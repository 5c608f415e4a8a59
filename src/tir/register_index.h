// What an index into a buffer of scope "register" may be.
#pragma once

#include "ir/expr.h"

namespace lathe::tir {

// Elements first, first + stride, …, so many as there are lanes; all of it constant.
struct RegisterIndex {
  int64_t first = 0, lanes = 1, stride = 1;
};

// The index as that; nothing where it is not constant, or does not walk upwards.
std::optional<RegisterIndex> register_index(const ir::Expr& index);

}  // namespace lathe::tir
