// The number formats of floats of 16 bits and fewer: their fields, and what stands at the end of their range.
#pragma once

#include "ir/dtype.h"

namespace lathe::ir {

// A sign, an exponent field and a mantissa field; the value is (1 + m / 2^mantissa_bits) * 2^(e - bias), of e = 0
// m / 2^mantissa_bits * 2^(1 - bias).
struct FloatFormat {
  // Of the codes that are no such number.
  enum class Special : uint8_t {
    ieee,  // e all ones: infinity, NaN
    fn,    // all ones: NaN; no infinity
    fnuz,  // the sign alone, which is no zero: NaN; no infinity
    none,  // neither; beyond the largest is the largest, and NaN becomes -0
  };
  int exponent_bits, mantissa_bits, bias;
  Special special;

  constexpr bool has_infinity() const { return special == Special::ieee; }
  constexpr bool has_negative_zero() const { return special != Special::fnuz; }
  constexpr int min_exponent() const { return 1 - bias; }  // of the smallest normal number
  // Codes, the first two and infinity without a sign.
  constexpr uint64_t sign() const { return uint64_t{1} << (exponent_bits + mantissa_bits); }
  constexpr uint64_t top_exponent() const { return sign() - (uint64_t{1} << mantissa_bits); }
  constexpr uint64_t largest() const {
    return special == Special::ieee ? top_exponent() - 1 : sign() - (special == Special::fn ? 2 : 1);
  }
  constexpr uint64_t nan() const {
    if (special == Special::ieee) return top_exponent() | (uint64_t{1} << (mantissa_bits - 1));
    return special == Special::fn ? sign() - 1 : sign();
  }
  // What a number beyond the largest becomes.
  constexpr uint64_t overflow() const {
    return special == Special::ieee ? top_exponent() : special == Special::none ? largest() : nan();
  }
};

// Of a narrow float but float8_e8m0fnu, which has neither sign nor mantissa.
FloatFormat float_format(DType dtype);
// The largest finite number of a floating-point type.
double largest_float(DType dtype);

}  // namespace lathe::ir
