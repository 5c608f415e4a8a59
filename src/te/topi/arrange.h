// Tensors whose elements are another's in other places.
#pragma once

#include "te/tensor.h"

namespace lathe::te::topi {

// Axes count from the last where they are negative. Diagnostics of all: te-shapes.
Tensor transpose(const Tensor& x, const std::vector<int64_t>& axes);  // none: all, the other way round
Tensor reshape(const Tensor& x, std::vector<Expr> shape);             // one extent may be -1; row-major
Tensor expand_dims(const Tensor& x, int64_t axis, int64_t count);
Tensor squeeze(const Tensor& x, const std::vector<int64_t>& axes);  // none: every dimension of extent 1
Tensor broadcast_to(const Tensor& x, const std::vector<Expr>& shape);
Tensor flip(const Tensor& x, int64_t axis);
Tensor concatenate(const std::vector<Tensor>& tensors, int64_t axis);
Tensor stack(const std::vector<Tensor>& tensors, int64_t axis);
// x at `indices` along an axis, which are clipped to it.
Tensor take(const Tensor& x, const Tensor& indices, int64_t axis);
// From begin to end by strides, for leading dimensions; bounds as Python's slices have them. Extents are constants.
Tensor strided_slice(const Tensor& x, const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                     const std::vector<int64_t>& strides);

// The axis counted from the first.
size_t axis_of(int64_t axis, size_t rank);

}  // namespace lathe::te::topi
