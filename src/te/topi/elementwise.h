// Elementwise building blocks with NumPy's broadcasting.
#pragma once

#include "te/tensor.h"

namespace lathe::te::topi {

// Whether an extent is `whole`, but no more than a constant above one: min(n, 512), as of positions that a table has.
// Where the two are broadcast against each other they are equal: neither is 1 unless both are.
bool is_cut_of(const Expr& extent, const Expr& whole);

// The index into a dimension of `extent` that meets `index` of a broadcast dimension of `out_extent`.
Expr broadcast_index(const Expr& extent, const Expr& out_extent, const Expr& index);

// The element of `x` that meets output index `indices` of a tensor of `shape`: aligned at the last dimension, index 0
// where x's extent is 1.
Expr broadcast_load(const Tensor& x, const std::vector<Expr>& shape, const std::vector<Expr>& indices);

// f over the elements of `inputs`, broadcast to `shape`.
using Scalars = std::function<Expr(const std::vector<Expr>& values)>;
Tensor map(const std::vector<Tensor>& inputs, const std::vector<Expr>& shape, const Scalars& f, std::string name);
// f over one tensor.
Tensor map(const Tensor& input, const std::function<Expr(const Expr&)>& f, std::string name);
Tensor cast(const Tensor& input, ir::DType dtype, std::string name = "cast");  // the same tensor where it is of dtype

}  // namespace lathe::te::topi
