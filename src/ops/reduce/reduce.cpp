// Reductions over axes. Sums, products and means of floats narrower than float32 are accumulated in float32. Of no
// element the sum is 0, the product 1, the largest and smallest the reducer's identity, the mean NaN (0 for integers).
#include "ops/gradient/gradient.h"
#include "ops/rule.h"
#include "support/mutation.h"

namespace lathe::ops {

LATHE_FAULT(ops_mean_count, "ops_test", "mean: divides by one element too many");

namespace {

Result<StructInfo> infer_reduction(const InferContext& c, DTypeSet dtypes) {
  TRY(relax::check_dtype(c, 0, dtypes));
  const TensorStructInfo& x = *c.tensor(0);
  const auto& a = c.attrs<ReduceAttributes>();
  if (x.ndim < 0) return relax::tensor_info_of_rank(-1, x.dtype);
  const Axes axes = TRY(relax::normalize_axes(c, a.axis, x.ndim));
  if (!x.shape)
    return relax::tensor_info_of_rank(a.keepdims ? x.ndim : x.ndim - static_cast<int64_t>(axes.size()), x.dtype);
  return relax::tensor_info(relax::reduced_shape(*x.shape, axes, a.keepdims), x.dtype);
}

using Reducer = Expr (*)(Expr, std::vector<te::IterVar>);

// The reduction of x in dtype `wide`; the count of elements reduced goes to `count`.
Tensor reduced(const LowerContext& c, Reducer reducer, DType wide, const std::string& name, Expr* count = nullptr) {
  const Tensor& x = c.tensor(0);
  const auto& a = c.attrs<ReduceAttributes>();
  std::vector<bool> is_reduced(x.ndim(), !a.axis);
  if (a.axis)
    for (const int64_t axis : *a.axis)
      is_reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.ndim()) : axis)] = true;
  std::vector<te::IterVar> k;
  Shape extents;
  for (size_t d = 0; d < x.ndim(); ++d) {
    if (!is_reduced[d]) continue;
    k.push_back(te::reduce_axis(ir::int64(0), x.shape()[d], "k" + std::to_string(d)));
    extents.push_back(x.shape()[d]);
  }
  if (count) *count = ir::product(extents);
  return te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        Indices cell;
        size_t outer = 0, inner = 0;
        for (size_t d = 0; d < x.ndim(); ++d) {
          cell.push_back(is_reduced[d] ? Expr(k[inner++]->var) : i[outer]);
          if (!is_reduced[d] || a.keepdims) ++outer;
        }
        const Expr element = ir::cast(wide, x(std::move(cell)));
        return k.empty() ? element : reducer(element, k);
      },
      {x}, name);
}

Expr summed(Expr x, std::vector<te::IterVar> axes) { return te::sum(std::move(x), std::move(axes)); }

Operator reduction(std::string_view name, DTypeSet dtypes, Reducer reducer, bool accumulates,
                   std::string_view reference, relax::Gradient gradient = {}) {
  return {.name = name,
          .inputs = {{"x"}},
          .attributes = relax::attributes_of<ReduceAttributes>(),
          .infer = [dtypes](const InferContext& c) { return infer_reduction(c, dtypes); },
          .meaning = relax::TeExpression([name, reducer, accumulates](const LowerContext& c) {
            const DType dtype = c.tensor(0).dtype();
            const DType wide = accumulates ? relax::accumulation_dtype(dtype) : dtype;
            const Tensor result = reduced(c, reducer, wide, std::string(name));
            return std::vector{te::topi::cast(result, dtype, std::string(name) + "_cast")};
          }),
          .fusion = FusionKind::reduction,
          .gradient = std::move(gradient),
          .reference = reference};
}

std::vector<Tensor> lower_mean(const LowerContext& c) {
  const DType dtype = c.tensor(0).dtype(), wide = relax::accumulation_dtype(dtype);
  Expr count;
  const Tensor total = reduced(c, summed, wide, "mean_sum", &count);
  if (!dtype.is_floating()) count = ir::max(count, ir::int64(1));
  if (support::flip(ops_mean_count)) count = count + 1;
  return {
      te::topi::map(total, [&](const Expr& x) { return ir::cast(dtype, ir::div(x, ir::cast(wide, count))); }, "mean")};
}

}  // namespace

const Operator sum =
    reduction("sum", DTypeSet::numeric, summed, true, "numpy.sum(x, axis, keepdims=keepdims)", gradient_of_sum);
const Operator prod = reduction("prod", DTypeSet::numeric, te::prod, true, "numpy.prod(x, axis, keepdims=keepdims)");
// NaN wins; of bool, or and and.
const Operator max = reduction("max", DTypeSet::any, te::max, false, "numpy.max(x, axis, keepdims=keepdims)");
const Operator min = reduction("min", DTypeSet::any, te::min, false, "numpy.min(x, axis, keepdims=keepdims)");

const Operator mean{
    .name = "mean",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<ReduceAttributes>(),
    .infer = [](const InferContext& c) { return infer_reduction(c, DTypeSet::numeric); },
    .meaning = relax::TeExpression(lower_mean),
    .fusion = FusionKind::reduction,
    .reference = "numpy.mean(x, axis, keepdims=keepdims)",
};

}  // namespace lathe::ops
