#include "te/topi/matmul.h"

#include "support/mutation.h"
#include "te/topi/elementwise.h"

namespace lathe::te::topi {

LATHE_FAULT(te_matmul_panel, "ops_test", "matmul: the lanes of packed weights are off by one");

namespace {

// Element [batch…, row, column] of a matrix (or vector, by the one index it has) whose leading dimensions broadcast
// to the batch.
Expr matrix_load(const Tensor& x, const std::vector<Expr>& batch_shape, const std::vector<Expr>& batch,
                 std::vector<Expr> last) {
  std::vector<Expr> own;
  const size_t own_batch = x.ndim() - last.size();
  const size_t offset = batch_shape.size() - own_batch;
  for (size_t d = 0; d < own_batch; ++d)
    own.push_back(broadcast_index(x.shape()[d], batch_shape[offset + d], batch[offset + d]));
  own.insert(own.end(), last.begin(), last.end());
  return x(std::move(own));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const std::vector<Expr>& shape, const MatmulOptions& options) {
  const bool has_rows = a.ndim() > 1;
  const bool packed = options.packed_columns > 0;
  const bool has_columns = packed || b.ndim() > 1;
  const size_t batch_rank = shape.size() - (has_rows ? 1 : 0) - (has_columns ? 1 : 0);
  const std::vector<Expr> batch_shape(shape.begin(), shape.begin() + static_cast<int64_t>(batch_rank));
  const IterVar k = reduce_axis(ir::int64(0), a.shape().back(), "k");

  // The product at [batch…, (row), column…], b's element given.
  const auto product = [&](const std::vector<Expr>& i, const Expr& b_element) {
    std::vector<Expr> last;
    if (has_rows) last.push_back(i[batch_rank]);
    last.push_back(k->var);
    const std::vector<Expr> batch(i.begin(), i.begin() + static_cast<int64_t>(batch_rank));
    const Expr a_element = matrix_load(a, batch_shape, batch, std::move(last));
    return sum(ir::cast(options.accumulate, a_element) * ir::cast(options.accumulate, b_element), {k});
  };

  const Tensor result = compute(
      shape,
      [&](const std::vector<Expr>& i) {
        const std::vector<Expr> batch(i.begin(), i.begin() + static_cast<int64_t>(batch_rank));
        if (packed) {
          const Expr column = i.back(), lanes = ir::int64(options.packed_columns);
          const bool off = support::flip(te_matmul_panel);
          const Expr lane = ir::floormod(off ? column + 1 : column, lanes);
          return product(i, matrix_load(b, batch_shape, batch, {ir::floordiv(column, lanes), k->var, lane}));
        }
        std::vector<Expr> last{k->var};
        if (has_columns) last.push_back(i.back());
        return product(i, matrix_load(b, batch_shape, batch, std::move(last)));
      },
      {a, b}, "matmul");
  return cast(result, options.out_dtype, "matmul_cast");
}

}  // namespace lathe::te::topi
