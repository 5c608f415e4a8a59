// Boxes of neighbouring elements that constant indices name, as x[2:5, :] = updates does where it is written out as
// indices.
#pragma once

#include "ops/build.h"

namespace lathe::ops::build {

// What is written of the first axes of a tensor: `sizes` elements from `starts` on.
struct Box {
  std::vector<int64_t> starts, sizes;
};

// The box that scattering by these indices writes, each element once and in the order of the updates; nothing where
// they are no constant, or name anything else.
std::optional<Box> box_of_elements(const Shape& x, const Value& indices, int64_t axis);
std::optional<Box> box_of_coordinates(const Shape& x, const Value& indices);

// x with the box replaced by `updates`, which has its shape but for axes of extent 1, and x's axes behind it.
Value with_box(BlockBuilder& b, const Value& x, const Box& box, const Value& updates);

}  // namespace lathe::ops::build
