// What composites that read and write by indices ask of them. Negative indices count from the end; what lies outside is
// clamped to the nearest inside.
#pragma once

#include "ops/composites/operands.h"

namespace lathe::ops::composites {

// Refused, or asked when the model runs: indices of a dimension without elements must themselves be without.
void expect_elements(const Expansion& e, const Expr& extent, const Shape& indices);
// Along one axis: indices of x's rank, nowhere larger than x but along the axis.
void expect_along(const Expansion& e, size_t data, size_t indices, int64_t axis);
// The width of the last dimension of tensor argument `indices`: coordinates of x's dimensions from `first` on.
size_t expect_coordinates(const Expansion& e, size_t indices, const Shape& own, size_t first);

// The integer tensors of an argument that is a tuple of them, or one alone.
std::vector<Value> index_tensors(const Expansion& e, size_t i, size_t rank);
// Their shape, broadcast together.
Shape index_shape(const Expansion& e, const std::vector<Value>& indices);

}  // namespace lathe::ops::composites
