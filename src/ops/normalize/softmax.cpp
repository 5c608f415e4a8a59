// Softmax and its logarithm along one axis, shifted by the largest element so that no exponential overflows. Floats
// narrower than float32 are computed in float32.
#include "ops/gradient/gradient.h"
#include "ops/rule.h"

namespace lathe::ops {

namespace {

Result<StructInfo> infer_softmax(const InferContext& c) {
  TRY(relax::check_dtype(c, 0, DTypeSet::floating));
  const int64_t rank = c.tensor(0)->ndim;
  if (rank >= 0) TRY(relax::normalize_axis(c, c.attrs<SoftmaxAttributes>().axis, rank));
  return c.args[0]->struct_info;
}

// The reduction of f(x at…) along the axis.
Tensor along(const Tensor& x, size_t axis, const std::vector<Tensor>& inputs,
             const std::function<Expr(const Indices& cell, const Indices& rest)>& f,
             Expr (*reduce)(Expr, std::vector<te::IterVar>), std::string name) {
  Shape shape = x.shape();
  shape.erase(shape.begin() + static_cast<int64_t>(axis));
  const te::IterVar k = te::reduce_axis(ir::int64(0), x.shape()[axis], "k");
  return te::compute(
      shape,
      [&](const Indices& i) {
        Indices cell = i;
        cell.insert(cell.begin() + static_cast<int64_t>(axis), k->var);
        return reduce(f(cell, i), {k});
      },
      inputs, std::move(name));
}

Expr summed_along(Expr x, std::vector<te::IterVar> axes) { return te::sum(std::move(x), std::move(axes)); }

// Terms so far below the largest, which is 1, are zero: no sum sees them, and numbers below the normal ones would take
// a processor a hundred times as long.
double vanishing(DType wide) { return wide.bits == 64 ? -690.0 : -80.0; }

// max; then exp(x - max) and their sum; then `finish` of element, maximum, exponential and sum.
std::vector<Tensor> lower_softmax(const LowerContext& c, bool logarithm) {
  const Tensor& x = c.tensor(0);
  const int64_t axis_given = c.attrs<SoftmaxAttributes>().axis;
  const auto axis = static_cast<size_t>(axis_given < 0 ? axis_given + static_cast<int64_t>(x.ndim()) : axis_given);
  const DType wide = relax::accumulation_dtype(x.dtype());
  const auto rest_of = [&](Indices cell) {
    cell.erase(cell.begin() + static_cast<int64_t>(axis));
    return cell;
  };

  // A NaN need not be seen here: its exponential is one, and so is their sum.
  const Tensor largest = along(
      x, axis, {x}, [&](const Indices& cell, const Indices&) { return x(cell); }, te::max_of_numbers, "softmax_max");
  const auto shifted = [&](const Indices& cell) {
    return ir::cast(wide, x(cell)) - ir::cast(wide, largest(rest_of(cell)));
  };
  if (logarithm) {
    const Tensor total = along(
        x, axis, {x, largest},
        [&](const Indices& cell, const Indices&) { return ir::call(ir::intrinsic::exp, shifted(cell)); }, summed_along,
        "softmax_sum");
    return {te::compute(
        x.shape(),
        [&](const Indices& i) {
          return ir::cast(x.dtype(), shifted(i) - ir::call(ir::intrinsic::log, total(rest_of(i))));
        },
        {x, largest, total}, "log_softmax")};
  }
  const Tensor exponentials = te::compute(
      x.shape(),
      [&](const Indices& i) {
        const Expr below = shifted(i), none = ir::constant(wide, 0.0);
        // It is not above 0, or it is a NaN. Said so, an exponential has no overflow to think of.
        const Expr power = ir::call(ir::intrinsic::exp, ir::select(below > none, none, below));
        return ir::select(below < ir::constant(wide, vanishing(wide)), none, power);
      },
      {x, largest}, "softmax_exp");
  const Tensor total = along(
      x, axis, {exponentials}, [&](const Indices& cell, const Indices&) { return exponentials(cell); }, summed_along,
      "softmax_sum");
  // One division for a row: the sum lies between 1 and the length, so its reciprocal loses half a unit and no more.
  return {te::compute(
      x.shape(),
      [&](const Indices& i) {
        const Expr share = ir::div(ir::constant(wide, 1.0), total(rest_of(i)));
        return ir::cast(x.dtype(), exponentials(i) * share);
      },
      {exponentials, total}, "softmax")};
}

}  // namespace

const Operator softmax{
    .name = "nn.softmax",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<SoftmaxAttributes>(),
    .infer = infer_softmax,
    .meaning = relax::TeExpression([](const LowerContext& c) { return lower_softmax(c, false); }),
    .fusion = FusionKind::reduction,
    .gradient = gradient_of_softmax,
    .reference = "scipy.special.softmax(x, axis=axis)",
};

const Operator log_softmax{
    .name = "nn.log_softmax",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<SoftmaxAttributes>(),
    .infer = infer_softmax,
    .meaning = relax::TeExpression([](const LowerContext& c) { return lower_softmax(c, true); }),
    .fusion = FusionKind::reduction,
    .gradient = gradient_of_log_softmax,
    .reference = "scipy.special.log_softmax(x, axis=axis)",
};

}  // namespace lathe::ops
