// Classical models (ai.onnx.ml) and what prepares their inputs: tables of values, scaling, n-grams, trees.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

Expr vector_constant(const std::vector<int64_t>& values) {
  return relax::constant(ir::tensor_of<int64_t>(DType::int64(), {static_cast<int64_t>(values.size())}, values));
}

Expr vector_constant(const std::vector<float>& values) {
  return relax::constant(ir::tensor_of<float>(DType::float32(), {static_cast<int64_t>(values.size())}, values));
}

// The one of the attributes `<what>_int64s`, `<what>_floats` and `<what>_tensor` that is there, a vector.
ir::TensorData vector_attribute(NodeImport& c, const std::string& what) {
  std::vector<ir::TensorData> given;
  if (c.attributes.has(what + "_strings") || c.attributes.has("classes_strings"))
    c.fail(codes::unsupported, "the " + what + " are texts; Lathe compiles numbers");
  if (const auto v = c.attributes.integers(what + "_int64s"))
    given.push_back(ir::tensor_of<int64_t>(DType::int64(), {static_cast<int64_t>(v->size())}, *v));
  if (const auto v = c.attributes.numbers(what + "_floats"))
    given.push_back(ir::tensor_of<float>(DType::float32(), {static_cast<int64_t>(v->size())}, *v));
  if (const auto t = c.attributes.tensor(what + "_tensor")) given.push_back(t);
  if (given.size() != 1)
    c.fail(codes::wrong_attribute, "the " + what + " are given " + std::to_string(given.size()) + " times, not once");
  if (given[0]->shape.size() != 1) c.fail(codes::wrong_attribute, "the " + what + " are not a vector");
  return given[0];
}

// Each element's value in a table of keys, the last of equal ones, or a default. NaN is found as a key.
void label_encoder(NodeImport& c) {
  const ir::TensorData keys = vector_attribute(c, "keys"), values = vector_attribute(c, "values");
  const int64_t count = keys->shape[0];
  if (values->shape[0] != count)
    c.fail(codes::wrong_attribute,
           std::to_string(count) + " keys do not go with " + std::to_string(values->shape[0]) + " values");
  const DType dtype = c.dtype(0), result = values->dtype;
  if (keys->dtype != dtype)
    c.fail(codes::wrong_attribute, "keys of " + keys->dtype.str() + " are not found among elements of " + dtype.str());
  const double plain_default = result.is_floating() ? c.attributes.number("default_float", -0.0)
                                                    : static_cast<double>(c.attributes.integer("default_int64", -1));
  c.attributes.ignore(result.is_floating() ? "default_int64" : "default_float");
  c.attributes.ignore("default_string");
  ir::TensorData otherwise = c.attributes.tensor("default_tensor");
  if (otherwise && (otherwise->elements() != 1 || otherwise->dtype != result))
    c.fail(codes::wrong_attribute, "the default is not one element of the values' type, " + result.str());
  const Expr missing = otherwise ? c.reshape(relax::constant(otherwise), {}) : c.scalar(result, plain_default);
  const Shape shape = c.shape(0);
  if (count == 0) return c.set(c.call(ops::full, {shape_expr(shape), missing}));
  const auto make = [&](const std::vector<te::Tensor>& in) {
    const te::IterVar k = te::reduce_axis(ir::int64(0), ir::int64(count), "k");
    const te::Tensor places = te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr x = in[0](i), key = in[1]({k->var});
          ir::Expr is_same = ir::eq(x, key);
          if (dtype.is_floating()) is_same = ir::logical_or(is_same, ir::logical_and(ir::ne(x, x), ir::ne(key, key)));
          return te::max(ir::select(is_same, k->var, ir::int64(-1)), {k});
        },
        {in[0], in[1]}, "places");
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr found = places(i);
          return ir::select(found < 0, in[3]({}), in[2]({ir::max(found, ir::int64(0))}));
        },
        {places, in[2], in[3]}, "labels")};
  };
  c.set(c.builder()
            .call_te("label_encoder", {c.input(0), relax::constant(keys), relax::constant(values), missing}, make)
            .value_or_throw());
}

// A vector of one number, or of one for each feature, the last dimension.
Expr for_features(NodeImport& c, const std::vector<float>& numbers, std::string_view name) {
  const auto count = static_cast<int64_t>(numbers.size());
  if (count != 1) {
    if (c.rank(0) < 1) c.fail(codes::wrong_node, "a scalar has no features");
    if (count < 1) c.fail(codes::wrong_attribute, "the attribute '" + std::string(name) + "' is empty");
    build::expect_equal(c.builder(), c.shape(0).back(), ir::int64(count));
  }
  return vector_constant(numbers);
}

ir::Expr of_feature(const te::Tensor& numbers, const std::vector<ir::Expr>& at) {
  return numbers({ir::is_int(numbers.shape()[0], 1) ? ir::int64(0) : at.back()});
}

