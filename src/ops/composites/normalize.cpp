// Normalisation: by the root mean square, by groups of channels, by instance.
// Narrow floats are computed in float32.
#include "ops/composites/windows.h"

namespace lathe::ops::composites {

namespace {

struct RmsNormAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "RmsNormAttributes";
  std::vector<int64_t> axes{-1};
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{field("axes", &RmsNormAttributes::axes), field("epsilon", &RmsNormAttributes::epsilon)};
  }
};

struct InstanceNormAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "InstanceNormAttributes";
  std::optional<int64_t> channel_axis;
  std::optional<std::vector<int64_t>> axes;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static constexpr auto fields() {
    return std::tuple{field("channel_axis", &InstanceNormAttributes::channel_axis),
                      field("axes", &InstanceNormAttributes::axes), field("epsilon", &InstanceNormAttributes::epsilon),
                      field("center", &InstanceNormAttributes::center), field("scale", &InstanceNormAttributes::scale)};
  }
};

struct GroupNormAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "GroupNormAttributes";
  std::optional<int64_t> num_groups, channel_axis;
  std::optional<std::vector<int64_t>> axes;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static constexpr auto fields() {
    return std::tuple{field("num_groups", &GroupNormAttributes::num_groups),
                      field("channel_axis", &GroupNormAttributes::channel_axis),
                      field("axes", &GroupNormAttributes::axes),
                      field("epsilon", &GroupNormAttributes::epsilon),
                      field("center", &GroupNormAttributes::center),
                      field("scale", &GroupNormAttributes::scale)};
  }
};

struct BatchNormOfParametersAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "BatchNormOfParametersAttributes";
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  double momentum = 0.1;
  bool training = true;
  static constexpr auto fields() {
    using Self = BatchNormOfParametersAttributes;
    return std::tuple{field("axis", &Self::axis),         field("epsilon", &Self::epsilon),
                      field("center", &Self::center),     field("scale", &Self::scale),
                      field("momentum", &Self::momentum), field("training", &Self::training)};
  }
};

const Value& floating_argument(const Expansion& e, size_t i, std::string_view name) {
  const Value& x = e.tensor(i);
  if (!relax::contains(DTypeSet::floating, build::dtype_of(x)))
    e.refuse(codes::dtype_not_supported,
             std::string(name) + " is of a floating dtype, not " + build::dtype_of(x).str());
  return x;
}

template <class T>
const T& given_attribute(const Expansion& e, std::string_view name, const std::optional<T>& value) {
  if (!value) e.refuse(codes::wrong_attribute, "the attribute '" + std::string(name) + "' is missing");
  return *value;
}

// The argument as [n, 1, …], to stand along `axis` of a tensor of that shape.
Value along_channels(const Expansion& e, size_t i, std::string_view name, const Shape& shape, size_t axis) {
  const Value& x = floating_argument(e, i, name);
  const Shape& own = build::shape_of(x);
  if (own.size() != 1 || relax::different_extents(own[0], shape[axis]))
    e.refuse(codes::shape_mismatch, std::string(name) + " has one number for each of " + relax::text_of(shape[axis]) +
                                        " channels, but its shape is " + relax::text_of(own));
  build::expect_equal(e.b, own[0], shape[axis]);
  Shape column{shape[axis]};
  column.resize(shape.size() - axis, ir::int64(1));
  return e.reshape(x, std::move(column));
}

// (x - mean) / sqrt(variance + epsilon)
Value centred_and_scaled(const Expansion& e, const Value& x, const Axes& axes, double epsilon) {
  const DType dtype = build::dtype_of(x);
  const Value mean = build::mean(e.b, x, axes), variance = build::variance(e.b, x, mean, axes);
  const Value spread = e.call(ops::sqrt, {e.call(ops::add, {variance, build::scalar(dtype, epsilon)})});
  return e.call(ops::divide, {e.call(ops::subtract, {x, mean}), spread});
}

// x * gamma + beta along the channels, as far as asked.
Value with_channel_parameters(const Expansion& e, Value y, int64_t channel_axis, bool scale, bool center) {
  const Shape shape = build::shape_of(y);
  const DType dtype = build::dtype_of(y);
  const auto at = static_cast<size_t>(channel_axis);
  const Value gamma = along_channels(e, 1, "gamma", shape, at), beta = along_channels(e, 2, "beta", shape, at);
  if (scale) y = e.call(ops::multiply, {y, e.cast(gamma, dtype)});
  if (center) y = e.call(ops::add, {y, e.cast(beta, dtype)});
  return y;
}

