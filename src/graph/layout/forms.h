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

inline Shape channels_last(const Shape& shape) {
  Shape result{shape[0]};
  result.insert(result.end(), shape.begin() + 2, shape.end());
  result.push_back(shape[1]);
  return result;
}

inline Result<Expr> reshaped(Emitter& emitter, const Expr& value, Shape shape) {
  return emitter.call(ops::reshape, {value, make<ShapeExpr>(std::move(shape))});
}

}  // namespace lathe::graph
