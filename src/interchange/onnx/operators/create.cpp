// Constants, shapes as tensors, and operators that hand their input on.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/tables.h"
#include "relax/strings.h"

namespace lathe::onnx::operators {

namespace {

void identity(NodeImport& c) { c.pass_on(0); }

template <class T, class Source>
ir::TensorData vector_of(DType dtype, const std::vector<Source>& values) {
  return ir::tensor_of<T>(dtype, {static_cast<int64_t>(values.size())}, values);
}

// Exactly one of the attributes is there.
void constant(NodeImport& c) {
  std::vector<ir::TensorData> given;
  std::vector<Strings> texts;
  if (c.attributes.has("value_string")) texts.push_back({{}, {c.attributes.text("value_string", "")}});
  if (auto v = c.attributes.texts("value_strings")) texts.push_back({{static_cast<int64_t>(v->size())}, *v});
  if (auto t = c.attributes.strings("value"))
    texts.push_back(std::move(*t));
  else if (auto numbers = c.attributes.tensor("value"))
    given.push_back(numbers);
  if (auto t = c.attributes.sparse_tensor("sparse_value")) given.push_back(t);
  if (c.attributes.has("value_int"))
    given.push_back(ir::tensor_of<int64_t>(DType::int64(), {}, {c.attributes.integer("value_int")}));
  if (c.attributes.has("value_float"))
    given.push_back(
        ir::tensor_of<float>(DType::float32(), {}, {static_cast<float>(c.attributes.number("value_float", 0))}));
  if (auto v = c.attributes.integers("value_ints")) given.push_back(vector_of<int64_t>(DType::int64(), *v));
  if (auto v = c.attributes.numbers("value_floats")) given.push_back(vector_of<float>(DType::float32(), *v));
  if (given.size() + texts.size() != 1)
    c.fail(codes::wrong_attribute,
           "a Constant has one value, but the node has " + std::to_string(given.size() + texts.size()));
  if (!texts.empty()) return c.set(relax::strings(std::move(texts[0].texts), std::move(texts[0].shape)));
  c.set(relax::constant(given[0]));
}

// One element; a float 0 when the attribute is absent.
ir::TensorData fill_value(NodeImport& c) {
  const ir::TensorData value = c.attributes.tensor("value");
  if (!value) return ir::tensor_of<float>(DType::float32(), {}, {0.0f});
  if (value->elements() != 1)
    c.fail(codes::wrong_attribute,
           "the attribute 'value' has " + std::to_string(value->elements()) + " elements, not 1");
  return ir::tensor_data(value->dtype, {}, value->bytes, value->owner);
}

void check_vector(NodeImport& c, size_t i) {
  if (c.rank(i) != 1)
    c.fail(codes::wrong_node,
           "the input " + std::to_string(i) + " has " + std::to_string(c.rank(i)) + " dimensions; a shape has one");
}

void constant_of_shape(NodeImport& c) {
  const Expr value = relax::constant(fill_value(c));
  check_vector(c, 0);
  Integers shape = c.integers_or(0, c.declared_rank(0));
  if (!constants_of(shape)) c.expect_at_least(0, shape, 0, "an extent is 0 or more");
  c.set(c.call(ops::full, {shape_expr(std::move(shape)), value}));
}

bool fold_constant_of_shape(NodeImport& c) {
  const ir::TensorData value = fill_value(c);
  const auto dims = constants_of(*c.known(0));
  const auto fill = integers_of(*value);
  if (!dims || !fill || dims->size() > 8 || c.rank(0) != 1) return false;
  int64_t count = 1;
  for (const int64_t dim : *dims) {
    if (dim < 0 || dim > most_integers) return false;
    count = std::min(count * dim, most_integers + 1);
  }
  if (count > most_integers) return false;
  c.set_integers(Integers(static_cast<size_t>(count), fill->front()), *dims, value->dtype);
  return true;
}

// The dimensions from `start` to `end`, both clamped.
void shape_of(NodeImport& c) {
  const Shape shape = c.known(0) ? [&] {
    Shape dims;
    for (const int64_t dim : c.integer_dims(0)) dims.push_back(ir::int64(dim));
    return dims;
  }()
                                 : c.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const auto position = [&](int64_t given) { return std::clamp<int64_t>(given < 0 ? given + rank : given, 0, rank); };
  int64_t start = 0, end = rank;
  if (c.version >= 15) {
    start = position(c.attributes.integer("start", 0));
    end = position(c.attributes.integer("end", rank));
  }
  Integers chosen;
  for (int64_t d = start; d < end; ++d) chosen.push_back(shape[static_cast<size_t>(d)]);
  const auto count = static_cast<int64_t>(chosen.size());
  c.set_integers(std::move(chosen), {count}, DType::int64());
}

void size_of(NodeImport& c) { c.set_integers({ir::product(c.shape(0))}, {}, DType::int64()); }

// start, start + delta, … before limit. Of known integers.
bool fold_range(NodeImport& c) {
  c.attributes.ignore("stash_type");
  for (size_t i = 0; i < 3; ++i)
    if (c.known(i)->size() != 1) return false;
  const auto start = ir::as_int(c.known(0)->front()), limit = ir::as_int(c.known(1)->front()),
             delta = ir::as_int(c.known(2)->front());
  if (!start || !limit || !delta || *delta == 0) return false;
  Integers values;
  for (int64_t at = *start; *delta > 0 ? at < *limit : at > *limit;) {
    if (static_cast<int64_t>(values.size()) >= most_integers) return false;
    values.push_back(ir::int64(at));
    if (__builtin_add_overflow(at, *delta, &at)) break;
  }
  const auto count = static_cast<int64_t>(values.size());
  c.set_integers(std::move(values), {count}, c.dtype(0));
  return true;
}

// ceil((limit - start) / delta) elements, element i being start + i * delta. The count is known from known integers,
// else computed when the model runs.
ir::Expr range_count(NodeImport& c, const std::array<Expr, 3>& ends) {
  const DType dtype = c.dtype(0);
  if (!dtype.is_floating() && c.known(0) && c.known(1) && c.known(2)) {
    const ir::Expr start = c.known(0)->front(), limit = c.known(1)->front();
    const auto delta = ir::as_int(c.known(2)->front());
    if (delta == 0) c.fail(codes::wrong_node, "delta of Range is 0");
    if (delta && *delta != std::numeric_limits<int64_t>::min())
      return relax::non_negative(ir::ceildiv(*delta > 0 ? limit - start : start - limit, ir::int64(std::abs(*delta))));
  }
  c.expect_no_zero(2, "and a range leads from element to element");
  const DType wide = dtype == DType::float32() || dtype.bits == 16 ? DType::float32() : DType::float_(64);
  const Expr span = c.cast(c.call(ops::subtract, {ends[1], ends[0]}), wide);
  const Expr steps = c.call(ops::ceil, {c.call(ops::divide, {span, c.cast(ends[2], wide)})});
  return relax::non_negative(c.read_at_run_time(c.cast(steps, DType::int64()), 1)[0]);
}

void range(NodeImport& c) {
  c.attributes.ignore("stash_type");
  const DType dtype = c.dtype(0);
  std::array<Expr, 3> ends;
  for (size_t i = 0; i < 3; ++i) {
    if (c.dtype(i) != dtype) c.fail(codes::wrong_node, "start, limit and delta of Range have different types");
    ends[i] = c.reshape(c.input(i), {});
  }
  const ir::Expr count = range_count(c, ends);
  const auto element = [&](const std::vector<te::Tensor>& in) {
    const DType wide = relax::accumulation_dtype(dtype);
    return std::vector{te::compute(
        {count},
        [&](const std::vector<ir::Expr>& i) {
          return ir::cast(dtype, ir::cast(wide, in[0]({})) + ir::cast(wide, i[0]) * ir::cast(wide, in[1]({})));
        },
        in, "range")};
  };
  c.set(c.builder().call_te("range", {ends[0], ends[2]}, element).value_or_throw());
}

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n the size, or one less where the window is not periodic.
template <int kind>
void window_function(NodeImport& c) {
  constexpr double coefficients[][3] = {{0.42, 0.5, 0.08}, {25.0 / 46, 21.0 / 46, 0}, {0.5, 0.5, 0}};
  const auto& a = coefficients[kind];
  const DType dtype =
      element_type(c.attributes.integer("output_datatype", 1), "the result", c.place()).value_or_throw();
  const bool periodic = c.attributes.flag("periodic", true);
  const Integers given = c.integers(0);
  if (given.size() != 1) c.fail(codes::wrong_node, "the size of the window is not one number");
  c.expect_at_least(0, given, 0, "a window has 0 elements or more");
  const ir::Expr size = relax::non_negative(given[0]);
  const DType wide = DType::float_(64);
  const auto make = [&](const std::vector<te::Tensor>&) {
    return std::vector{te::compute(
        {size},
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr count = ir::cast(wide, periodic ? size : ir::max(size - 1, ir::int64(1)));
          const ir::Expr angle = ir::div(ir::cast(wide, i[0]) * ir::constant(wide, 6.283185307179586), count);
          const auto cosine = [&](const ir::Expr& of) { return ir::call(ir::intrinsic::cos, of); };
          ir::Expr value = ir::constant(wide, a[0]) - ir::constant(wide, a[1]) * cosine(angle);
          if (a[2] != 0) value = value + ir::constant(wide, a[2]) * cosine(angle * ir::constant(wide, 2.0));
          return ir::cast(dtype, value);
        },
        {}, "window_function")};
  };
  c.set(c.builder().call_te("window_function", {}, make).value_or_throw());
}

const OperatorRow create_rows[] = {
    {"Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25}, 1, 1, 1, identity, nullptr, "", true},
    {"Constant", {1, 9, 11, 12, 13, 19, 21, 23, 24, 25}, 0, 0, 1, constant},
    {"ConstantOfShape", {9, 20, 21, 23, 24, 25}, 1, 1, 1, constant_of_shape, fold_constant_of_shape},
    {"Shape", {1, 13, 15, 19, 21, 23, 24, 25}, 1, 1, 1, shape_of},
    {"Size", {1, 13, 19, 21, 23, 24, 25}, 1, 1, 1, size_of},
    {"Range", {11, 27}, 3, 3, 1, range, fold_range},
    {"BlackmanWindow", {17}, 1, 1, 1, window_function<0>},
    {"HammingWindow", {17}, 1, 1, 1, window_function<1>},
    {"HannWindow", {17}, 1, 1, 1, window_function<2>},
};

}  // namespace

Table create() { return create_rows; }

}  // namespace lathe::onnx::operators
