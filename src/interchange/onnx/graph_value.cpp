#include "interchange/onnx/graph_value.h"

namespace lathe::onnx {

using ir::DType;

std::optional<Integers> integers_of(const ir::TensorDataNode& data) {
  if (data.dtype != DType::int64() && data.dtype != DType::int32() && !data.dtype.is_bool()) return std::nullopt;
  const int64_t count = data.elements();
  if (count > most_integers) return std::nullopt;
  Integers result;
  for (int64_t i = 0; i < count; ++i) result.push_back(ir::int64(ir::int_at(data, i)));
  return result;
}

std::optional<std::vector<int64_t>> constants_of(const Integers& integers) {
  std::vector<int64_t> result;
  for (const ir::Expr& e : integers) {
    const auto value = ir::as_int(e);
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

ir::TensorData tensor_of(const GraphValue& value) {
  const auto constants = constants_of(*value.integers);
  if (!constants) return {};
  std::string bytes;
  for (const int64_t item : *constants)
    bytes.append(reinterpret_cast<const char*>(&item), static_cast<size_t>(value.dtype.element_bytes()));
  return ir::tensor_data(value.dtype, value.dims, std::move(bytes));
}

}  // namespace lathe::onnx
