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

// The extreme first, then the least (or the largest) index of what equals it: two reductions that vectors can compute.
std::vector<Tensor> lower_arg_reduce(const LowerContext& c, bool largest) {
  const Tensor& x = c.tensor(0);
  const auto& a = c.attrs<ArgReduceAttributes>();
  const bool last = a.select_last_index != support::flip(ops_arg_tie);
  std::vector<bool> is_reduced(x.ndim(), !a.axis);
  if (a.axis) is_reduced[static_cast<size_t>(*a.axis < 0 ? *a.axis + static_cast<int64_t>(x.ndim()) : *a.axis)] = true;
  Expr count = ir::int64(1);
  for (size_t d = 0; d < x.ndim(); ++d)
    if (is_reduced[d]) count = count * x.shape()[d];
  const bool is_short =
      ir::as_int(count).value_or(std::numeric_limits<int64_t>::max()) <= std::numeric_limits<int32_t>::max();
  const DType index_dtype = is_short ? DType::int32() : DType::int64();

  // A reduction of f(cell of x, number of the cell among those reduced).
  const auto reduced = [&](const std::vector<Tensor>& in, bool takes_largest, const std::string& name,
                           const std::function<Expr(const Indices& i, const Indices& cell, const Expr& index)>& f) {
    std::vector<te::IterVar> k;
    for (size_t d = 0; d < x.ndim(); ++d)
      if (is_reduced[d]) k.push_back(te::reduce_axis(ir::int64(0), x.shape()[d], "k" + std::to_string(d)));
    if (k.empty()) k.push_back(te::reduce_axis(ir::int64(0), ir::int64(1), "k"));  // a scalar
    return te::compute(
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
          const Expr value = f(i, cell, index);
          return takes_largest ? te::max(value, k) : te::min(value, k);
        },
        in, name);
  };
  const std::string name = largest ? "argmax" : "argmin";
  const Tensor extreme =
      reduced({x}, largest, name + "_value", [&](const Indices&, const Indices& cell, const Expr&) { return x(cell); });
  const Expr none = ir::constant(index_dtype, last       ? -1
                                              : is_short ? std::numeric_limits<int32_t>::max()
                                                         : std::numeric_limits<int64_t>::max());
  const Tensor place =
      reduced({x, extreme}, last, name + "_place", [&](const Indices& i, const Indices& cell, const Expr& index) {
        const Expr value = x(cell);
        Expr is_it = ir::eq(value, extreme(i));
        // Where there is a NaN the extreme is one.
        if (x.dtype().is_floating()) is_it = ir::logical_or(is_it, ir::ne(value, value));
        return ir::select(is_it, ir::cast(index_dtype, index), none);
      });
  return {te::topi::cast(place, DType::int64(), name)};
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
