// Strides, pads, dilations and kernels of convolutions and pools.
#pragma once

#include "interchange/onnx/node.h"

namespace lathe::onnx::operators {

struct WindowAttributes {
  std::vector<int64_t> kernel, strides, dilations, pads;
  std::string auto_pad;
};
// Read from the node and checked: one value a spatial dimension, in a range that no arithmetic on shapes leaves.
// `kernel_shape` is required unless `kernel_optional`.
WindowAttributes read_windows(NodeImport& c, bool kernel_optional, bool has_dilations);

// The number of spatial dimensions of the input; at least one.
int64_t spatial_rank(NodeImport& c);

// The convolution of the node's `group` and windows; a bias, where there is one, has an element a channel.
Expr convolution(NodeImport& c, const Expr& x, const Expr& kernel, const Expr& bias);

}  // namespace lathe::onnx::operators
