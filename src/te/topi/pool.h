// Pooling over any number of spatial dimensions. Outputs have `shape`, in the input's layout.
#pragma once

#include "te/topi/window.h"

namespace lathe::te::topi {

struct PoolOptions {
  Layout layout;
  std::vector<Window> windows;
  bool ceil_mode = false;  // positions were rounded up
};
// The largest element of each window; padding never wins, NaN always does.
Tensor max_pool(const Tensor& x, const std::vector<Expr>& shape, const PoolOptions& options);
// Besides, where it lies: its row-major index in x (int64; the first of equals).
std::vector<Tensor> max_pool_with_indices(const Tensor& x, const std::vector<Expr>& shape, const PoolOptions& options);
// The mean of each window: over the cells of x in it, or, with `count_include_pad`, over its cells of x and padding
// (but not those past the padding, which ceil_mode may bring).
Tensor avg_pool(const Tensor& x, const std::vector<Expr>& shape, const PoolOptions& options, bool count_include_pad,
                ir::DType accumulate);

}  // namespace lathe::te::topi