void scaler(NodeImport& c) {
  const auto offset = c.attributes.numbers("offset"), scale = c.attributes.numbers("scale");
  const Shape shape = c.shape(0);
  const std::vector<Expr> operands{c.input(0), for_features(c, offset.value_or(std::vector{0.0f}), "offset"),
                                   for_features(c, scale.value_or(std::vector{1.0f}), "scale")};
  const DType single = DType::float32(), wide = c.dtype(0) == single ? single : DType::float_(64);
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr away = ir::cast(wide, in[0](i)) - ir::cast(wide, of_feature(in[1], i));
          return ir::cast(single, away * ir::cast(wide, of_feature(in[2], i)));
        },
        in, "scaled")};
  };
  c.set(c.builder().call_te("scaler", operands, make).value_or_throw());
}

// One value of the input replaced by another.
void imputer(NodeImport& c) {
  const DType dtype = c.dtype(0);
  const bool is_float = dtype.is_floating();
  Expr by;
  ir::Expr old;
  if (is_float) {
    const auto given = c.attributes.numbers("imputed_value_floats");
    if (!given) c.fail(codes::wrong_attribute, "the attribute 'imputed_value_floats' is missing");
    by = for_features(c, *given, "imputed_value_floats");
    old = ir::constant(dtype, c.attributes.number("replaced_value_float", 0));
  } else {
    const auto given = c.attributes.integers("imputed_value_int64s");
    if (!given) c.fail(codes::wrong_attribute, "the attribute 'imputed_value_int64s' is missing");
    for_features(c, std::vector<float>(given->size()), "imputed_value_int64s");
    by = vector_constant(*given);
    old = ir::constant(dtype, c.attributes.integer("replaced_value_int64", 0));
  }
  for (const char* other : {"replaced_value_int64", "replaced_value_float"}) c.attributes.ignore(other);
  const bool is_nan = is_float && std::isnan(ir::as_float(old).value_or(0));
  const Shape shape = c.shape(0);
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr x = in[0](i), is_old = is_nan ? ir::ne(x, x) : ir::eq(x, old);
          return ir::select(is_old, ir::cast(dtype, of_feature(in[1], i)), x);
        },
        in, "imputed")};
  };
  c.set(c.builder().call_te("imputer", {c.input(0), by}, make).value_or_throw());
}

// Rows divided by their largest magnitude, the sum of magnitudes, or the root of the sum of squares; of zeros as is.
void normalizer(NodeImport& c) {
  const std::string norm = c.attributes.word("norm", {"MAX", "L1", "L2"});
  const int64_t rank = c.rank(0);
  if (rank < 1 || rank > 2)
    c.fail(codes::wrong_node, "rows have 1 or 2 dimensions, but the input has " + std::to_string(rank));
  const Shape shape = c.shape(0);
  Shape rows(shape.begin(), shape.end() - 1);
  const DType single = DType::float32(), wide = c.dtype(0) == single ? single : DType::float_(64);
  if (norm == "MAX" && ir::is_int(shape.back(), 0)) return c.set(c.cast(c.input(0), single));
  const auto make = [&](const std::vector<te::Tensor>& in) {
    const te::IterVar k = te::reduce_axis(ir::int64(0), shape.back(), "k");
    const te::Tensor sizes = te::compute(
        rows,
        [&](const std::vector<ir::Expr>& i) {
          std::vector<ir::Expr> at = i;
          at.push_back(k->var);
          const ir::Expr x = ir::cast(wide, in[0](at));
          if (norm == "L2") return te::sum(x * x, {k});
          const ir::Expr magnitude = ir::call(ir::intrinsic::abs, x);
          return norm == "L1" ? te::sum(magnitude, {k}) : te::max(magnitude, {k});
        },
        in, "sizes");
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr x = ir::cast(wide, in[0](i)), own = sizes({i.begin(), i.end() - 1});
          const ir::Expr size = norm == "L2" ? ir::call(ir::intrinsic::sqrt, own) : own;
          return ir::cast(single, ir::select(ir::eq(size, ir::constant(wide, 0)), x, ir::div(x, size)));
        },
        {in[0], sizes}, "normalized")};
  };
  c.set(c.builder().call_te("normalizer", {c.input(0)}, make).value_or_throw());
}

constexpr std::string_view of_classical_models = "ai.onnx.ml";

const OperatorRow classical_rows[] = {
    {"LabelEncoder", {2, 4}, 1, 1, 1, label_encoder, nullptr, of_classical_models},
    {"Scaler", {1}, 1, 1, 1, scaler, nullptr, of_classical_models},
    {"Imputer", {1}, 1, 1, 1, imputer, nullptr, of_classical_models},
    {"Normalizer", {1}, 1, 1, 1, normalizer, nullptr, of_classical_models},
};

}  // namespace

Table classical() { return classical_rows; }

}  // namespace lathe::onnx::operators
