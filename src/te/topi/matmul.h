// Matrix products, batched and broadcasting.
#pragma once

#include "te/tensor.h"

namespace lathe::te::topi {

struct MatmulOptions {
  ir::DType out_dtype;
  ir::DType accumulate;        // the dtype of products and sums
  int64_t packed_columns = 0;  // 0: b is [batch…, K, N]; n: b is [batch…, ceil(N / n), K, n], zero padded
};
// a [batch…, M, K] times b, to `shape` = [broadcast batch…, M, N]. A one-dimensional a or b has no M or N, nor has
// the shape. One reduction block "matmul"; column c of a packed b is read as panel c // n, lane c % n.
Tensor matmul(const Tensor& a, const Tensor& b, const std::vector<Expr>& shape, const MatmulOptions& options);

}  // namespace lathe::te::topi
