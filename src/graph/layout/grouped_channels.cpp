#include "graph/layout/grouped_channels.h"

#include "graph/layout/forms.h"
#include "ops/attributes.h"
#include "ops/build.h"

namespace lathe::graph {

namespace {

const Shape& extents_of(const Expr& e) { return *shape_of(e); }

// [batch, 1, groups, 1] for each channel of a group.
Result<Expr> repeated(Emitter& emitter, const Expr& of_groups, int64_t channels) {
  const Shape& shape = extents_of(of_groups);
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
  const Shape& shape = extents_of(rows);
  const int64_t channels = *ir::as_int(shape[2]);
  const Expr of_channels = TRY(mean(emitter, rows, 1));
  const Expr parted =
      TRY(reshaped(emitter, of_channels, {shape[0], ir::int64(1), ir::int64(groups), ir::int64(channels / groups)}));
  return repeated(emitter, TRY(mean(emitter, parted, 3)), channels);
}

}  // namespace

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

Result<Expr> for_each_channel(Emitter& emitter, const Expr& operand, int64_t groups, int64_t channels) {
  const Shape& own = extents_of(operand);
  const ir::Expr batch = own.size() == 3 ? own[0] : ir::int64(1);
  const bool is_one = own.size() < 2 || ir::is_int(own[own.size() - 2], 1);
  if (is_one) return reshaped(emitter, operand, {batch, ir::int64(1), ir::int64(1)});
  const Expr parted = TRY(reshaped(emitter, operand, {batch, ir::int64(1), ir::int64(groups), ir::int64(1)}));
  return repeated(emitter, parted, channels);
}

}  // namespace lathe::graph
