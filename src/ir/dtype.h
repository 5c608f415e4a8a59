// DType: the type of a scalar, or of a short vector of scalars ("float32", "int64x4", "bool", "handle").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::ir {

// What the bits mean. Names and semantics of the float8 family follow OCP OFP8 and ml_dtypes; e8m0fnu and
// e2m1fn follow OCP Microscaling (MX) 1.0.
enum class TypeCode : uint8_t {
  int_,
  uint,
  boolean,
  float_,  // IEEE 754 binary16, binary32, binary64 by bits
  bfloat,
  float8_e3m4,
  float8_e4m3,
  float8_e4m3b11fnuz,
  float8_e4m3fn,
  float8_e4m3fnuz,
  float8_e5m2,
  float8_e5m2fnuz,
  float8_e8m0fnu,
  float4_e2m1fn,
  handle,  // an address
  void_,
};

struct DType {
  TypeCode code = TypeCode::void_;
  uint8_t bits = 0;
  uint16_t lanes = 1;

  static constexpr DType int_(int bits, int lanes = 1) { return {TypeCode::int_, uint8_t(bits), uint16_t(lanes)}; }
  static constexpr DType uint(int bits, int lanes = 1) { return {TypeCode::uint, uint8_t(bits), uint16_t(lanes)}; }
  static constexpr DType float_(int bits, int lanes = 1) { return {TypeCode::float_, uint8_t(bits), uint16_t(lanes)}; }
  static constexpr DType bfloat16(int lanes = 1) { return {TypeCode::bfloat, 16, uint16_t(lanes)}; }
  static constexpr DType boolean(int lanes = 1) { return {TypeCode::boolean, 1, uint16_t(lanes)}; }
  static constexpr DType handle() { return {TypeCode::handle, 64, 1}; }
  static constexpr DType void_() { return {TypeCode::void_, 0, 1}; }
  static constexpr DType int32() { return int_(32); }
  static constexpr DType int64() { return int_(64); }
  static constexpr DType float32() { return float_(32); }

  // The type named `name` ("float32", "int8x16", "bool", "bfloat16", "float8_e4m3fn", "handle", "void"), or nothing.
  static std::optional<DType> parse(std::string_view name);
  std::string str() const;

  constexpr bool is_int() const { return code == TypeCode::int_; }
  constexpr bool is_uint() const { return code == TypeCode::uint; }
  constexpr bool is_bool() const { return code == TypeCode::boolean; }
  // Signed or unsigned integer, not bool.
  constexpr bool is_integer() const { return is_int() || is_uint(); }
  // Any floating-point type, the narrow ones included.
  constexpr bool is_floating() const { return code >= TypeCode::float_ && code <= TypeCode::float4_e2m1fn; }
  constexpr bool is_ieee_float() const { return code == TypeCode::float_; }
  constexpr bool is_bfloat16() const { return code == TypeCode::bfloat; }
  constexpr bool is_handle() const { return code == TypeCode::handle; }
  constexpr bool is_void() const { return code == TypeCode::void_; }
  constexpr bool is_scalar() const { return lanes == 1; }
  constexpr bool is_vector() const { return lanes > 1; }

  constexpr DType with_lanes(int n) const { return {code, bits, uint16_t(n)}; }
  constexpr DType element() const { return with_lanes(1); }
  // Bytes that one scalar takes in memory; sub-byte types are packed, low bits first: see `storage_bytes`.
  constexpr int64_t element_bytes() const { return (storage_bits() + 7) / 8; }
  // Bits that one scalar takes in a buffer: bool takes a byte.
  constexpr int64_t storage_bits() const { return is_bool() ? 8 : bits; }
  // Bytes of a compact buffer of `count` elements of this type (lanes included).
  constexpr int64_t storage_bytes(int64_t count) const { return (count * lanes * storage_bits() + 7) / 8; }

  friend constexpr bool operator==(const DType&, const DType&) = default;
};

// The smallest and largest value of an integer type (bool: 0 and 1), for types of up to 64 bits; uint64's maximum is
// returned as the bit pattern -1.
int64_t min_integer(DType dtype);
int64_t max_integer(DType dtype);

// `value` wrapped to the range of an integer type of up to 64 bits, sign-extended (int) or zero-extended (uint).
int64_t wrap_integer(int64_t value, DType dtype);

}  // namespace lathe::ir
