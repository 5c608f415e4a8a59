#include "interchange/onnx/node.h"

#include "interchange/onnx/codes.h"
#include "ops/build.h"
#include "relax/tensor_to_shape.h"

namespace lathe::onnx {

using support::Diagnostic;
using support::DiagnosticError;

namespace {

std::vector<int64_t> constant_dims(const Expr& tensor) {
  return relax::constant_shape(*relax::as_tensor(tensor)->shape).value_or(std::vector<int64_t>{-1});
}

void expect_integers(NodeImport& c, size_t i) {
  if (const DType type = c.dtype(i); type != DType::int64() && type != DType::int32())
    c.fail(codes::wrong_node,
           "the input " + std::to_string(i) + " is " + type.str() + ", but shapes and positions are int32 or int64");
}

}  // namespace

bool is_small(const ir::Expr& e, int64_t most_terms) {
  int64_t left = most_terms;
  std::vector<ir::NodeRef> open{e};
  while (!open.empty()) {
    const ir::NodeRef at = std::move(open.back());
    open.pop_back();
    if (--left < 0) return false;
    at->node_class().for_each_child(*at, [&](const ir::NodeRef& child) { open.push_back(child); });
  }
  return true;
}

Expr tensor_of(relax::BlockBuilder& builder, GraphValue& value) {
  if (value.tensor) return value.tensor;
  if (const ir::TensorData data = tensor_of(value)) return value.tensor = relax::constant(data);
  Expr tensor = builder.call(ops::shape_to_tensor, {ir::make<relax::ShapeExpr>(*value.integers)}).value_or_throw();
  if (value.dtype != DType::int64())
    tensor = builder.call(ops::astype, {tensor}, ir::make<ops::AstypeAttributes>(value.dtype)).value_or_throw();
  if (value.dims.size() != 1) {
    Shape shape;
    for (const int64_t dim : value.dims) shape.push_back(ir::int64(dim));
    tensor = builder.call(ops::reshape, {tensor, ir::make<relax::ShapeExpr>(std::move(shape))}).value_or_throw();
  }
  return value.tensor = tensor;
}

// ---- inputs ----

GraphValue& NodeImport::value(size_t i) {
  if (!has(i)) fail(codes::wrong_node, "the input " + std::to_string(i) + " is missing");
  return *inputs_[i];
}

Expr NodeImport::input(size_t i) { return tensor_of(builder_, value(i)); }

const Shape& NodeImport::shape(size_t i) { return *relax::as_tensor(input(i))->shape; }

DType NodeImport::dtype(size_t i) {
  const GraphValue& v = value(i);
  return v.tensor ? relax::as_tensor(v.tensor)->dtype : v.dtype;
}

int64_t NodeImport::rank(size_t i) {
  const GraphValue& v = value(i);
  return v.tensor ? relax::as_tensor(v.tensor)->ndim : static_cast<int64_t>(v.dims.size());
}

bool NodeImport::all_known() {
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i] && !known(i)) return false;
  return true;
}

const Integers* NodeImport::known(size_t i) {
  GraphValue& v = value(i);
  if (!v.integers && v.tensor)
    if (const auto* constant = v.tensor.as<relax::Constant>()) {
      v.integers = integers_of(*constant->data);
      v.dims = constant->data->shape;
      v.dtype = constant->data->dtype;
    }
  return v.integers ? &*v.integers : nullptr;
}

std::vector<int64_t> NodeImport::integer_dims(size_t i) { return value(i).dims; }

Integers NodeImport::integers(size_t i) {
  if (const Integers* already = known(i)) return *already;
  GraphValue& v = value(i);
  expect_integers(*this, i);
  const DType type = dtype(i);
  const std::vector<int64_t> dims = constant_dims(v.tensor);
  const std::optional<int64_t> bytes = dims == std::vector<int64_t>{-1} ? std::nullopt : checked_bytes(dims, type);
  if (!bytes || *bytes / type.element_bytes() > most_integers)
    fail(codes::not_constant, "the input " + std::to_string(i) + " is " + relax::text_of(*relax::as_tensor(v.tensor)) +
                                  ": the number of its elements must be known, and small, when compiling");
  // The value keeps the names, so that it is read once.
  v.integers = read_at_run_time(v.tensor, *bytes / type.element_bytes());
  v.dims = dims;
  v.dtype = type;
  return *v.integers;
}

bool NodeImport::has_open_length(size_t i) { return !known(i) && rank(i) == 1 && !ir::as_int(shape(i)[0]); }

Integers NodeImport::integers(size_t i, int64_t count) {
  if (!has_open_length(i)) return integers(i);
  ops::build::expect_equal(builder_, shape(i)[0], ir::int64(count));
  return integers_up_to(i, count, 0).values;
}

Integers NodeImport::integers_or(size_t i, std::optional<int64_t> count) {
  return count ? integers(i, std::max<int64_t>(*count, 0)) : integers(i);
}

NodeImport::OpenIntegers NodeImport::integers_up_to(size_t i, int64_t most, int64_t filler, bool at_end) {
  expect_integers(*this, i);
  const ir::Expr length = shape(i)[0], count = ir::int64(most);
  ops::build::expect_equal(builder_, relax::simplified(ir::min(length, count)), length);
  if (most == 0) return {{}, length};
  const ir::Expr first = at_end ? count - length : ir::int64(0);
  const auto fill_up = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        {count},
        [&](const std::vector<ir::Expr>& at) {
          const ir::Expr place = at[0] - first;
          return ir::if_then_else(ir::logical_and(place >= 0, place < length), ir::cast(DType::int64(), in[0]({place})),
                                  ir::int64(filler));
        },
        in, "filled_up")};
  };
  return {read_at_run_time(builder_.call_te("filled_up", {input(i)}, fill_up).value_or_throw(), most), length};
}

