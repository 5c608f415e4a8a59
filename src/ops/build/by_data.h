// Results whose size the values decide. A first program writes what is wanted and how much of it there is; the count
// is read when the model runs, as a symbolic extent, and later programs take that much.
#pragma once

#include "ops/build.h"

namespace lathe::ops::build {

// A fresh symbol for the integer in `count` (an int64 tensor of one element), read when the model runs.
Expr extent_at_run_time(BlockBuilder& b, const Value& count, const std::string& name);

// The coordinates of the elements that are not zero, in row-major order: int64 [rank, n]. NaN is not zero. Of a
// constant they are one, too.
Value nonzero(BlockBuilder& b, const Value& x);

// The different rows of x [n, m] and where they are, all int64. Rows are different where an element is; NaN counts as
// equal to NaN and as larger than any number.
struct UniqueRows {
  Value first;    // [u]: where each is met first
  Value inverse;  // [n]: the place of each row's equal among them
  Value counts;   // [u]
};
// In lexicographic order, or in order of where they are met first.
UniqueRows unique_rows(BlockBuilder& b, const Value& x, bool sorted);

// x's parts along the axis as rows: [extent of the axis, all else].
Value rows_along(BlockBuilder& b, const Value& x, int64_t axis);

// x[start:end:step] in every dimension, as NumPy means it; the numbers may be symbols. No step is 0.
Value slice_by(BlockBuilder& b, const Value& x, const Shape& starts, const Shape& ends, const Shape& steps);

// Boxes [batches, boxes, 4] by scores [batches, classes, boxes]: in each batch and class the best box that is left is
// taken, and those that overlap it more than the threshold are left out. int64 [n, 3] of batch, class, box.
struct BoxSelection {
  bool by_center = false;  // boxes are x, y of the centre, width, height; else y, x of two opposite corners
  Value most;              // int64, of one element: so many a class
  Value iou_threshold, score_threshold;  // of one element; a null score threshold takes every score
};
Value non_max_suppression(BlockBuilder& b, const Value& boxes, const Value& scores, const BoxSelection& how);

}  // namespace lathe::ops::build