// The normalised data, and the moving mean and variance: as they are, or, in training, moved to those of the batch, by
// which the data is normalised then.
Value expand_batch_norm(const Expansion& e) {
  const auto& a = e.attrs<BatchNormOfParametersAttributes>();
  const Value& x = floating_argument(e, 0, "data");
  const DType dtype = build::dtype_of(x);
  const Shape own = build::shape_of(x);
  const auto channel = static_cast<size_t>(e.axis(a.axis, own.size()));
  for (const auto& [i, name] : {std::pair(1, "gamma"), {2, "beta"}, {3, "moving_mean"}, {4, "moving_var"}})
    along_channels(e, static_cast<size_t>(i), name, own, channel);
  std::array<Value, 2> used{e.tensor(3), e.tensor(4)}, given = used;  // mean, variance
  if (a.training) {
    Axes others;
    for (size_t d = 0; d < own.size(); ++d)
      if (d != channel) others.push_back(static_cast<int64_t>(d));
    const Value wide = e.cast(x, relax::accumulation_dtype(dtype));
    const Value mean = build::mean(e.b, wide, others);
    used = {mean, build::variance(e.b, wide, mean, others)};
    for (size_t k = 0; k < 2; ++k) {
      used[k] = e.reshape(used[k], {own[channel]});
      const DType kept = build::dtype_of(given[k]);
      const Value before = e.call(ops::multiply, {given[k], build::scalar(kept, 1 - a.momentum)});
      const Value now = e.call(ops::multiply, {e.cast(used[k], kept), build::scalar(kept, a.momentum)});
      given[k] = e.call(ops::add, {before, now});
    }
  }
  const Value gamma = a.scale ? e.tensor(1) : e.call("ones_like", {e.tensor(1)});
  const Value beta = a.center ? e.tensor(2) : e.call("zeros_like", {e.tensor(2)});
  const Value y = e.call(ops::batch_norm, {x, gamma, beta, used[0], used[1]},
                         ir::make<BatchNormAttributes>(static_cast<int64_t>(channel), a.epsilon));
  return e.tuple({y, given[0], given[1]});
}

Value expand_instance_norm(const Expansion& e) {
  const auto& a = e.attrs<InstanceNormAttributes>();
  const Value& x = floating_argument(e, 0, "data");
  const DType dtype = build::dtype_of(x);
  const size_t rank = build::shape_of(x).size();
  const int64_t channel = e.axis(given_attribute(e, "channel_axis", a.channel_axis), rank, "channel_axis");
  given_attribute(e, "axes", a.axes);
  const Axes axes = e.axes(a.axes, rank);
  if (std::count(axes.begin(), axes.end(), channel))
    e.refuse(codes::wrong_attribute, "axes names the channel axis " + std::to_string(channel) +
                                         ", whose elements are normalised by themselves");
  const Value y = centred_and_scaled(e, e.cast(x, relax::accumulation_dtype(dtype)), axes, a.epsilon);
  return e.cast(with_channel_parameters(e, y, channel, a.scale, a.center), dtype);
}

Value expand_group_norm(const Expansion& e) {
  const auto& a = e.attrs<GroupNormAttributes>();
  const Value& x = floating_argument(e, 0, "data");
  const DType dtype = build::dtype_of(x);
  const Shape own = build::shape_of(x);
  const int64_t groups = given_attribute(e, "num_groups", a.num_groups);
  const int64_t channel = e.axis(given_attribute(e, "channel_axis", a.channel_axis), own.size(), "channel_axis");
  given_attribute(e, "axes", a.axes);
  const Axes given = e.axes(a.axes, own.size());
  if (std::count(given.begin(), given.end(), channel))
    e.refuse(codes::wrong_attribute,
             "axes names the channel axis " + std::to_string(channel) + ", which the groups stand for already");
  const Expr channels = own[static_cast<size_t>(channel)];
  if (groups < 1) e.refuse(codes::wrong_attribute, "num_groups is " + std::to_string(groups) + ", but takes 1 or more");
  const Expr rest = relax::simplified(ir::floormod(channels, ir::int64(groups)));
  if (relax::different_extents(rest, ir::int64(0)))
    e.refuse(codes::shape_mismatch,
             relax::text_of(channels) + " channels cannot be divided into " + std::to_string(groups) + " groups");
  build::expect_equal(e.b, rest, ir::int64(0));

  // [… channels …] as [… groups, channels of a group …].
  Shape parted = own;
  parted[static_cast<size_t>(channel)] = ir::int64(groups);
  parted.insert(parted.begin() + channel + 1, relax::simplified(ir::floordiv(channels, ir::int64(groups))));
  Axes axes{channel + 1};
  for (const int64_t axis : given) axes.push_back(axis < channel ? axis : axis + 1);
  std::sort(axes.begin(), axes.end());
  const Value wide = e.reshape(e.cast(x, relax::accumulation_dtype(dtype)), parted);
  const Value y = e.reshape(centred_and_scaled(e, wide, axes, a.epsilon), own);
  return e.cast(with_channel_parameters(e, y, channel, a.scale, a.center), dtype);
}

