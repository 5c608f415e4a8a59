// Reductions over axes, and what is made of them.
#pragma once

#include "te/tensor.h"

namespace lathe::te::topi {

// Over `axes` (none: all; negative ones count from the last): "sum", "prod", "max", "min", "all" or "any".
// Diagnostics of all: te-shapes.
Tensor reduce(const std::string& kind, const Tensor& x, const std::vector<int64_t>& axes, bool keepdims);
// Where the largest (or smallest) element along an axis lies, the first of equals; as int32.
Tensor arg_extreme(const Tensor& x, int64_t axis, bool keepdims, bool largest);
// exp(x - max) / sum(exp(x - max)) along an axis, or its logarithm.
Tensor softmax(const Tensor& x, int64_t axis, bool logarithm);
// x [batch…, in] times weight [out, in], transposed, plus bias [out] where there is one.
Tensor dense(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias);
// a [batch…, m, k] times b [batch…, k, n], either of them transposed in its last two dimensions.
Tensor batch_product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b);

}  // namespace lathe::te::topi
