// The plain steps of composites.
#include "ops/build.h"

namespace lathe::ops::build {

const Shape& shape_of(const Value& x) { return *relax::as_tensor(x)->shape; }
DType dtype_of(const Value& x) { return relax::as_tensor(x)->dtype; }

Value cast(BlockBuilder& b, Value x, DType dtype) {
  if (dtype_of(x) == dtype) return x;
  return b.call(ops::astype, {std::move(x)}, ir::make<AstypeAttributes>(dtype)).value_or_throw();
}

Value scalar(DType dtype, double value) {
  const uint64_t bits =
      dtype.is_floating() ? ir::encode_float(dtype, value) : static_cast<uint64_t>(static_cast<int64_t>(value));
  return relax::constant(ir::tensor_data(
      dtype, {}, std::string(reinterpret_cast<const char*>(&bits), static_cast<size_t>(dtype.element_bytes()))));
}

Value reshape(BlockBuilder& b, Value x, Shape shape) {
  if (relax::same_shape(shape_of(x), shape)) return x;
  return b.call(ops::reshape, {std::move(x), ir::make<relax::ShapeExpr>(std::move(shape))}).value_or_throw();
}

Value permuted(BlockBuilder& b, const Value& x, Axes order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  return b.call(ops::permute_dims, {x}, ir::make<PermuteDimsAttributes>(std::optional(std::move(order))))
      .value_or_throw();
}

Value elementwise(BlockBuilder& b, std::vector<Value> operands, const Shape& shape, const ElementFunction& f,
                  const std::string& name) {
  const auto build = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const Indices& at) {
          Indices elements;
          for (const Tensor& operand : in) elements.push_back(te::topi::broadcast_load(operand, shape, at));
          return f(elements, at);
        },
        in, name)};
  };
  return b.call_te(name, std::move(operands), build).value_or_throw();
}

Value mean(BlockBuilder& b, const Value& x, const Axes& axes) {
  return b.call(ops::mean, {x}, ir::make<ReduceAttributes>(std::optional(axes), true)).value_or_throw();
}

Value variance(BlockBuilder& b, const Value& x, const Value& mean_of_x, const Axes& axes) {
  const Value away = b.call(ops::subtract, {x, mean_of_x}).value_or_throw();
  return mean(b, b.call(ops::multiply, {away, away}).value_or_throw(), axes);
}

}  // namespace lathe::ops::build
