// An image [batch, channels, spatial…] in another order, and the same elements taken as another shape.
#pragma once

#include "graph/rewrite_bindings.h"
#include "ops/operators.h"

namespace lathe::graph {

using Shape = std::vector<ir::Expr>;

// Null where the shape is not known.
inline const Shape* shape_of(const Expr& e) {
  const auto* info = e ? as_tensor(e) : nullptr;
  return info && info->shape ? &*info->shape : nullptr;
}

// The shape of an image in another order, or with its pixels as one axis.
Shape channels_last(const Shape& shape);
inline ir::Expr pixels_of(const Shape& shape) { return ir::product(Shape(shape.begin() + 2, shape.end())); }
inline Shape rows_of(const Shape& shape) { return {shape[0], pixels_of(shape), shape[1]}; }
inline Shape planes_of(const Shape& shape) { return {shape[0], shape[1], pixels_of(shape)}; }
// The shape behind so many ones that it has `rank` extents.
Shape widened(const Shape& shape, size_t rank);

// Whether there is but one pixel: all orders are the same then.
bool is_pixel(const Shape& shape);
// Whether both are [batch, channels, spatial…] of the same batch, channels and number of pixels.
bool keeps_channels(const Shape& a, const Shape& b);
// Whether broadcasting to `out` repeats the tensor over all pixels or over none.
bool spans_pixels(const Shape& shape, const Shape& out);

// Where axis `axis` of [batch, channels, spatial…] is found with the channels last.
int64_t moved_axis(int64_t axis, size_t rank);
// The permutation that gives [batch, spatial…, channels] of an image, and the one that takes it back.
std::vector<int64_t> axes_to_last(size_t rank);
std::vector<int64_t> axes_to_first(size_t rank);

inline Result<Expr> reshaped(Emitter& emitter, const Expr& value, Shape shape) {
  return emitter.call(ops::reshape, {value, make<ShapeExpr>(std::move(shape))});
}

}  // namespace lathe::graph
