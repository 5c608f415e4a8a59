// argmax, argmin: the int64 index of the extreme element along an axis; of equals the first, or the last. NaN is more
// extreme than any number.
#include "ops/rule.h"
#include "support/mutation.h"

namespace lathe::ops {

LATHE_FAULT(ops_arg_tie, "ops_test", "argmax: the last of equals instead of the first");

namespace {

Result<StructInfo> infer_arg_reduce(const InferContext& c) {
  TRY(relax::check_dtype(c, 0, DTypeSet::numeric));
  const TensorStructInfo& x = *c.tensor(0);
  const auto& a = c.attrs<ArgReduceAttributes>();
  if (x.ndim < 0) return relax::tensor_info_of_rank(-1, DType::int64());
  std::optional<Axes> one;
  if (a.axis) one = Axes{*a.axis};
  const Axes axes = TRY(relax::normalize_axes(c, one, x.ndim));
  if (!x.shape)
    return relax::tensor_info_of_rank(a.keepdims ? x.ndim : x.ndim - static_cast<int64_t>(axes.size()), DType::int64());
  for (const int64_t axis : axes)
    if (ir::is_int((*x.shape)[static_cast<size_t>(axis)], 0) &&
        !ir::is_int(ir::product(relax::reduced_shape(*x.shape, axes, true)), 0))
      return relax::wrong(codes::shape_mismatch, std::string(c.op.name) + " of " + relax::text_of(x) + " along axis " +
                                                     std::to_string(axis) + ": there is no element to choose");
  return relax::tensor_info(relax::reduced_shape(*x.shape, axes, a.keepdims), DType::int64());
}

Expr worst(DType dtype, bool largest) {
  const bool infinite = dtype.is_ieee_float() || dtype.is_bfloat16();
  if (infinite)
    return ir::constant(dtype,
                        largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
  return largest ? ir::min_value(dtype) : ir::max_value(dtype);
}

std::vector<Tensor> lower_arg_reduce(const LowerContext& c, bool largest) {
  const Tensor& x = c.tensor(0);
  const auto& a = c.attrs<ArgReduceAttributes>();
  const bool last = a.select_last_index != support::flip(ops_arg_tie);
  const DType dtype = x.dtype();
  // The identity loses every tie.
  const Expr no_index = ir::int64(last ? -1 : std::numeric_limits<int64_t>::max());
  const ir::CommReducer reducer = te::comm_reducer(
      [&](const Indices& l, const Indices& r) {
        const Expr earlier = last ? l[0] > r[0] : l[0] < r[0];
        const Expr better = largest ? l[1] > r[1] : l[1] < r[1];
        Expr same = ir::eq(l[1], r[1]);
        Expr left = better;
        if (dtype.is_floating()) {
          const Expr l_nan = ir::ne(l[1], l[1]), r_nan = ir::ne(r[1], r[1]);
          left = ir::logical_or(better, ir::logical_and(l_nan, ir::logical_not(r_nan)));
          same = ir::logical_or(same, ir::logical_and(l_nan, r_nan));
        }
        left = ir::logical_or(left, ir::logical_and(same, earlier));
        return Indices{ir::select(left, l[0], r[0]), ir::select(left, l[1], r[1])};
      },
      [&](const auto&) { return Indices{no_index, worst(dtype, largest)}; }, {DType::int64(), dtype});

  std::vector<bool> is_reduced(x.ndim(), !a.axis);
  if (a.axis) is_reduced[static_cast<size_t>(*a.axis < 0 ? *a.axis + static_cast<int64_t>(x.ndim()) : *a.axis)] = true;
  std::vector<te::IterVar> k;
  for (size_t d = 0; d < x.ndim(); ++d)
    if (is_reduced[d]) k.push_back(te::reduce_axis(ir::int64(0), x.shape()[d], "k" + std::to_string(d)));
  if (k.empty()) k.push_back(te::reduce_axis(ir::int64(0), ir::int64(1), "k"));  // a scalar

  const std::vector<Tensor> both = te::compute_all(
      *c.output().shape,
      [&](const Indices& i) {
        Indices cell;
        Expr index = ir::int64(0);
        size_t outer = 0, inner = 0;
        for (size_t d = 0; d < x.ndim(); ++d) {
          if (is_reduced[d]) {
            cell.push_back(k[inner++]->var);
            index = index * x.shape()[d] + cell.back();
            outer += a.keepdims;
          } else {
            cell.push_back(i[outer++]);
          }
        }
        const Indices sources{index, x(cell)};
        Indices bodies;
        for (const int64_t which : {0, 1}) bodies.push_back(ir::make<ir::Reduce>(reducer, k, sources, Expr{}, which));
        return bodies;
      },
      {x}, largest ? "argmax" : "argmin");
  return {both[0]};
}

}  // namespace

const Operator argmax{
    .name = "argmax",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<ArgReduceAttributes>(),
    .infer = infer_arg_reduce,
    .meaning = relax::TeExpression([](const LowerContext& c) { return lower_arg_reduce(c, true); }),
    .fusion = FusionKind::reduction,
    .reference = "numpy.argmax(x, axis, keepdims=keepdims)",
};

const Operator argmin{
    .name = "argmin",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<ArgReduceAttributes>(),
    .infer = infer_arg_reduce,
    .meaning = relax::TeExpression([](const LowerContext& c) { return lower_arg_reduce(c, false); }),
    .fusion = FusionKind::reduction,
    .reference = "numpy.argmin(x, axis, keepdims=keepdims)",
};

}  // namespace lathe::ops
