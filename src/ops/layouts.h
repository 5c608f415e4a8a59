// Layouts of activations, by name.
#pragma once

#include "ops/rule.h"
#include "te/topi/window.h"

namespace lathe::ops {

// "NCHW" (channels second) or "NHWC" (channels last), for a tensor of that rank, which has at least one spatial
// dimension.
Result<te::topi::Layout> layout_of(const InferContext& c, const std::string& name, size_t rank);
Shape spatial_extents(const Shape& shape, const te::topi::Layout& layout);

}  // namespace lathe::ops
