// Integers and narrow floats that stand for floats: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and
// products and convolutions of such.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/convert.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/operators/windows.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

// A vector that is one for all or one along the dimension `at`, as the run tells: [extent, 1, …].
Expr spread_open(NodeImport& c, const Shape& own, const Expr& parameter, size_t at) {
  const ir::Expr given = build::shape_of(parameter)[0], is_one = ir::eq(given, ir::int64(1));
  build::expect_equal(c.builder(), relax::simplified(ir::select(is_one, own[at], given)), own[at]);
  Shape shape{own[at]};
  for (size_t d = at + 1; d < own.size(); ++d) shape.push_back(ir::int64(1));
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape, [&](const std::vector<ir::Expr>& i) { return in[0]({te::topi::broadcast_index(given, own[at], i[0])}); },
        in, "spread")};
  };
  return c.builder().call_te("spread", {parameter}, make).value_or_throw();
}

// The scale or zero point seen at each element of x: one for all, one along `axis`, or one a block of it.
Expr spread(NodeImport& c, const Expr& x, Expr parameter, int64_t axis, int64_t block) {
  const Shape &own = build::shape_of(x), &given = build::shape_of(parameter);
  if (given.empty()) return parameter;
  if (given.size() == 1 && block == 0) {
    if (ir::is_int(given[0], 1)) return c.reshape(parameter, {});
    const auto rank = static_cast<int64_t>(own.size());
    if (!ir::as_int(given[0]) && (axis < -rank || axis >= rank))  // no axis: it can only be one for all
      return c.reshape(c.with_extent(parameter, 0, 1), {});
    const int64_t at = c.axis(axis, rank);
    if (!ir::as_int(given[0]) && !relax::same_extent(given[0], own[static_cast<size_t>(at)]))
      return spread_open(c, own, parameter, static_cast<size_t>(at));
    build::expect_equal(c.builder(), given[0], own[static_cast<size_t>(at)]);
    Shape shape{given[0]};
    for (size_t d = static_cast<size_t>(at) + 1; d < own.size(); ++d) shape.push_back(ir::int64(1));
    return c.reshape(parameter, std::move(shape));
  }
  const auto at = static_cast<size_t>(c.axis(axis, static_cast<int64_t>(own.size())));
  if (block < 1 || given.size() != own.size())
    c.fail(codes::wrong_node, "scales of " + relax::text_of(given) + " in blocks of " + std::to_string(block) +
                                  " do not fit " + relax::text_of(own));
  for (size_t d = 0; d < own.size(); ++d)
    build::expect_equal(c.builder(), given[d],
                        d == at ? relax::simplified(ir::ceildiv(own[d], ir::int64(block))) : own[d]);
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        own,
        [&](std::vector<ir::Expr> i) {
          i[at] = ir::floordiv(i[at], ir::int64(block));
          return in[0](std::move(i));
        },
        in, "spread_blocks")};
  };
  return c.builder().call_te("spread_blocks", {std::move(parameter)}, make).value_or_throw();
}

struct Range {
  double low, high;
};
Range range_of(NodeImport& c, DType dtype) {
  if (!dtype.is_integer() || dtype.bits > 16)
    c.fail(codes::unsupported, "quantization to " + dtype.str() + " is not one that Lathe compiles");
  const double count = std::ldexp(1.0, dtype.bits);
  return dtype.is_uint() ? Range{0, count - 1} : Range{-count / 2, count / 2 - 1};
}

// saturate(round(x / scale) + zero), from a quotient rounded to `precision`; the rest in float32, which holds the
// integers. A narrow float is rounded once, when all is added up.
Expr quantized(NodeImport& c, const Expr& x, const Expr& scale, const Expr& zero, DType dtype, DType precision,
               const Conversion& how = {}) {
  const DType wide = DType::float32();
  Expr y = c.cast(c.call(ops::divide, {c.cast(x, precision), c.cast(scale, precision)}), wide);
  if (dtype.is_integer()) y = c.call(ops::round, {y});
  if (zero) y = c.call(ops::add, {y, c.cast(zero, wide)});
  if (dtype.is_floating()) return converted(c, y, dtype, how);
  const Range range = range_of(c, dtype);
  return c.cast(c.call(ops::clip, {y, c.scalar(wide, range.low), c.scalar(wide, range.high)}), dtype);
}

// What x / scale is rounded to: the scale's type, but for those that are no type to divide in.
DType quotient_type(DType scale) {
  if (scale.is_integer()) return DType::float_(64);
  return scale.bits < 16 ? DType::float32() : scale;
}

