// Tensor programs that do the same for each index of the first axis (the images of a batch), none of them needing
// another's.
#pragma once

#include <optional>

#include "tir/stmt.h"

namespace lathe::tir {

struct FewerRows {
  Function function;
  std::vector<bool> has_rows;  // of each buffer parameter: whether its first axis is the one meant
};

// `function` for `count` rows of the `rows` that it is for: what it computes, and of its parameters what is read row by
// row, has the shorter first axis; other parameters stay. Nothing where some row comes of another, or the body is no
// sequence of plain loops around blocks.
std::optional<FewerRows> with_fewer_rows(const PrimFunc& function, int64_t rows, int64_t count);

}  // namespace lathe::tir
