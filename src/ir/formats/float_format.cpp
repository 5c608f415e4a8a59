#include "ir/formats/float_format.h"

#include <cmath>
#include <limits>

#include "support/diagnostic.h"

namespace lathe::ir {

FloatFormat float_format(DType dtype) {
  using enum FloatFormat::Special;
  switch (dtype.code) {
    case TypeCode::float_:
      return {5, 10, 15, ieee};
    case TypeCode::bfloat:
      return {8, 7, 127, ieee};
    case TypeCode::float8_e3m4:
      return {3, 4, 3, ieee};
    case TypeCode::float8_e4m3:
      return {4, 3, 7, ieee};
    case TypeCode::float8_e4m3b11fnuz:
      return {4, 3, 11, fnuz};
    case TypeCode::float8_e4m3fn:
      return {4, 3, 7, fn};
    case TypeCode::float8_e4m3fnuz:
      return {4, 3, 8, fnuz};
    case TypeCode::float8_e5m2:
      return {5, 2, 15, ieee};
    case TypeCode::float8_e5m2fnuz:
      return {5, 2, 16, fnuz};
    case TypeCode::float4_e2m1fn:
      return {2, 1, 1, none};
    default:
      support::unreachable("no narrow float");
  }
}

double largest_float(DType dtype) {
  if (dtype.is_ieee_float() && dtype.bits == 64) return std::numeric_limits<double>::max();
  if (dtype.is_ieee_float() && dtype.bits == 32) return static_cast<double>(std::numeric_limits<float>::max());
  if (dtype.code == TypeCode::float8_e8m0fnu) return 0x1p127;
  const FloatFormat f = float_format(dtype);
  const uint64_t hidden = uint64_t{1} << f.mantissa_bits, code = f.largest();
  return std::ldexp(static_cast<double>(hidden | (code & (hidden - 1))),
                    static_cast<int>(code >> f.mantissa_bits) - f.bias - f.mantissa_bits);
}

}  // namespace lathe::ir
