// Windows that slide over the spatial dimensions of a convolution or pool.
#pragma once

#include "te/tensor.h"

namespace lathe::te::topi {

// The window in one spatial dimension. Position p covers the cells p * stride + k * dilation - pad_begin, k < kernel.
struct Window {
  int64_t stride = 1, dilation = 1;
  Expr kernel;
  Expr pad_begin, pad_end;

  Expr reach() const { return (kernel - 1) * dilation + 1; }
};

// Where the dimensions of an activation lie: [batch, channels, spatial…], or channels last.
struct Layout {
  bool channels_last = false;
  size_t rank = 4;

  size_t channel() const { return channels_last ? rank - 1 : 1; }
  size_t spatial(size_t d) const { return d + (channels_last ? 1 : 2); }
  size_t spatial_rank() const { return rank - 2; }
};

// x padded by `value` so that every window position of `positions` (the spatial extents of the output) lies inside;
// where positions were rounded up (`overruns`), the last may reach past the padding.
Tensor pad_for_windows(const Tensor& x, const Layout& layout, const std::vector<Window>& windows,
                       const std::vector<Expr>& positions, bool overruns, const Expr& value, std::string name);
// Reduce axes over the window's cells: k0, k1, ….
std::vector<IterVar> window_axes(const std::vector<Window>& windows);

}  // namespace lathe::te::topi
