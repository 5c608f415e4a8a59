#include "graph/layout/grouped_channels.h"

#include "ops/attributes.h"
#include "ops/build.h"

namespace lathe::graph {

namespace {

// [batch, 1, groups, 1] for each channel of a group.
Result<Expr> repeated(Emitter& emitter, const Expr& of_groups, int64_t channels) {
  const Shape& shape = *shape_of(of_groups);
  const int64_t groups = *ir::as_int(shape[2]);
  const auto parted = make<ShapeExpr>(Shape{shape[0], ir::int64(1), shape[2], ir::int64(channels / groups)});
  const Expr each = TRY(emitter.call(ops::broadcast_to, {of_groups, parted}));
  return reshaped(emitter, each, {shape[0], ir::int64(1), ir::int64(channels)});
}

Result<Expr> mean(Emitter& emitter, const Expr& x, int64_t axis) {
  return emitter.call(ops::mean, {x}, make<ops::ReduceAttributes>(std::vector<int64_t>{axis}, true));
}

// The mean of a group's elements, for each of its channels: all channels have as many pixels.
Result<Expr> group_means(Emitter& emitter, const Expr& rows, int64_t groups) {
  const Shape& shape = *shape_of(rows);
  const int64_t channels = *ir::as_int(shape[2]);
  const Expr of_channels = TRY(mean(emitter, rows, 1));
  const Expr parted =
      TRY(reshaped(emitter, of_channels, {shape[0], ir::int64(1), ir::int64(groups), ir::int64(channels / groups)}));
  return repeated(emitter, TRY(mean(emitter, parted, 3)), channels);
}

// Each group of a batch element with mean 0 and variance 1, as layer normalisation over its elements gives: sums of
// each channel first, so that vectors run along the channels.
Result<Expr> normalized_groups(Emitter& emitter, const Expr& rows, int64_t groups, double epsilon) {
  const Expr means = TRY(group_means(emitter, rows, groups));
  // Twice, for the squares and for the result: to compute it costs less than to write it.
  const auto centred = [&]() { return emitter.call(ops::subtract, {rows, means}); };
  const Expr distance = TRY(centred());
  const Expr squares = TRY(emitter.call(ops::multiply, {distance, distance}));
  const Expr variance = TRY(group_means(emitter, squares, groups));
  const Expr spread = TRY(emitter.call(ops::add, {variance, ops::build::scalar(ir::DType::float32(), epsilon)}));
  const Expr scale = TRY(emitter.call(ops::rsqrt, {spread}));
  return emitter.call(ops::multiply, {TRY(centred()), scale});
}

// A tensor that broadcasts to [batch, groups, 1] as one for each channel: [batch or 1, 1, channels].
Result<Expr> for_each_channel(Emitter& emitter, const Expr& operand, int64_t groups, int64_t channels) {
  const Shape& own = *shape_of(operand);
  const ir::Expr batch = own.size() == 3 ? own[0] : ir::int64(1);
  const bool is_one = own.size() < 2 || ir::is_int(own[own.size() - 2], 1);
  if (is_one) return reshaped(emitter, operand, {batch, ir::int64(1), ir::int64(1)});
  const Expr parted = TRY(reshaped(emitter, operand, {batch, ir::int64(1), ir::int64(groups), ir::int64(1)}));
  return repeated(emitter, parted, channels);
}

}  // namespace

bool groups_channels(const Shape& source, const Shape& result) {
  const auto channels = ir::as_int(source[1]), groups = result.size() == 3 ? ir::as_int(result[1]) : std::nullopt;
  return channels && groups && *groups > 0 && *groups < *channels && *channels % *groups == 0 &&
         ir::structural_equal(source[0], result[0]);
}

Expr GroupedChannels::of(const Expr& value) const {
  const auto it = value ? rows_.find(value.get()) : rows_.end();
  return it == rows_.end() ? Expr() : it->second;
}

bool GroupedChannels::has_any(const std::vector<Expr>& operands) const {
  return std::any_of(operands.begin(), operands.end(), [&](const Expr& e) { return e && rows_.count(e.get()) > 0; });
}

Result<Expr> GroupedChannels::normalize(Emitter& emitter, const Var& var, const Expr& value, double epsilon) {
  const int64_t groups = *ir::as_int((*shape_of(var))[1]);
  hold(var, TRY(normalized_groups(emitter, of(value), groups, epsilon)));
  return Expr();
}

Result<Expr> GroupedChannels::elementwise(Emitter& emitter, const Var& var, const Operator& op, const Call& call) {
  const Shape& out = *shape_of(var);
  Expr whole;  // the rows of an operand that is not repeated
  for (const Expr& operand : call.args) {
    if (!operand || !as_tensor(operand)) continue;
    const Shape* shape = shape_of(operand);
    const Expr rows = of(operand);
    if (!shape || (!rows && !shape->empty() && !ir::is_int(shape->back(), 1))) return Expr();
    if (rows && relax::same_shape(*shape, out)) whole = rows;
  }
  if (!whole) return Expr();
  const int64_t groups = *ir::as_int(out[1]), channels = *ir::as_int(shape_of(whole)->back());
  std::vector<Expr> operands = call.args;
  for (Expr& operand : operands) {
    if (!operand || !as_tensor(operand) || shape_of(operand)->empty()) continue;
    const Expr rows = of(operand);
    operand = rows ? rows : TRY(for_each_channel(emitter, operand, groups, channels));
  }
  hold(var, emitter.emit(TRY(make_call(op, operands, call.attributes)), var->name + "_grouped"));
  return Expr();
}

}  // namespace lathe::graph