DType quantized_type(NodeImport& c, size_t zero_point) {
  const int64_t given = c.version >= 21 ? c.attributes.integer("output_dtype", 0) : 0;
  if (given == 0) return c.has(zero_point) ? c.dtype(zero_point) : DType::uint(8);
  const DType dtype = element_type(given, "the result", c.place()).value_or_throw();
  if (c.has(zero_point) && c.dtype(zero_point) != dtype)
    c.fail(codes::wrong_node,
           "the attribute 'output_dtype' says " + dtype.str() + ", but the zero point is " + c.dtype(zero_point).str());
  return dtype;
}

struct Blocks {
  int64_t axis, size;
};
Blocks read_blocks(NodeImport& c) {
  return {c.version >= 13 ? c.attributes.integer("axis", 1) : 1,
          c.version >= 21 ? c.attributes.integer("block_size", 0) : 0};
}

void quantize_linear(NodeImport& c) {
  const Blocks blocks = read_blocks(c);
  Conversion how;
  if (c.version >= 19) how.saturate = c.attributes.flag("saturate", true);
  const int64_t precision = c.version >= 23 ? c.attributes.integer("precision", 0) : 0;
  const DType dtype = quantized_type(c, 2);
  const DType quotient =
      precision == 0 ? quotient_type(c.dtype(1)) : element_type(precision, "the quotient", c.place()).value_or_throw();
  if (!quotient.is_floating() || quotient.bits < 16)
    c.fail(codes::wrong_attribute,
           "the attribute 'precision' says " + quotient.str() + ", in which nothing is divided");
  const Expr x = c.input(0), scale = spread(c, x, c.input(1), blocks.axis, blocks.size);
  const Expr zero = c.has(2) ? spread(c, x, c.input(2), blocks.axis, blocks.size) : Expr{};
  c.set(quantized(c, x, scale, zero, dtype, quotient, how));
}

// (x - zero) * scale, in the scale's type unless the node says another.
void dequantize_linear(NodeImport& c) {
  const Blocks blocks = read_blocks(c);
  const int64_t given = c.version >= 23 ? c.attributes.integer("output_dtype", 0) : 0;
  const DType dtype = given == 0 ? c.dtype(1) : element_type(given, "the result", c.place()).value_or_throw();
  if (!dtype.is_floating() || dtype.bits < 16)
    c.fail(codes::wrong_node, "DequantizeLinear with a scale of " + dtype.str() +
                                  " gives no float16, bfloat16 or float32 unless 'output_dtype' says which");
  const Expr x = c.input(0);
  const DType own = c.dtype(0), wide = DType::float32(), exact = own.is_integer() ? DType::int_(32) : wide;
  Expr away = c.cast(x, exact);
  if (c.has(2)) away = c.call(ops::subtract, {away, c.cast(spread(c, x, c.input(2), blocks.axis, blocks.size), exact)});
  const Expr scale = c.cast(spread(c, x, c.input(1), blocks.axis, blocks.size), wide);
  c.set(c.cast(c.call(ops::multiply, {c.cast(away, wide), scale}), dtype));
}

// To uint8, with the range of x and 0 as the scale.
void dynamic_quantize_linear(NodeImport& c) {
  const Expr x = c.input(0);
  const DType wide = DType::float32();
  const auto all = ir::make<ops::ReduceAttributes>(std::optional<std::vector<int64_t>>(), false);
  const Expr zero = c.scalar(wide, 0);
  const Expr low = c.call(ops::minimum, {c.call(ops::min, {x}, all), zero});
  const Expr high = c.call(ops::maximum, {c.call(ops::max, {x}, all), zero});
  const Expr scale = c.call(ops::divide, {c.call(ops::subtract, {high, low}), c.scalar(wide, 255)});
  const Expr exact = c.call(ops::divide, {c.call(ops::subtract, {zero, low}), scale});
  const Expr point =
      c.cast(c.call(ops::clip, {c.call(ops::round, {exact}), zero, c.scalar(wide, 255)}), DType::uint(8));
  c.set(0, quantized(c, x, scale, point, DType::uint(8), wide));
  if (c.wants(1)) c.set(1, scale);
  if (c.wants(2)) c.set(2, point);
}

// What products of an operand are exact in: float8's in float32, but for sums of very many.
DType exact_type(DType operand) { return operand.is_floating() ? DType::float32() : DType::int_(32); }

