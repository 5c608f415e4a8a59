// Normalisation: nn.batch_norm_inference, nn.layer_norm. Floats narrower than float32 are computed in float32.
#include "ops/rule.h"

namespace lathe::ops {

namespace {

size_t axis_in(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

Result<StructInfo> infer_batch_norm(const InferContext& c) {
  TRY(relax::check_dtype(c, 0, DTypeSet::floating));
  const TensorStructInfo& x = *c.tensor(0);
  if (!x.shape) return c.args[0]->struct_info;
  const int64_t axis = TRY(relax::normalize_axis(c, c.attrs<BatchNormAttributes>().axis, x.ndim));
  const Expr& channels = (*x.shape)[static_cast<size_t>(axis)];
  for (size_t i = 1; i < 5; ++i) {
    TRY(relax::check_dtype(c, i, DTypeSet::floating));
    const TensorStructInfo& parameter = *c.tensor(i);
    if (parameter.shape && (parameter.ndim != 1 || !relax::may_be((*parameter.shape)[0], channels, c.assumptions)))
      return relax::wrong(codes::shape_mismatch, "'" + std::string(c.op.inputs[i].name) + "' of " +
                                                     std::string(c.op.name) + " is " + relax::text_of(parameter) +
                                                     ", but " + relax::text_of(x) + " has " + relax::text_of(channels) +
                                                     " channels");
  }
  return c.args[0]->struct_info;
}

// (x - mean) * (gamma / sqrt(variance + epsilon)) + beta
std::vector<Tensor> lower_batch_norm(const LowerContext& c) {
  const auto& a = c.attrs<BatchNormAttributes>();
  const Tensor &x = c.tensor(0), &gamma = c.tensor(1), &beta = c.tensor(2), &mean = c.tensor(3),
               &variance = c.tensor(4);
  const size_t axis = axis_in(a.axis, x.ndim());
  DType wide = relax::accumulation_dtype(x.dtype());
  for (const Tensor& parameter : {gamma, beta, mean, variance})
    if (parameter.dtype().bits > wide.bits) wide = parameter.dtype();
  const Tensor scale = te::compute(
      {x.shape()[axis]},
      [&](const Indices& i) {
        const Expr spread = ir::cast(wide, variance(i)) + ir::constant(wide, a.epsilon);
        return ir::div(ir::cast(wide, gamma(i)), ir::call(ir::intrinsic::sqrt, spread));
      },
      {gamma, variance}, "batch_norm_scale");
  return {te::compute(
      x.shape(),
      [&](const Indices& i) {
        const Indices channel{i[axis]};
        const Expr centred = ir::cast(wide, x(i)) - ir::cast(wide, mean(channel));
        return ir::cast(x.dtype(), centred * scale(channel) + ir::cast(wide, beta(channel)));
      },
      {x, mean, scale, beta}, "batch_norm")};
}

Result<StructInfo> infer_layer_norm(const InferContext& c) {
  TRY(relax::check_dtype(c, 0, DTypeSet::floating));
  const TensorStructInfo& x = *c.tensor(0);
  if (!x.shape) return c.args[0]->struct_info;
  const Axes axes = TRY(relax::normalize_axes(c, c.attrs<LayerNormAttributes>().axes, x.ndim));
  Shape normal;
  for (const int64_t axis : axes) normal.push_back((*x.shape)[static_cast<size_t>(axis)]);
  for (size_t i = 1; i < c.args.size(); ++i) {
    if (!c.args[i]) continue;
    TRY(relax::check_dtype(c, i, DTypeSet::floating));
    const TensorStructInfo& parameter = *c.tensor(i);
    if (parameter.shape && !relax::broadcasts_to(*parameter.shape, normal, c.assumptions))
      return relax::wrong(codes::cannot_broadcast, "'" + std::string(c.op.inputs[i].name) + "' of nn.layer_norm is " +
                                                       relax::text_of(parameter) + ", which does not broadcast to " +
                                                       relax::text_of(normal));
  }
  return c.args[0]->struct_info;
}

// Two passes over the data: the mean, then the mean square distance from it.
std::vector<Tensor> lower_layer_norm(const LowerContext& c) {
  const auto& a = c.attrs<LayerNormAttributes>();
  const Tensor& x = c.tensor(0);
  const DType wide = relax::accumulation_dtype(x.dtype());
  Axes axes;
  for (const int64_t axis : a.axes) axes.push_back(static_cast<int64_t>(axis_in(axis, x.ndim())));
  std::sort(axes.begin(), axes.end());
  Shape normal, rest;
  for (size_t d = 0; d < x.ndim(); ++d)
    (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end() ? rest : normal)
        .push_back(x.shape()[d]);
  const auto part = [&](const Indices& i, bool normalised) {
    Indices chosen;
    for (size_t d = 0; d < x.ndim(); ++d)
      if ((std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end()) == normalised)
        chosen.push_back(i[d]);
    return chosen;
  };
  const auto total = [&](const std::vector<Tensor>& inputs, const std::function<Expr(const Indices&)>& f,
                         std::string name) {
    std::vector<te::IterVar> k;
    for (size_t d = 0; d < normal.size(); ++d)
      k.push_back(te::reduce_axis(ir::int64(0), normal[d], "k" + std::to_string(d)));
    return te::compute(
        rest,
        [&](const Indices& i) {
          Indices cell;
          size_t outer = 0, inner = 0;
          for (size_t d = 0; d < x.ndim(); ++d) {
            const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
            cell.push_back(reduced ? Expr(k[inner++]->var) : i[outer++]);
          }
          return te::sum(f(cell), k);
        },
        inputs, std::move(name));
  };

  const Expr count = ir::cast(wide, ir::product(normal));
  const Tensor sum = total({x}, [&](const Indices& i) { return ir::cast(wide, x(i)); }, "layer_norm_sum");
  const auto centred = [&](const Indices& i) { return ir::cast(wide, x(i)) - ir::div(sum(part(i, false)), count); };
  const Tensor squares =
      total({x, sum}, [&](const Indices& i) { return centred(i) * centred(i); }, "layer_norm_squares");
  std::vector<Tensor> inputs{x, sum, squares};
  for (size_t i = 1; i < c.tensors.size(); ++i)
    if (c.tensors[i]) inputs.push_back(*c.tensors[i]);
  return {te::compute(
      x.shape(),
      [&](const Indices& i) {
        const Expr variance = ir::div(squares(part(i, false)), count);
        Expr y = ir::div(centred(i), ir::call(ir::intrinsic::sqrt, variance + ir::constant(wide, a.epsilon)));
        const Indices within = part(i, true);
        if (c.tensors.size() > 1 && c.tensors[1])
          y = y * ir::cast(wide, te::topi::broadcast_load(c.tensor(1), normal, within));
        if (c.tensors.size() > 2 && c.tensors[2])
          y = y + ir::cast(wide, te::topi::broadcast_load(c.tensor(2), normal, within));
        return ir::cast(x.dtype(), y);
      },
      inputs, "layer_norm")};
}

}  // namespace

// With stored statistics; the parameters are one number a channel.
const Operator batch_norm{
    .name = "nn.batch_norm_inference",
    .inputs = {{"x"}, {"gamma"}, {"beta"}, {"mean"}, {"variance"}},
    .attributes = relax::attributes_of<BatchNormAttributes>(),
    .infer = infer_batch_norm,
    .meaning = relax::TeExpression(lower_batch_norm),
    .fusion = FusionKind::broadcast,
    .reference = "(x - mean) / numpy.sqrt(variance + epsilon) * gamma + beta",
};

// Over `axes` together; gamma and beta broadcast to the extents of these axes.
const Operator layer_norm{
    .name = "nn.layer_norm",
    .inputs = {{"x"}, {"gamma", Input::optional}, {"beta", Input::optional}},
    .attributes = relax::attributes_of<LayerNormAttributes>(),
    .infer = infer_layer_norm,
    .meaning = relax::TeExpression(lower_layer_norm),
    .fusion = FusionKind::reduction,
    .reference = "(x - x.mean(axes)) / numpy.sqrt(x.var(axes) + epsilon) * gamma + beta",
};

}  // namespace lathe::ops
