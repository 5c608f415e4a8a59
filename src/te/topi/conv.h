// Convolutions over any number of spatial dimensions.
#pragma once

#include "te/topi/window.h"

namespace lathe::te::topi {

struct ConvOptions {
  Layout layout;                     // of x
  std::optional<Layout> out_layout;  // nothing: that of x
  std::vector<Window> windows;
  Expr out_channels;
  int64_t groups = 1;
  int64_t packed_channels = 0;  // 0: kernel [O, I, spatial…]; n: [ceil(O / n), spatial…, I, n], zero padded
  // Elements at the beginning and then at the end of each spatial axis of the padded x whose products may be left out;
  // empty: none.
  std::vector<int64_t> zero_border;
  ir::DType out_dtype, accumulate;
};
// The block "conv_pad" (where there is padding), then the reduction block "conv" with spatial axes in the order of the
// output and reduce axes rc, k0, k1, …. Channel c of a packed kernel is read as panel c // n, lane c % n.
Tensor conv(const Tensor& x, const Tensor& kernel, const std::vector<Expr>& shape, const ConvOptions& options);

}  // namespace lathe::te::topi
