// Small tensor programs that tests of several passes share.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir::testing {

// A block over `iters` (variable, extent, type) with values `values`; regions are whole buffers.
Stmt block(std::string name, std::vector<IterVar> iters, std::vector<Expr> values, Stmt body, Stmt init = {},
           Expr predicate = boolean(true));
IterVar iter(const Var& v, Expr extent, IterType type = IterType::spatial);
Stmt loop(const Var& v, Expr extent, Stmt body, ForKind kind = ForKind::serial);

// C[m, n] = sum over k of A[m, k] * B[k, n]; the loop over n is split by `tile` (with a guard where it does not
// divide), its inner part of kind `inner`, below the loop over k.
Function matmul(Expr m, Expr n, Expr k, int64_t tile, ForKind inner, DType dtype = DType::float32());
// B[i] = A[i - 1] + A[i] + A[i + 1] with zeros outside, where A = 2 * X through an intermediate buffer.
Function padded_stencil(int64_t n, ForKind kind);

}  // namespace lathe::tir::testing
