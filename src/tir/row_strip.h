// Tensor programs for some of their rows: the indices of the first axis that is longer than one.
#pragma once

#include <optional>
#include <unordered_map>

#include "tir/stmt.h"

namespace lathe::tir {

// Rows [begin, end).
struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  auto operator<=>(const RowRange&) const = default;
};

// The axis of a tensor's rows, behind axes of extent one. Nothing where there is none, or an extent up to it is no
// constant.
std::optional<size_t> row_axis(const std::vector<Expr>& shape);

// What it takes to compute some rows of a function's last parameter.
struct RowStrip {
  std::unordered_map<const ir::Node*, RowRange> buffers;  // those of which some rows do
  std::unordered_map<const ir::Node*, RowRange> iters;    // the variables of blocks that say which row
  std::unordered_map<const ir::Node*, RowRange> loops;    // over these
  std::vector<std::optional<RowRange>> params;            // of each buffer parameter; nothing: it is read whole
  // Each row comes of the same row of what is not read whole, and nothing else depends on which row it is.
  bool is_row_by_row = true;
};

// What the rows `wanted` of the last parameter take. Where rows of inputs overlap that different rows need, each strip
// computes them for itself. Nothing where the body is no sequence of plain nests, each of which computes one buffer,
// row by row, from what only the function's inputs are read whole of.
std::optional<RowStrip> find_strip(const PrimFunc& function, RowRange wanted);

// `function` for the rows of `strip` alone: what goes by rows has as many as are needed, and conditions that hold in
// all of them are gone.
Function with_strip(const PrimFunc& function, const RowStrip& strip);

}  // namespace lathe::tir
