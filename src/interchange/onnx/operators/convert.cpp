#include "interchange/onnx/operators/convert.h"

#include "ops/build.h"

namespace lathe::onnx::operators {

namespace {

using ir::TypeCode;

bool saturates(DType dtype) {
  return dtype.code == TypeCode::float8_e4m3fn || dtype.code == TypeCode::float8_e4m3fnuz ||
         dtype.code == TypeCode::float8_e5m2 || dtype.code == TypeCode::float8_e5m2fnuz;
}

// A type that holds every value of `from` that a float8 tells apart: wider integers saturate far below where float64
// begins to round.
DType exact_float(DType from) {
  if (from.is_floating()) return from.bits < 32 ? DType::float32() : from;
  return from.bits <= 16 ? DType::float32() : DType::float_(64);
}

// The exponent of float32 is float8e8m0's code; the fraction says whether the next one is meant. Below 2^-126 float32
// has no exponent: 2^-127, code 0, is half of the fraction's range there. Signs are dropped: the type has none.
ir::Expr power_code(const ir::Expr& single, const Conversion& how) {
  using ir::select;
  const DType word = DType::uint(32);
  const auto n = [&](int64_t value) { return ir::constant(word, value); };
  const ir::Expr bits = ir::call(word, ir::intrinsic::reinterpret, {single});
  const ir::Expr exponent = ir::floormod(ir::floordiv(bits, n(1 << 23)), n(256));
  const ir::Expr fraction = ir::floormod(bits, n(1 << 23)), is_subnormal = ir::eq(exponent, n(0));
  const auto reaches = [&](int64_t normal, int64_t subnormal) {
    return ir::cast(word, ir::ge(fraction, select(is_subnormal, n(subnormal), n(normal))));
  };
  ir::Expr code = exponent;
  if (how.powers == Conversion::Powers::up) code = code + reaches(1, 0x400001);
  if (how.powers == Conversion::Powers::nearest) code = code + reaches(0x400000, 0x600000);
  const ir::Expr infinite = ir::eq(exponent, n(255)), is_nan = ir::logical_and(infinite, ir::ne(fraction, n(0)));
  if (how.saturate) {
    code = select(is_nan, n(255), ir::min(code, n(254)));
  } else {
    const ir::Expr too_small = ir::logical_and(is_subnormal, ir::lt(fraction, n(0x400000)));
    code = select(ir::logical_or(infinite, too_small), n(255), code);
  }
  return ir::cast(DType::uint(8), code);
}

Expr to_powers(NodeImport& c, const Expr& x, DType to, const Conversion& how) {
  const Expr single = c.cast(x, DType::float32());
  return ops::build::elementwise(
      c.builder(), {single}, *relax::as_tensor(x)->shape,
      [&](const ops::Indices& element, const ops::Indices&) {
        return ir::call(to, ir::intrinsic::reinterpret, {power_code(element[0], how)});
      },
      "to_powers_of_two");
}

}  // namespace

Conversion read_conversion(NodeImport& c) {
  Conversion how;
  if (c.version >= 19) how.saturate = c.attributes.flag("saturate", true);
  if (c.version < 24) return how;
  const std::string mode = c.attributes.word("round_mode", {"up", "down", "nearest"});
  how.powers = mode == "up"     ? Conversion::Powers::up
               : mode == "down" ? Conversion::Powers::down
                                : Conversion::Powers::nearest;
  return how;
}

Expr converted(NodeImport& c, const Expr& x, DType to, const Conversion& how) {
  const DType from = relax::as_tensor(x)->dtype;
  // A type that has infinities saturates its own, too.
  if (from == to && (!how.saturate || to.code != TypeCode::float8_e5m2)) return x;
  if (to.code == TypeCode::float8_e8m0fnu) return to_powers(c, x, to, how);
  if (!saturates(to) || !how.saturate || from.is_bool()) return c.cast(x, to);
  const DType wide = exact_float(from);
  const double largest = *ir::as_float(ir::max_value(to));
  return c.cast(c.call(ops::clip, {c.cast(x, wide), c.scalar(wide, -largest), c.scalar(wide, largest)}), to);
}

}  // namespace lathe::onnx::operators
