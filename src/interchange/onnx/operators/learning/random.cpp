// What draws numbers: they depend on the node's seed, or its name where it has none, and on the element's place; so
// every run of a compiled model gives the same.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/read/model.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

// A seed is a float, but for Dropout's.
uint64_t stream_of(NodeImport& c, bool has_integer_seed = false) {
  if (c.attributes.has("seed"))
    return build::stream_of(has_integer_seed
                                ? static_cast<uint64_t>(c.attributes.integer("seed"))
                                : std::bit_cast<uint32_t>(static_cast<float>(c.attributes.number("seed", 0))));
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  if (const auto* node = std::get_if<support::ModelNode>(&c.place()))
    for (const char letter : node->node) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  return build::stream_of(hash);
}

// The attribute's type, else the one given.
DType result_type(NodeImport& c, DType otherwise, bool is_floating) {
  if (!c.attributes.has("dtype")) return otherwise;
  const DType dtype = element_type(c.attributes.integer("dtype"), "the result", c.place()).value_or_throw();
  if (is_floating && !dtype.is_floating())
    c.fail(codes::wrong_attribute, "the result would be " + dtype.str() + ", but such numbers are floats");
  return dtype;
}

Shape shape_attribute(NodeImport& c) {
  const auto dims = c.attributes.integers("shape");
  if (!dims) c.fail(codes::wrong_attribute, "the attribute 'shape' is missing");
  Shape shape;
  for (const int64_t dim : *dims) {
    if (dim < 0) c.fail(codes::wrong_attribute, "the shape has an extent of " + std::to_string(dim));
    shape.push_back(ir::int64(dim));
  }
  return shape;
}

template <bool is_normal, bool is_like>
void numbers(NodeImport& c) {
  DType otherwise = DType::float32();
  if (is_like && c.dtype(0).is_floating()) otherwise = c.dtype(0);
  const DType dtype = result_type(c, otherwise, true);
  const Shape shape = is_like ? c.shape(0) : shape_attribute(c);
  const double first = c.attributes.number(is_normal ? "mean" : "low", 0);
  const double second = c.attributes.number(is_normal ? "scale" : "high", 1);
  const uint64_t stream = stream_of(c);
  c.set(is_normal ? build::random_normal(c.builder(), shape, stream, dtype, first, second)
                  : build::random_uniform(c.builder(), shape, stream, dtype, first, second));
}

// 1 where the number drawn is below the probability.
void bernoulli(NodeImport& c) {
  const DType dtype = result_type(c, c.dtype(0), false), wide = DType::float_(64);
  const Expr drawn = build::random_uniform(c.builder(), c.shape(0), stream_of(c), wide, 0, 1);
  c.set(build::elementwise(
      c.builder(), {drawn, c.input(0)}, c.shape(0),
      [&](const std::vector<ir::Expr>& x, const std::vector<ir::Expr>&) {
        return ir::cast(dtype, x[0] < ir::cast(wide, x[1]));
      },
      "bernoulli"));
}

// Classes of each row of logarithms, as often as their exponentials say.
void multinomial(NodeImport& c) {
  const DType dtype = c.attributes.has("dtype") ? result_type(c, {}, false) : DType::int32();
  if (dtype != DType::int32() && dtype != DType::int64())
    c.fail(codes::wrong_attribute, "classes are int32 or int64, not " + dtype.str());
  const int64_t count = c.attributes.integer("sample_size", 1);
  if (count < 1) c.fail(codes::wrong_attribute, "the number of samples is " + std::to_string(count));
  if (c.rank(0) != 2)
    c.fail(codes::wrong_node, "the logarithms have " + std::to_string(c.rank(0)) + " dimensions, but 2 are needed");
  if (ir::is_int(c.shape(0)[1], 0)) c.fail(codes::wrong_node, "there are no classes to choose from");
  const Expr shares =
      c.call(ops::softmax, {c.cast(c.input(0), DType::float_(64))}, ir::make<ops::AxisAttributes>(int64_t{1}));
  c.set(build::random_choice(c.builder(), shares, ir::int64(count), stream_of(c), dtype));
}

// The input and a mask that keeps everything in inference. In training what is drawn below the ratio becomes zero, and
// the rest makes up for it.
void dropout(NodeImport& c) {
  if (c.version < 12) c.attributes.number("ratio", 0.5);
  if (c.version < 7) c.attributes.ignore("is_test");
  const DType dtype = c.dtype(0), wide = DType::float_(64);
  const auto* training = c.has(2) ? c.known(2) : nullptr;
  const auto* ratio = c.has(1) ? c.input(1).as<relax::Constant>() : nullptr;
  const bool off = !c.has(2) || (training && ir::is_int(training->front(), 0));
  const bool none = ratio && ratio->data->elements() == 1 && ir::float_at(*ratio->data, 0) == 0;
  const Shape shape = c.shape(0);
  if (off || none) {
    c.attributes.ignore("seed");
    c.pass_on(0);
    const auto yes = ir::tensor_data(DType::boolean(), {}, std::string(1, '\1'));
    if (c.wants(1)) c.set(1, c.call(ops::full, {shape_expr(shape), relax::constant(yes)}));
    return;
  }
  const Expr share = c.has(1) ? c.reshape(c.cast(c.input(1), wide), {}) : c.scalar(wide, 0.5);
  const Expr drawn = build::random_uniform(c.builder(), shape, stream_of(c, true), wide, 0, 1);
  const std::vector<Expr> operands{drawn, share, c.reshape(c.input(2), {}), c.input(0)};
  const auto is_kept = [](const std::vector<ir::Expr>& x) {
    return ir::logical_or(ir::logical_not(x[2]), x[0] >= x[1]);
  };
  c.set(0, build::elementwise(
               c.builder(), operands, shape,
               [&](const std::vector<ir::Expr>& x, const std::vector<ir::Expr>&) {
                 const ir::Expr scaled = ir::div(ir::cast(wide, x[3]), ir::constant(wide, 1.0) - x[1]);
                 const ir::Expr kept = ir::select(x[2], ir::cast(dtype, scaled), x[3]);
                 return ir::select(is_kept(x), kept, ir::constant(dtype, 0));
               },
               "dropout"));
  if (!c.wants(1)) return;
  c.set(1, build::elementwise(
               c.builder(), {drawn, share, operands[2]}, shape,
               [&](const std::vector<ir::Expr>& x, const std::vector<ir::Expr>&) { return is_kept(x); }, "kept"));
}

const OperatorRow random_rows[] = {
    {"RandomNormal", {1, 22}, 0, 0, 1, numbers<true, false>},
    {"RandomNormalLike", {1, 22}, 1, 1, 1, numbers<true, true>},
    {"RandomUniform", {1, 22}, 0, 0, 1, numbers<false, false>},
    {"RandomUniformLike", {1, 22}, 1, 1, 1, numbers<false, true>},
    {"Bernoulli", {15, 22}, 1, 1, 1, bernoulli},
    {"Multinomial", {7, 22}, 1, 1, 1, multinomial},
    {"Dropout", {6, 7, 10, 12, 13, 22}, 1, 3, 2, dropout},
};

}  // namespace

Table random() { return random_rows; }

}  // namespace lathe::onnx::operators