// The operand in that type, less its zero point: one number, one along `axis`, or a tensor that broadcasts.
Expr centred(NodeImport& c, size_t operand, size_t zero_point, int64_t axis) {
  const DType exact = exact_type(c.dtype(operand));
  const Expr x = c.cast(c.input(operand), exact);
  if (!c.has(zero_point)) return x;
  if (c.dtype(zero_point) != c.dtype(operand))
    c.fail(codes::wrong_node, "the input " + std::to_string(operand) + " is " + c.dtype(operand).str() +
                                  ", but its zero point is " + c.dtype(zero_point).str());
  const Expr zero = c.rank(zero_point) > 1 ? c.input(zero_point) : spread(c, x, c.input(zero_point), axis, 0);
  return c.call(ops::subtract, {x, c.cast(zero, exact)});
}

// The scale of `x`: one number, one along `axis`, or a tensor that broadcasts.
Expr scale_of(NodeImport& c, const Expr& x, size_t scale, int64_t axis) {
  return c.rank(scale) > 1 ? c.input(scale) : spread(c, x, c.input(scale), axis, 0);
}

// In float32 where one of the operands is.
Expr exact_product(NodeImport& c, const Expr& a, const Expr& b) {
  const bool is_integer = build::dtype_of(a).is_integer() && build::dtype_of(b).is_integer();
  const DType exact = is_integer ? DType::int_(32) : DType::float32();
  return c.call(ops::matmul, {c.cast(a, exact), c.cast(b, exact)}, ir::make<ops::MatmulAttributes>());
}

// Rows of a, columns of b have their own zero points where these are vectors.
int64_t row_axis(NodeImport& c, size_t operand) { return std::max<int64_t>(c.rank(operand) - 2, 0); }
int64_t column_axis(NodeImport& c, size_t operand) { return c.rank(operand) - 1; }

void matmul_integer(NodeImport& c) {
  c.set(exact_product(c, centred(c, 0, 2, row_axis(c, 0)), centred(c, 1, 3, column_axis(c, 1))));
}

void qlinear_matmul(NodeImport& c) {
  const Expr a = centred(c, 0, 2, row_axis(c, 0)), b = centred(c, 3, 5, column_axis(c, 3));
  const DType wide = DType::float32();
  const Expr product = c.cast(exact_product(c, a, b), wide);
  const Expr a_scale = c.cast(scale_of(c, a, 1, row_axis(c, 0)), wide);
  const Expr b_scale = c.cast(scale_of(c, b, 4, column_axis(c, 3)), wide);
  const Expr real = c.call(ops::multiply, {c.call(ops::multiply, {product, a_scale}), b_scale});
  c.set(
      quantized(c, real, scale_of(c, real, 6, row_axis(c, 0)), scale_of(c, real, 7, row_axis(c, 0)), c.dtype(7), wide));
}

// Zero points and scales of kernels are one, or one an output channel, which is the kernel's first dimension.
void conv_integer(NodeImport& c) { c.set(convolution(c, centred(c, 0, 2, 1), centred(c, 1, 3, 0), {})); }

void qlinear_conv(NodeImport& c) {
  const DType wide = DType::float32();
  const Expr product = convolution(c, centred(c, 0, 2, 1), centred(c, 3, 5, 0), c.has(8) ? c.input(8) : Expr());
  const Expr scale = c.call(ops::multiply, {c.reshape(c.input(1), {}), spread(c, product, c.input(4), 1, 0)});
  const Expr real = c.call(ops::multiply, {c.cast(product, wide), scale});
  c.set(quantized(c, real, spread(c, real, c.input(6), 1, 0), spread(c, real, c.input(7), 1, 0), c.dtype(7), wide));
}

const OperatorRow quantize_rows[] = {
    {"QuantizeLinear", {10, 13, 19, 21, 23, 24, 25}, 2, 3, 1, quantize_linear},
    {"DequantizeLinear", {10, 13, 19, 21, 23, 24, 25}, 2, 3, 1, dequantize_linear},
    {"DynamicQuantizeLinear", {11}, 1, 1, 3, dynamic_quantize_linear},
    {"MatMulInteger", {10}, 2, 4, 1, matmul_integer},
    {"QLinearMatMul", {10, 21}, 8, 8, 1, qlinear_matmul},
    {"ConvInteger", {10}, 2, 4, 1, conv_integer},
    {"QLinearConv", {10}, 8, 9, 1, qlinear_conv},
};

}  // namespace

Table quantize() { return quantize_rows; }

}  // namespace lathe::onnx::operators
