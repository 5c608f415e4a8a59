// Softmax, what it divides by its sum, and its logarithm, along one axis, shifted by the largest element so that no
// exponential overflows. Floats narrower than float32 are computed in float32.
#include "ops/gradient/gradient.h"
#include "ops/rule.h"

namespace lathe::ops {

namespace {

Result<StructInfo> infer_along(const InferContext& c, int64_t axis) {
  TRY(relax::check_dtype(c, 0, DTypeSet::floating));
  const int64_t rank = c.tensor(0)->ndim;
  if (rank >= 0) TRY(relax::normalize_axis(c, axis, rank));
  return c.args[0]->struct_info;
}

Result<StructInfo> infer_softmax(const InferContext& c) { return infer_along(c, c.attrs<SoftmaxAttributes>().axis); }

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

// The largest element along the axis of each cell but this; a NaN need not be seen: its exponential is one, and so is
// their sum.
Tensor largest_along(const Tensor& x, size_t axis) {
  return along(
      x, axis, {x}, [&](const Indices& cell, const Indices&) { return x(cell); }, te::max_of_numbers, "softmax_max");
}

size_t axis_of(const Tensor& x, int64_t given) {
  return static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(x.ndim()) : given);
}

Indices without(Indices cell, size_t axis) {
  cell.erase(cell.begin() + static_cast<int64_t>(axis));
  return cell;
}

Expr difference(const Tensor& x, const Tensor& largest, const Indices& cell, size_t axis) {
  const DType wide = relax::accumulation_dtype(x.dtype());
  return ir::cast(wide, x(cell)) - ir::cast(wide, largest(without(cell, axis)));
}

// exp(power), power not above 0; what vanishes beside the largest term, which is 1, is 0.
Expr term_of(const Expr& power) {
  const DType wide = power->dtype;
  return ir::select(power < ir::constant(wide, vanishing(wide)), ir::constant(wide, 0.0),
                    ir::call(ir::intrinsic::exp_nonpositive, power));
}

// exp(scale (x - max)).
Tensor exponentials_of(const Tensor& x, const Tensor& largest, size_t axis, double scale) {
  const DType wide = relax::accumulation_dtype(x.dtype());
  return te::compute(
      x.shape(),
      [&](const Indices& i) {
        const Expr apart = difference(x, largest, i, axis);
        return term_of(scale == 1.0 ? apart : apart * ir::constant(wide, scale));
      },
      {x, largest}, "softmax_exp");
}

Tensor total_along(const Tensor& exponentials, size_t axis) {
  return along(
      exponentials, axis, {exponentials}, [&](const Indices& cell, const Indices&) { return exponentials(cell); },
      summed_along, "softmax_sum");
}

std::vector<Tensor> lower_softmax(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  const size_t axis = axis_of(x, c.attrs<SoftmaxAttributes>().axis);
  const DType wide = relax::accumulation_dtype(x.dtype());
  const Tensor exponentials = exponentials_of(x, largest_along(x, axis), axis, 1.0);
  const Tensor total = total_along(exponentials, axis);
  // One division for a row: the sum lies between 1 and the length, so its reciprocal loses half a unit and no more.
  return {te::compute(
      x.shape(),
      [&](const Indices& i) {
        const Expr share = ir::div(ir::constant(wide, 1.0), total(without(i, axis)));
        return ir::cast(x.dtype(), exponentials(i) * share);
      },
      {exponentials, total}, "softmax")};
}

std::vector<Tensor> lower_log_softmax(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  const size_t axis = axis_of(x, c.attrs<SoftmaxAttributes>().axis);
  const Tensor largest = largest_along(x, axis);
  const Tensor total = along(
      x, axis, {x, largest},
      [&](const Indices& cell, const Indices&) { return term_of(difference(x, largest, cell, axis)); }, summed_along,
      "softmax_sum");
  return {te::compute(
      x.shape(),
      [&](const Indices& i) {
        return ir::cast(x.dtype(),
                        difference(x, largest, i, axis) - ir::call(ir::intrinsic::log, total(without(i, axis))));
      },
      {x, largest, total}, "log_softmax")};
}

Result<StructInfo> infer_softmax_terms(const InferContext& c) {
  if (!(c.attrs<SoftmaxTermsAttributes>().scale > 0))
    return relax::wrong(codes::wrong_attribute, "the scale of nn.softmax_terms is not above 0");
  return infer_along(c, c.attrs<SoftmaxTermsAttributes>().axis);
}

std::vector<Tensor> lower_softmax_terms(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  const auto& attrs = c.attrs<SoftmaxTermsAttributes>();
  const size_t axis = axis_of(x, attrs.axis);
  return {te::topi::cast(exponentials_of(x, largest_along(x, axis), axis, attrs.scale), x.dtype(), "softmax_terms")};
}

}  // namespace

const Operator softmax{
    .name = "nn.softmax",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<SoftmaxAttributes>(),
    .infer = infer_softmax,
    .meaning = relax::TeExpression(lower_softmax),
    .fusion = FusionKind::reduction,
    .gradient = gradient_of_softmax,
    .reference = "scipy.special.softmax(x, axis=axis)",
};

const Operator softmax_terms{
    .name = "nn.softmax_terms",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<SoftmaxTermsAttributes>(),
    .infer = infer_softmax_terms,
    .meaning = relax::TeExpression(lower_softmax_terms),
    .fusion = FusionKind::reduction,
    .reference = "numpy.exp(scale * (x - x.max(axis, keepdims=True)))",
};

const Operator log_softmax{
    .name = "nn.log_softmax",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<SoftmaxAttributes>(),
    .infer = infer_softmax,
    .meaning = relax::TeExpression(lower_log_softmax),
    .fusion = FusionKind::reduction,
    .gradient = gradient_of_log_softmax,
    .reference = "scipy.special.log_softmax(x, axis=axis)",
};

}  // namespace lathe::ops