Integers NodeImport::read_at_run_time(const Expr& tensor, int64_t count) {
  Integers symbols;
  for (int64_t k = 0; k < count; ++k) symbols.push_back(ir::var("value_" + std::to_string(k)));
  builder_.match_cast(call(relax::tensor_to_shape_operator, {tensor}),
                      ir::make<relax::ShapeStructInfo>(relax::OptionalShape(symbols)));
  return symbols;
}

Expr NodeImport::with_extent(Expr tensor, int64_t axis, int64_t extent) {
  Shape shape = *relax::as_tensor(tensor)->shape;
  ir::Expr& own = shape.at(static_cast<size_t>(axis));
  if (ir::as_int(own)) return tensor;
  ops::build::expect_equal(builder_, own, ir::int64(extent));
  own = ir::int64(extent);
  return builder_.match_cast(tensor, relax::tensor_info(std::move(shape), relax::as_tensor(tensor)->dtype));
}

Expr NodeImport::extent_as_float(const ir::Expr& extent) {
  const Expr number = call(ops::shape_to_tensor, {ir::make<relax::ShapeExpr>(Shape{extent})});
  return reshape(cast(number, DType::float_(64)), {});
}

void NodeImport::expect_at_run_time(const Expr& scalar, int64_t value) {
  builder_.match_cast(call(relax::tensor_to_shape_operator, {cast(scalar, DType::int64())}),
                      ir::make<relax::ShapeStructInfo>(relax::OptionalShape(Shape{ir::int64(value)})));
}

std::vector<int64_t> NodeImport::constants(size_t i, std::string_view purpose) {
  if (const Integers* integers = known(i))
    if (auto constants = constants_of(*integers)) return *constants;
  fail(codes::not_constant,
       std::string(purpose) + " must be known when compiling, but the model computes them when it runs");
}

// ---- emitting ----

Expr NodeImport::call(const relax::Operator& op, std::vector<Expr> args, relax::AttributesRef attributes) {
  return builder_.call(op, std::move(args), std::move(attributes)).value_or_throw();
}

Expr NodeImport::call(const relax::Operator& op, std::vector<Expr> args, const ir::Value::Map& attributes) {
  return call(op, std::move(args), op.attributes->from_values(attributes).value_or_throw());
}

Expr NodeImport::cast(Expr x, DType dtype) {
  if (relax::as_tensor(x)->dtype == dtype) return x;
  return call(ops::astype, {std::move(x)}, ir::make<ops::AstypeAttributes>(dtype));
}

Expr NodeImport::scalar(DType dtype, double value) {
  const uint64_t bits =
      dtype.is_floating() ? ir::encode_float(dtype, value) : static_cast<uint64_t>(static_cast<int64_t>(value));
  return relax::constant(ir::tensor_data(
      dtype, {}, std::string(reinterpret_cast<const char*>(&bits), static_cast<size_t>(dtype.element_bytes()))));
}

Expr NodeImport::reshape(Expr x, Shape shape) {
  if (relax::same_shape(*relax::as_tensor(x)->shape, shape)) return x;
  return call(ops::reshape, {std::move(x), ir::make<relax::ShapeExpr>(std::move(shape))});
}

// ---- outputs ----

std::optional<int64_t> NodeImport::declared_rank(size_t i) const {
  if (!declared_ranks_ || !wants(i)) return std::nullopt;
  const auto it = declared_ranks_->find(output_names_[i]);
  return it == declared_ranks_->end() ? std::nullopt : std::optional(it->second);
}

void NodeImport::set(size_t i, Expr tensor) { results_.at(i).tensor = std::move(tensor); }

void NodeImport::set_integers(Integers integers, std::vector<int64_t> dims, DType dtype) {
  GraphValue& result = results_.at(0);
  for (ir::Expr& e : integers) e = relax::simplified(e);
  result.integers = std::move(integers);
  result.dims = std::move(dims);
  result.dtype = dtype;
}

bool NodeImport::keeps_integers() const {
  const auto& integers = results_.at(0).integers;
  return integers && static_cast<int64_t>(integers->size()) <= most_integers &&
         std::all_of(integers->begin(), integers->end(), [](const ir::Expr& e) { return is_small(e); });
}

void NodeImport::clear_results() {
  for (GraphValue& result : results_) result = {};
}

void NodeImport::pass_on(size_t i) { results_.at(0) = value(i); }

void NodeImport::fail(support::Code code, std::string message) const {
  throw DiagnosticError(Diagnostic{.code = code, .place = place_, .message = std::move(message)});
}

int64_t NodeImport::axis(int64_t given, int64_t rank, std::string_view name) const {
  if (given < -rank || given >= rank)
    fail(codes::wrong_attribute,
         std::string(name) + " " + std::to_string(given) + " is outside a tensor of rank " + std::to_string(rank));
  return given < 0 ? given + rank : given;
}

std::vector<int64_t> NodeImport::axes(const std::vector<int64_t>& given, int64_t rank, std::string_view name) const {
  std::vector<int64_t> result;
  for (const int64_t each : given) {
    const int64_t normal = axis(each, rank, name);
    if (std::find(result.begin(), result.end(), normal) != result.end())
      fail(codes::wrong_attribute, std::string(name) + " names the axis " + std::to_string(each) + " twice");
    result.push_back(normal);
  }
  return result;
}

}  // namespace lathe::onnx
