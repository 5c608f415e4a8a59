// Convolutions of single pixels by themselves: products of the weights and the planes of an image. Values that are held
// as [batch, channels, pixels], of which nothing wants the channels last.
#pragma once

#include "graph/layout/forms.h"

namespace lathe::graph {

// Whether there are as many pixels as channels on either side: vectors run along the pixels then, and to copy these
// into panels takes less than two transpositions. With fewer the weights are what is read most.
bool fills_planes(const Shape& out, const Shape& kernel);

// The pixels that a convolution of single pixels reads, whose value is `var`, where its strides pass over others.
Result<Expr> met_pixels(Emitter& emitter, const Var& var, const Call& conv);

// What becomes of values that are held so: each gives what the value's variable is bound to.
class Planes {
 public:
  bool has_any(const std::vector<Expr>& operands) const;
  // The weights [outputs, inputs, 1…] times the image's planes.
  Result<Expr> product(Emitter& emitter, const Var& var, const Expr& weights, const Expr& image);
  // What is elementwise on planes, where its operands are one for a plane or one for a pixel; null where they are not.
  Result<Expr> elementwise(Emitter& emitter, const Var& var, const Operator& op, const Call& call);

 private:
  Result<Expr> held(Emitter& emitter, const Var& var, const Expr& value);

  std::unordered_map<const ir::Node*, Expr> planes_;  // of [batch, channels, spatial…]
};

}  // namespace lathe::graph
