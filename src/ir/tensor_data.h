// TensorData: the bytes of a constant tensor, shared and immutable; they may be mapped from a file and are never
// copied on import. Compact row-major, little-endian; sub-byte types packed low bits first.
#pragma once

#include "ir/dtype.h"
#include "ir/fields.h"

namespace lathe::ir {

struct TensorDataNode : Node {
  static constexpr std::string_view family = "tensor_data";
  using family_type = TensorDataNode;
  static constexpr std::string_view kind_name = "TensorData";
  DType dtype;
  std::vector<int64_t> shape;
  const char* bytes = nullptr;
  std::shared_ptr<const void> owner;  // keeps `bytes` alive

  int64_t elements() const;
  int64_t byte_size() const { return dtype.storage_bytes(elements()); }
  std::string_view view() const { return {bytes, static_cast<size_t>(byte_size())}; }

  uint64_t content_high = 0, content_low = 0;  // hash of the bytes: equality goes by it
  static constexpr auto fields() {
    return std::tuple{field("dtype", &TensorDataNode::dtype), field("shape", &TensorDataNode::shape),
                      field("content_high", &TensorDataNode::content_high),
                      field("content_low", &TensorDataNode::content_low)};
  }
};
using TensorData = Ref<TensorDataNode>;

// A tensor over bytes that `owner` keeps alive. The bytes are hashed once.
TensorData tensor_data(DType dtype, std::vector<int64_t> shape, const void* bytes, std::shared_ptr<const void> owner);
// A tensor that owns a copy of `bytes`.
TensorData tensor_data(DType dtype, std::vector<int64_t> shape, std::string bytes);
// A tensor of values: `tensor_of<int64_t>({2}, {3, 4})`. T is the C type of the dtype.
template <class T>
TensorData tensor_of(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  return tensor_data(dtype, std::move(shape),
                     std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

// Element `index` (row-major) of any integer, bool or floating tensor.
int64_t int_at(const TensorDataNode& tensor, int64_t index);
double float_at(const TensorDataNode& tensor, int64_t index);

// The bits of `value` as `dtype`, and back (8, 16 and 4-bit floats included; bool and integers wrap).
uint64_t encode_float(DType dtype, double value);
double decode_float(DType dtype, uint64_t bits);

// Elements of 2 or 4 bits, from one a byte to packed ones, low bits first, and back; signed ones are extended. `to`
// holds (count * bits + 7) / 8 bytes, or `count`.
void pack_elements(const uint8_t* from, int64_t count, int bits, uint8_t* to);
void unpack_elements(const uint8_t* from, int64_t count, int bits, bool is_signed, uint8_t* to);

}  // namespace lathe::ir

LATHE_DECLARE_KIND(lathe::ir::TensorDataNode)
