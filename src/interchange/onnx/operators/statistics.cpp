// Normalisation by statistics that other operators name differently: of groups, of instances, by the root mean square,
// by a norm, across neighbouring channels.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

// [channels] as [channels, 1, …] under a tensor of that rank.
Expr as_column(NodeImport& c, const Expr& x, int64_t rank) {
  Shape shape = build::shape_of(x);
  for (int64_t d = 2; d < rank; ++d) shape.push_back(ir::int64(1));
  return c.reshape(x, std::move(shape));
}

// Channels in `groups` equal groups, each with mean 0 and variance 1, as [batch, groups, elements].
Expr groups_normalized(NodeImport& c, const Expr& x, const ir::Expr& groups, double epsilon) {
  const Shape own = build::shape_of(x);
  const ir::Expr rest =
      relax::simplified(ir::floordiv(ir::product(Shape(own.begin() + 1, own.end())), ir::max(groups, ir::int64(1))));
  const Expr folded = c.reshape(x, {own[0], groups, rest});
  return c.call(ops::layer_norm, {folded}, ir::make<ops::LayerNormAttributes>(std::vector<int64_t>{2}, epsilon));
}

// Each group times and plus its own of the second and third input.
Expr groups_scaled(NodeImport& c, const Expr& normal, const ir::Expr& groups) {
  const auto column = [&](size_t i) { return c.reshape(c.input(i), {groups, ir::int64(1)}); };
  return c.call(ops::add, {c.call(ops::multiply, {normal, column(1)}), column(2)});
}

void check_channels(NodeImport& c) {
  if (c.rank(0) < 2) c.fail(codes::wrong_node, "the input needs batch and channels");
}

void instance_normalization(NodeImport& c) {
  const double epsilon = c.attributes.number("epsilon", 1e-5f);
  check_channels(c);
  // Scaled while a plane of any size is one row: kernels know their rows then.
  const Shape own = c.shape(0);
  const Expr scaled = groups_scaled(c, groups_normalized(c, c.input(0), own[1], epsilon), own[1]);
  c.set(c.reshape(scaled, own));
}

// Scale and bias are one a group before opset 21, then one a channel.
void group_normalization(NodeImport& c) {
  const double epsilon = c.attributes.number("epsilon", 1e-5f);
  const int64_t groups = c.attributes.integer("num_groups");
  c.attributes.ignore("stash_type");  // sums are kept in float32 at least
  check_channels(c);
  if (groups < 1) c.fail(codes::wrong_attribute, "the attribute 'num_groups' is " + std::to_string(groups));
  const Shape own = c.shape(0);
  build::expect_equal(c.builder(), relax::simplified(ir::floormod(own[1], ir::int64(groups))), ir::int64(0));
  const Expr normal = groups_normalized(c, c.input(0), ir::int64(groups), epsilon);
  if (c.version >= 21) {
    const Expr scaled = c.call(ops::multiply, {c.reshape(normal, own), as_column(c, c.input(1), c.rank(0))});
    c.set(c.call(ops::add, {scaled, as_column(c, c.input(2), c.rank(0))}));
    return;
  }
  c.set(c.reshape(groups_scaled(c, normal, ir::int64(groups)), own));
}

// x / sqrt(mean(x^2) + epsilon) * scale, over the dimensions from `axis` on.
void rms_normalization(NodeImport& c) {
  const int64_t axis = c.axis(c.attributes.integer("axis", -1), c.rank(0));
  const double epsilon = c.attributes.number("epsilon", 1e-5f);
  DType wide =
      element_type(c.attributes.integer("stash_type", 1), "the attribute 'stash_type'", c.place()).value_or_throw();
  if (c.dtype(0).bits > wide.bits) wide = c.dtype(0);
  std::vector<int64_t> axes;
  for (int64_t d = axis; d < c.rank(0); ++d) axes.push_back(d);
  const Expr x = c.cast(c.input(0), wide);
  const Expr square = build::mean(c.builder(), c.call(ops::multiply, {x, x}), axes);
  const Expr root = c.call(ops::sqrt, {c.call(ops::add, {square, c.scalar(wide, epsilon)})});
  const Expr normal = c.cast(c.call(ops::divide, {x, root}), c.dtype(1));
  c.set(c.call(ops::multiply, {normal, c.input(1)}));
}

void mean_variance_normalization(NodeImport& c) {
  const std::vector<int64_t> axes =
      c.axes(c.attributes.integers("axes").value_or(std::vector<int64_t>{0, 2, 3}), c.rank(0));
  const DType dtype = c.dtype(0), wide = relax::accumulation_dtype(dtype);
  const Expr x = c.cast(c.input(0), wide), mean = build::mean(c.builder(), x, axes);
  const Expr deviation = c.call(ops::sqrt, {build::variance(c.builder(), x, mean, axes)});
  const Expr divisor = c.call(ops::add, {deviation, c.scalar(wide, 1e-9)});
  c.set(c.cast(c.call(ops::divide, {c.call(ops::subtract, {x, mean}), divisor}), dtype));
}

