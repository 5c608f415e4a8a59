#include "ir/dtype.h"

#include <charconv>
#include <limits>

namespace lathe::ir {
namespace {

struct NamedType {
  std::string_view name;
  DType dtype;
};

// Types whose name is not a code followed by a width.
constexpr NamedType named_types[] = {
    {"bool", DType::boolean()},
    {"bfloat16", DType::bfloat16()},
    {"float8_e3m4", {TypeCode::float8_e3m4, 8, 1}},
    {"float8_e4m3", {TypeCode::float8_e4m3, 8, 1}},
    {"float8_e4m3b11fnuz", {TypeCode::float8_e4m3b11fnuz, 8, 1}},
    {"float8_e4m3fn", {TypeCode::float8_e4m3fn, 8, 1}},
    {"float8_e4m3fnuz", {TypeCode::float8_e4m3fnuz, 8, 1}},
    {"float8_e5m2", {TypeCode::float8_e5m2, 8, 1}},
    {"float8_e5m2fnuz", {TypeCode::float8_e5m2fnuz, 8, 1}},
    {"float8_e8m0fnu", {TypeCode::float8_e8m0fnu, 8, 1}},
    {"float4_e2m1fn", {TypeCode::float4_e2m1fn, 4, 1}},
    {"handle", DType::handle()},
    {"void", DType::void_()},
};

std::optional<int> parse_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || text[0] == '-') return std::nullopt;
  return value;
}

std::optional<DType> parse_scalar(std::string_view name) {
  for (const NamedType& row : named_types)
    if (row.name == name) return row.dtype;
  const auto with_width = [&](std::string_view prefix, auto make, auto legal) -> std::optional<DType> {
    if (!name.starts_with(prefix)) return std::nullopt;
    const auto bits = parse_number(name.substr(prefix.size()));
    if (!bits || !legal(*bits)) return std::nullopt;
    return make(*bits);
  };
  const auto integer_width = [](int bits) { return bits >= 1 && bits <= 64; };
  const auto float_width = [](int bits) { return bits == 16 || bits == 32 || bits == 64; };
  if (auto t = with_width("int", [](int b) { return DType::int_(b); }, integer_width)) return t;
  if (auto t = with_width("uint", [](int b) { return DType::uint(b); }, integer_width)) return t;
  return with_width("float", [](int b) { return DType::float_(b); }, float_width);
}

}  // namespace

std::optional<DType> DType::parse(std::string_view name) {
  if (auto scalar = parse_scalar(name)) return scalar;
  const size_t cross = name.rfind('x');
  if (cross == std::string_view::npos) return std::nullopt;
  const auto scalar = parse_scalar(name.substr(0, cross));
  const auto lanes = parse_number(name.substr(cross + 1));
  if (!scalar || !lanes || *lanes < 1 || *lanes > 65535) return std::nullopt;
  return scalar->with_lanes(*lanes);
}

std::string DType::str() const {
  std::string text;
  for (const NamedType& row : named_types)
    if (row.dtype == element()) text = row.name;
  if (text.empty()) text = (is_int() ? "int" : is_uint() ? "uint" : "float") + std::to_string(bits);
  if (lanes != 1) text += "x" + std::to_string(lanes);
  return text;
}

int64_t min_integer(DType dtype) {
  if (!dtype.is_int()) return 0;
  return dtype.bits >= 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (dtype.bits - 1));
}

int64_t max_integer(DType dtype) {
  if (dtype.is_bool()) return 1;
  if (dtype.is_int())
    return dtype.bits >= 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (dtype.bits - 1)) - 1;
  return dtype.bits >= 64 ? -1 : static_cast<int64_t>((uint64_t{1} << dtype.bits) - 1);
}

int64_t wrap_integer(int64_t value, DType dtype) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.bits >= 64) return value;
  const uint64_t mask = (uint64_t{1} << dtype.bits) - 1;
  const uint64_t low = static_cast<uint64_t>(value) & mask;
  if (dtype.is_int() && (low >> (dtype.bits - 1))) return static_cast<int64_t>(low | ~mask);
  return static_cast<int64_t>(low);
}

}  // namespace lathe::ir
