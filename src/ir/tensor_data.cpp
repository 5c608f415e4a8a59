#include "ir/tensor_data.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ir/build.h"
#include "ir/formats/float_format.h"

namespace lathe::ir {

int64_t TensorDataNode::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

TensorData tensor_data(DType dtype, std::vector<int64_t> shape, const void* bytes, std::shared_ptr<const void> owner) {
  TensorData tensor = make<TensorDataNode>(dtype, std::move(shape));
  auto* node = const_cast<TensorDataNode*>(tensor.get());
  node->bytes = static_cast<const char*>(bytes);
  node->owner = std::move(owner);
  const support::Hash128 hash = support::hash_bytes(node->view());
  node->content_high = hash.high;
  node->content_low = hash.low;
  return tensor;
}

TensorData tensor_data(DType dtype, std::vector<int64_t> shape, std::string bytes) {
  auto owner = std::make_shared<std::string>(std::move(bytes));
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  support::require(static_cast<int64_t>(owner->size()) == dtype.storage_bytes(count), "tensor data of the wrong size");
  const void* data = owner->data();
  return tensor_data(dtype, std::move(shape), data, std::move(owner));
}

namespace {

uint64_t raw_bits(const TensorDataNode& tensor, int64_t index) {
  const int64_t bits = tensor.dtype.storage_bits();
  uint64_t word = 0;
  if (bits >= 8) {
    std::memcpy(&word, tensor.bytes + index * (bits / 8), static_cast<size_t>(bits / 8));
    return word;
  }
  const int64_t at = index * bits;
  return (static_cast<uint8_t>(tensor.bytes[at / 8]) >> (at % 8)) & ((1u << bits) - 1);
}

}  // namespace

uint64_t encode_float(DType dtype, double value) {
  if (dtype.is_ieee_float() && dtype.bits == 64) return std::bit_cast<uint64_t>(value);
  if (dtype.is_ieee_float() && dtype.bits == 32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const double rounded = round_to(dtype, value);
  if (dtype.code == TypeCode::float8_e8m0fnu) {
    if (!(rounded > 0)) return rounded == 0 ? 0 : 0xff;
    return static_cast<uint64_t>(std::ilogb(rounded) + 127) & 0xff;
  }
  const FloatFormat f = float_format(dtype);
  const uint64_t sign = std::signbit(rounded) ? f.sign() : 0;
  if (std::isnan(rounded)) return sign | f.nan();
  if (std::isinf(rounded)) return sign | f.overflow();
  if (rounded == 0) return f.has_negative_zero() ? sign : 0;
  const int exponent = std::max(std::ilogb(rounded), f.min_exponent());
  const auto scaled = static_cast<uint64_t>(std::ldexp(std::fabs(rounded), f.mantissa_bits - exponent));
  const uint64_t hidden = uint64_t{1} << f.mantissa_bits;
  if (scaled < hidden) return sign | scaled;  // denormal
  return sign | (static_cast<uint64_t>(exponent + f.bias) << f.mantissa_bits) | (scaled - hidden);
}

double decode_float(DType dtype, uint64_t bits) {
  if (dtype.is_ieee_float() && dtype.bits == 64) return std::bit_cast<double>(bits);
  if (dtype.is_ieee_float() && dtype.bits == 32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (dtype.code == TypeCode::float8_e8m0fnu) return bits == 0xff ? nan : std::ldexp(1.0, static_cast<int>(bits) - 127);
  const FloatFormat f = float_format(dtype);
  const uint64_t mantissa = bits & ((uint64_t{1} << f.mantissa_bits) - 1);
  const uint64_t magnitude_bits = bits & (f.sign() - 1), exponent = magnitude_bits >> f.mantissa_bits;
  const bool negative = bits & f.sign();
  if (!f.has_negative_zero() && negative && magnitude_bits == 0) return nan;
  if (magnitude_bits > f.largest()) {
    if (!f.has_infinity() || mantissa) return nan;
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  const double magnitude = exponent == 0 ? std::ldexp(static_cast<double>(mantissa), f.min_exponent() - f.mantissa_bits)
                                         : std::ldexp(static_cast<double>(mantissa | (uint64_t{1} << f.mantissa_bits)),
                                                      static_cast<int>(exponent) - f.bias - f.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

int64_t int_at(const TensorDataNode& tensor, int64_t index) {
  if (tensor.dtype.is_floating()) return static_cast<int64_t>(float_at(tensor, index));
  return wrap_integer(static_cast<int64_t>(raw_bits(tensor, index)), tensor.dtype);
}

double float_at(const TensorDataNode& tensor, int64_t index) {
  if (tensor.dtype.is_floating()) return decode_float(tensor.dtype, raw_bits(tensor, index));
  const int64_t value = int_at(tensor, index);
  if (tensor.dtype.is_uint() && tensor.dtype.bits == 64) return static_cast<double>(static_cast<uint64_t>(value));
  return static_cast<double>(value);
}

void pack_elements(const uint8_t* from, int64_t count, int bits, uint8_t* to) {
  if (count == 0) return;  // there may be no memory at all
  std::memset(to, 0, static_cast<size_t>((count * bits + 7) / 8));
  for (int64_t i = 0; i < count; ++i) {
    const unsigned element = from[i] & ((1u << bits) - 1);
    uint8_t& byte = to[i * bits / 8];
    byte = static_cast<uint8_t>(byte | element << (i * bits % 8));
  }
}

void unpack_elements(const uint8_t* from, int64_t count, int bits, bool is_signed, uint8_t* to) {
  const unsigned sign = is_signed ? 1u << (bits - 1) : 0;
  for (int64_t i = 0; i < count; ++i) {
    const unsigned element = (from[i * bits / 8] >> (i * bits % 8)) & ((1u << bits) - 1);
    to[i] = static_cast<uint8_t>((element ^ sign) - sign);
  }
}

}  // namespace lathe::ir

LATHE_DEFINE_KIND(lathe::ir::TensorDataNode)