// x / sqrt(mean of squares + epsilon) * weight. The weight has the dimensions that `axes` names, in that order.
Value expand_rms_norm(const Expansion& e) {
  const auto& a = e.attrs<RmsNormAttributes>();
  const Value &given = floating_argument(e, 0, "data"), &weight = floating_argument(e, 1, "weight");
  const DType dtype = build::dtype_of(given), wide = relax::accumulation_dtype(dtype);
  const Shape own = build::shape_of(given), parameters = build::shape_of(weight);
  const Axes axes = e.axes(a.axes, own.size());
  Axes order;  // of the weight's dimensions, to follow each other as those of x do
  for (const int64_t axis : axes)
    for (size_t k = 0; k < a.axes.size(); ++k)
      if (e.axis(a.axes[k], own.size()) == axis) order.push_back(static_cast<int64_t>(k));
  Shape normal, column(own.size(), ir::int64(1));
  for (const int64_t axis : a.axes) normal.push_back(own[static_cast<size_t>(e.axis(axis, own.size()))]);
  const auto refuse_weight = [&] {
    e.refuse(codes::shape_mismatch, "weight has the extents of the normalised axes, " + relax::text_of(normal) +
                                        ", but its shape is " + relax::text_of(parameters));
  };
  if (parameters.size() != normal.size()) refuse_weight();
  for (size_t k = 0; k < normal.size(); ++k) {
    if (relax::different_extents(parameters[k], normal[k])) refuse_weight();
    build::expect_equal(e.b, parameters[k], normal[k]);
  }
  for (const int64_t axis : axes) column[static_cast<size_t>(axis)] = own[static_cast<size_t>(axis)];
  const Value x = e.cast(given, wide);
  const Value squares = build::mean(e.b, e.call(ops::multiply, {x, x}), axes);
  const Value spread = e.call(ops::sqrt, {e.call(ops::add, {squares, build::scalar(wide, a.epsilon)})});
  const Value scales = e.reshape(e.permute(e.cast(weight, wide), order), column);
  return e.cast(e.call(ops::multiply, {e.call(ops::divide, {x, spread}), scales}), dtype);
}

}  // namespace

const Operator batch_norm_of_parameters =
    composite("nn.batch_norm", {{"data"}, {"gamma"}, {"beta"}, {"moving_mean"}, {"moving_var"}},
              relax::attributes_of<BatchNormOfParametersAttributes>(), expand_batch_norm,
              "((data - mean) / numpy.sqrt(var + epsilon) * gamma + beta, the moving mean, the moving variance)");
const Operator rms_norm =
    composite("nn.rms_norm", {{"data"}, {"weight"}}, relax::attributes_of<RmsNormAttributes>(), expand_rms_norm,
              "data / numpy.sqrt(numpy.mean(data * data, axis=axes, "
              "keepdims=True) + epsilon) * weight");
const Operator group_norm = composite("nn.group_norm", {{"data"}, {"gamma"}, {"beta"}},
                                      relax::attributes_of<GroupNormAttributes>(), expand_group_norm,
                                      "(g - g.mean(axes, keepdims=True)) / numpy.sqrt(g.var(axes, "
                                      "keepdims=True) + epsilon), g the groups of data");
const Operator instance_norm = composite("nn.instance_norm", {{"data"}, {"gamma"}, {"beta"}},
                                         relax::attributes_of<InstanceNormAttributes>(), expand_instance_norm,
                                         "(data - data.mean(axes, keepdims=True)) / numpy.sqrt(data.var(axes, "
                                         "keepdims=True) + epsilon) * gamma + beta");

}  // namespace lathe::ops::composites
