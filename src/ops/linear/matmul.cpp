// matmul: NumPy's, for any ranks: leading dimensions broadcast, a vector is a row (left) or a column (right).
// Floats narrower than float32 are multiplied and summed in float32.
#include "te/topi/matmul.h"

#include "ops/attributes.h"
#include "ops/gradient/gradient.h"
#include "ops/operators.h"

namespace lathe::ops {

using relax::InferContext;
using relax::LowerContext;
using relax::Result;
using relax::Shape;
using relax::StructInfo;

namespace {

// b's shape as [batch…, K, N].
Result<Shape> logical_b(const InferContext& c, const Shape& b) {
  const auto& attributes = c.attrs<MatmulAttributes>();
  if (attributes.b_layout == "KN") return b;
  const int64_t lanes = packed_lanes(attributes.b_layout, "NK", "n");
  if (lanes == 0)
    return relax::wrong(relax::codes::wrong_attribute, "matmul has no b_layout '" + attributes.b_layout + "'");
  const int64_t tiles = (attributes.columns + lanes - 1) / lanes;
  const size_t batch = b.size() < 3 ? 0 : b.size() - 3;
  if (b.size() < 3 || !ir::is_int(b[batch], tiles) || !ir::is_int(b.back(), lanes))
    return relax::wrong(relax::codes::shape_mismatch, "b is " + relax::text_of(b) + ", but " +
                                                          std::to_string(attributes.columns) + " columns packed as " +
                                                          attributes.b_layout + " take [" + std::to_string(tiles) +
                                                          ", K, " + std::to_string(lanes) + "]");
  Shape logical(b.begin(), b.begin() + static_cast<ptrdiff_t>(batch));
  logical.push_back(b[batch + 1]);
  logical.push_back(ir::int64(attributes.columns));
  return logical;
}

Result<StructInfo> infer_matmul(const InferContext& c) {
  TRY(relax::check_dtype(c, 0, relax::DTypeSet::numeric));
  TRY(relax::check_same_dtype(c, 0, 1));
  const relax::TensorStructInfo &a = *c.tensor(0), &b = *c.tensor(1);
  const ir::DType chosen = c.attrs<MatmulAttributes>().out_dtype;
  const ir::DType dtype = chosen.is_void() ? a.dtype : chosen;
  if (a.ndim == 0 || b.ndim == 0)
    return relax::wrong(relax::codes::wrong_rank,
                        "matmul of " + relax::text_of(a) + " with " + relax::text_of(b) + ": a scalar has no rows");
  if (!a.shape || !b.shape) return relax::tensor_info_of_rank(-1, dtype);

  const Shape right = TRY(logical_b(c, *b.shape));
  const bool has_rows = a.ndim > 1, has_columns = right.size() > 1;
  const ir::Expr &k_left = a.shape->back(), &k_right = has_columns ? right[right.size() - 2] : right[0];
  if (!relax::may_be(k_left, k_right, c.assumptions))
    return relax::wrong(relax::codes::shape_mismatch,
                        "matmul of " + relax::text_of(a) + " with " + relax::text_of(right) + ": the inner extents " +
                            relax::text_of(k_left) + " and " + relax::text_of(k_right) + " differ");
  const Shape left_batch(a.shape->begin(), a.shape->end() - (has_rows ? 2 : 1));
  const Shape right_batch(right.begin(), right.end() - (has_columns ? 2 : 1));
  Shape shape = TRY(relax::broadcast_shapes(left_batch, right_batch, c.assumptions));
  if (has_rows) shape.push_back((*a.shape)[a.shape->size() - 2]);
  if (has_columns) shape.push_back(right.back());
  return relax::tensor_info(std::move(shape), dtype);
}

std::vector<te::Tensor> lower_matmul(const LowerContext& c) {
  const ir::DType dtype = c.output().dtype;
  return {te::topi::matmul(c.tensor(0), c.tensor(1), *c.output().shape,
                           {.out_dtype = dtype,
                            .accumulate = relax::accumulation_dtype(dtype),
                            .packed_columns = packed_lanes(c.attrs<MatmulAttributes>().b_layout, "NK", "n")})};
}

}  // namespace

const Operator matmul{
    .name = "matmul",
    .inputs = {{"a"}, {"b"}},
    .attributes = relax::attributes_of<MatmulAttributes>(),
    .infer = infer_matmul,
    .meaning = relax::TeExpression(lower_matmul),
    .fusion = relax::FusionKind::product,
    .gradient = gradient_of_matmul,
    .reference = "numpy.matmul(a, b)",
};

}  // namespace lathe::ops
