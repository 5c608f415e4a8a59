#include "ops/composites/operands.h"

namespace lathe::ops::composites {

void expect_dtype(const Expansion& e, size_t i, std::string_view name, DTypeSet set) {
  const TensorStructInfo& info = *relax::as_tensor(e.tensor(i));
  if (relax::contains(set, info.dtype)) return;
  constexpr std::string_view names[] = {"anything", "numbers", "floats", "signed numbers", "integers", "bool"};
  e.refuse(codes::dtype_not_supported, "the argument '" + std::string(name) + "' is " + relax::text_of(info) +
                                           ", but it must be of " + std::string(names[static_cast<size_t>(set)]));
}

void expect_one_dtype(const Expansion& e, const std::vector<Value>& tensors) {
  for (const Value& each : tensors)
    if (build::dtype_of(each) != build::dtype_of(tensors[0]))
      e.refuse(codes::dtype_mismatch, "the dtypes " + build::dtype_of(tensors[0]).str() + " and " +
                                          build::dtype_of(each).str() + " differ; R.astype converts");
}

DType element_dtype(const Expansion& e, const std::optional<DType>& given, DType otherwise) {
  const DType dtype = given && !given->is_void() ? *given : otherwise;
  if (dtype.is_void()) e.refuse(codes::wrong_attribute, "the attribute 'dtype' is missing");
  if (!dtype.is_scalar() || !(dtype.is_floating() || dtype.is_integer() || dtype.is_bool()))
    e.refuse(codes::dtype_not_supported, "'" + dtype.str() + "' is no dtype of numbers or bool");
  return dtype;
}

Shape broadcast(const Expansion& e, const Value& a, const Value& b) {
  relax::Assumptions assumptions;
  Shape shape = relax::broadcast_shapes(build::shape_of(a), build::shape_of(b), &assumptions).value_or_throw();
  for (const auto& [actual, expected] : assumptions) build::expect_equal(e.b, actual, expected);
  return shape;
}

Expr integer_argument(const Expansion& e, size_t i, std::string_view name, const Expr& otherwise) {
  if (!e.has(i) && otherwise) return otherwise;
  const Expr number = e.scalar(i);
  if (!number->dtype.is_integer())
    e.refuse(codes::wrong_arguments,
             "the argument '" + std::string(name) + "' is a " + number->dtype.str() + ", but it must be an integer");
  return relax::simplified(ir::cast(DType::int64(), number));
}

Expr extent_argument(const Expansion& e, size_t i, std::string_view name, const Expr& otherwise) {
  const Expr number = integer_argument(e, i, name, otherwise);
  if (const auto known = ir::as_int(number); known && *known < 0)
    e.refuse(codes::shape_mismatch,
             "the argument '" + std::string(name) + "' is " + std::to_string(*known) + ", but an extent is 0 or more");
  return relax::non_negative(number);
}

Value scalar_tensor(const Expansion& e, DType dtype, const Expr& number) {
  const Expr value = ir::cast(dtype, number);
  const auto whole = ir::as_int(value);
  const auto real = dtype.is_floating() ? ir::as_float(value) : std::nullopt;
  if (!whole && !real) {
    const Value vector = e.call(ops::shape_to_tensor, {ir::make<relax::ShapeExpr>(Shape{number})});
    return e.reshape(e.cast(vector, dtype), {});
  }
  const uint64_t bits = real ? ir::encode_float(dtype, *real) : static_cast<uint64_t>(*whole);
  return relax::constant(ir::tensor_data(
      dtype, {}, std::string(reinterpret_cast<const char*>(&bits), static_cast<size_t>(dtype.element_bytes()))));
}

Numbers::Read Numbers::add(const Expansion& e, DType dtype, const Expr& number) {
  const Expr value = ir::cast(dtype, number);
  if (ir::as_int(value) || ir::as_float(value)) return [value](const std::vector<Tensor>&) { return value; };
  operands.push_back(scalar_tensor(e, dtype, number));
  return [at = operands.size() - 1](const std::vector<Tensor>& in) { return in[at](Indices{}); };
}

}  // namespace lathe::ops::composites
