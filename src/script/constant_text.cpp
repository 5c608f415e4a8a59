#include "script/constant_text.h"

#include <cmath>

#include "support/hash.h"

namespace lathe::script {
namespace {

// Whether printing the values and reading them back gives the same bytes.
bool prints_exactly(const ir::TensorDataNode& data) {
  const int64_t count = data.elements();
  if (data.dtype.is_vector() || data.dtype.is_handle() || data.dtype.is_void()) return false;
  if (!data.dtype.is_floating()) {
    if (data.dtype.is_bool())
      for (int64_t i = 0; i < count; ++i)
        if (static_cast<uint8_t>(data.bytes[i]) > 1) return false;
    return data.dtype.storage_bits() == 4 || data.dtype.storage_bits() % 8 == 0;
  }
  for (int64_t i = 0; i < count; ++i)
    if (std::isnan(ir::float_at(data, i))) return false;
  return true;
}

std::string element(const ir::TensorDataNode& data, int64_t i) {
  if (data.dtype.is_bool()) return ir::int_at(data, i) ? "True" : "False";
  if (data.dtype == ir::DType::uint(64)) return std::to_string(static_cast<uint64_t>(ir::int_at(data, i)));
  if (!data.dtype.is_floating()) return std::to_string(ir::int_at(data, i));
  const Document text = floating(ir::float_at(data, i), data.dtype);
  return text.text[0] == '"' ? call("float", std::vector{text.text}).text : text.text;
}

std::string nested(const ir::TensorDataNode& data, size_t dimension, int64_t& at) {
  if (dimension == data.shape.size()) return element(data, at++);
  std::vector<std::string> items;
  for (int64_t i = 0; i < data.shape[dimension]; ++i) items.push_back(nested(data, dimension + 1, at));
  return list(items).text;
}

}  // namespace

std::string content_name(const ir::TensorDataNode& data) {
  return support::Hash128{data.content_high, data.content_low}.hex();
}

std::vector<std::string> constant_arguments(const ir::TensorDataNode& data, const PrintOptions& options) {
  const std::string dtype = string_literal(data.dtype.str()).text;
  const int64_t count = data.elements();
  if (count > 0 && count <= options.max_constant_elements && prints_exactly(data)) {
    int64_t at = 0;
    return {nested(data, 0, at), dtype};
  }
  std::vector<std::string> shape;
  for (const int64_t extent : data.shape) shape.push_back(std::to_string(extent));
  if (count == 0) return {"[]", dtype, "shape=" + tuple(shape).text};
  const std::string name = content_name(data);
  if (options.constants) options.constants->emplace(name, ir::TensorData(&data));
  return {string_literal("content:" + name).text, dtype, "shape=" + tuple(shape).text};
}

}  // namespace lathe::script