// x / norm along the axis; 0 where the norm is.
void lp_normalization(NodeImport& c) {
  const int64_t axis = c.axis(c.attributes.integer("axis", -1), c.rank(0)), p = c.attributes.integer("p", 2);
  if (p != 1 && p != 2) c.fail(codes::wrong_attribute, "the attribute 'p' is " + std::to_string(p) + ", not 1 or 2");
  const DType dtype = c.dtype(0), wide = relax::accumulation_dtype(dtype);
  const Expr x = c.cast(c.input(0), wide);
  const auto along = ir::make<ops::ReduceAttributes>(std::optional(std::vector<int64_t>{axis}), true);
  const Expr power = p == 1 ? c.call(ops::abs, {x}) : c.call(ops::multiply, {x, x});
  Expr norm = c.call(ops::sum, {power}, along);
  if (p == 2) norm = c.call(ops::sqrt, {norm});
  const Expr zero = c.scalar(wide, 0);
  c.set(c.cast(c.call(ops::where, {c.call(ops::equal, {norm, zero}), zero, c.call(ops::divide, {x, norm})}), dtype));
}

// base^exponent of a base that is not negative: of quarters by square roots, which cost a tenth.
ir::Expr power(const ir::Expr& base, double exponent) {
  const auto root = [](const ir::Expr& x) { return ir::call(ir::intrinsic::sqrt, x); };
  if (exponent == 0.25) return root(root(base));
  if (exponent == 0.5) return root(base);
  if (exponent == 0.75) return root(base) * root(root(base));
  if (exponent == 1) return base;
  return ir::call(base->dtype, ir::intrinsic::pow, {base, ir::constant(base->dtype, exponent)});
}

// x / (bias + alpha / size * sum of squares)^beta, summed over `size` channels about each. A sum of few is written out:
// without a reduction all axes of an image are one.
void local_response_normalization(NodeImport& c) {
  const int64_t size = c.attributes.integer("size");
  const double alpha = c.attributes.number("alpha", 1e-4f), beta = c.attributes.number("beta", 0.75),
               bias = c.attributes.number("bias", 1);
  check_channels(c);
  if (size < 1 || size > std::numeric_limits<int32_t>::max())
    c.fail(codes::wrong_attribute, "the attribute 'size' is " + std::to_string(size));
  const Shape shape = c.shape(0);
  const DType dtype = c.dtype(0), wide = relax::accumulation_dtype(dtype);
  constexpr int64_t few = 16;
  const auto square = [&](const te::Tensor& x, std::vector<ir::Expr> at, const ir::Expr& k) {
    at[1] = at[1] + k - (size - 1) / 2;
    const ir::Expr inside = ir::logical_and(at[1] >= 0, at[1] < shape[1]);
    const ir::Expr value = ir::cast(wide, x(std::move(at)));
    return ir::if_then_else(inside, value * value, ir::constant(wide, 0));
  };
  const auto normalized = [&](const te::Tensor& x, const std::vector<ir::Expr>& i, const ir::Expr& sum) {
    const ir::Expr base = ir::constant(wide, bias) + ir::constant(wide, alpha / static_cast<double>(size)) * sum;
    const ir::Expr divisor = bias >= 0 && alpha >= 0
                                 ? power(base, beta)
                                 : ir::call(wide, ir::intrinsic::pow, {base, ir::constant(wide, beta)});
    return ir::cast(dtype, ir::div(ir::cast(wide, x(i)), divisor));
  };
  const auto make = [&](const std::vector<te::Tensor>& in) {
    const te::Tensor& x = in[0];
    if (size <= few)
      return std::vector{te::compute(
          shape,
          [&](const std::vector<ir::Expr>& i) {
            ir::Expr sum = square(x, i, ir::int64(0));
            for (int64_t k = 1; k < size; ++k) sum = sum + square(x, i, ir::int64(k));
            return normalized(x, i, sum);
          },
          in, "response_normalization")};
    const te::IterVar k = te::reduce_axis(ir::int64(0), ir::int64(size), "k");
    const te::Tensor sums = te::compute(
        shape, [&](const std::vector<ir::Expr>& i) { return te::sum(square(x, i, k->var), {k}); }, in, "square_sums");
    return std::vector{te::compute(
        shape, [&](const std::vector<ir::Expr>& i) { return normalized(x, i, sums(i)); }, {x, sums},
        "response_normalization")};
  };
  c.set(c.builder().call_te("response_normalization", {c.input(0)}, make).value_or_throw());
}

const OperatorRow statistics_rows[] = {
    {"InstanceNormalization", {6, 22}, 3, 3, 1, instance_normalization},
    {"GroupNormalization", {18, 21}, 3, 3, 1, group_normalization},
    {"RMSNormalization", {23}, 2, 2, 1, rms_normalization},
    {"MeanVarianceNormalization", {9, 13}, 1, 1, 1, mean_variance_normalization},
    {"LpNormalization", {1, 22}, 1, 1, 1, lp_normalization},
    {"LRN", {1, 13}, 1, 1, 1, local_response_normalization},
};

}  // namespace

Table statistics() { return statistics_rows; }

}  // namespace lathe::onnx::operators
