// Tensor programs that do the same for each index of the first axis (the images of a batch), none of them needing
// another's.
#pragma once

#include <optional>
#include <unordered_set>

#include "tir/stmt.h"

namespace lathe::tir {

// What of a function goes by its rows.
struct RowWise {
  std::unordered_set<const ir::Node*> buffers;  // their first axis is the rows
  std::unordered_set<const ir::Node*> loops;    // over the rows
  std::unordered_set<const ir::Node*> iters;    // the variables of blocks that say which row
  std::vector<bool> params;                     // of each buffer parameter: whether it is among `buffers`
};

// What goes by the `rows` rows of what `function` computes. Nothing where some row comes of another, or the body is no
// sequence of plain nests.
std::optional<RowWise> find_rows(const PrimFunc& function, int64_t rows);

// `function` for `count` rows: what goes by rows has the shorter first axis, other parameters stay.
Function with_fewer_rows(const PrimFunc& function, const RowWise& by_row, int64_t count);

}  // namespace lathe::tir
