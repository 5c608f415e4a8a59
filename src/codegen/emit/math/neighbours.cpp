// hypot, ldexp and nextafter: functions of the representation, and one that minds its ends.
#include "codegen/emit/math/building.h"
#include "ir/formats/float_format.h"

namespace lathe::codegen::math {

// sqrt(x^2 + y^2) within 1.25 units in the last place: numbers whose squares leave the range are scaled by a power of
// two first. An infinity wins over a NaN.
Expr hypot_double(Terms& t, const Expr& x, const Expr& y) {
  const Expr a = t(magnitude(x)), b = t(magnitude(y));
  const Expr most = t(select(a > b, a, b));
  const Expr large = t(most > number(x, 0x1p500)), small = t(most < number(x, 0x1p-500));
  const Expr scale = t(select(large, number(x, 0x1p-600), select(small, number(x, 0x1p600), number(x, 1.0))));
  const Expr back = select(large, number(x, 0x1p600), select(small, number(x, 0x1p-600), number(x, 1.0)));
  const Expr p = t(a * scale), q = t(b * scale);
  const Expr square = t(q * q);
  const Expr root = t(square_root(fma(p, p, square)) * back);
  const Expr infinity = number(x, infinite());
  return select(logical_or(eq(a, infinity), eq(b, infinity)), infinity, root);
}

// In three factors, none of which rounds but the last: one that may leave the normal numbers leaves 53 bits above them.
Expr ldexp_double(Terms& t, const Expr& x, const Expr& k) {
  const auto whole = [&](int64_t n) { return constant(k->dtype, n); };
  Expr left = k, y = x;
  for (int step = 0; step < 2; ++step) {
    const Expr above = t(left > whole(1023)), below = t(left < whole(-1022));
    y = t(y * select(above, number(x, 0x1p1023), select(below, number(x, 0x1p-969), number(x, 1.0))));
    left = t(left - select(above, whole(1023), select(below, whole(-969), whole(0))));
  }
  const Expr bounded = t(max(min(left, whole(1023)), whole(-1022)));
  return y * from_bits(shift_left(bounded + whole(1023), 52));
}

Expr next_after(Terms& t, const Expr& x, const Expr& y) {
  const DType type = x->dtype, stored = word_of(type);
  const DType word = DType::int_(std::max<int>(type.bits, 32), type.lanes);
  const auto whole = [&](int64_t n) { return constant(word, n); };
  const uint64_t top = uint64_t{1} << (type.bits - 1);
  const auto sign = static_cast<int64_t>(top), low = static_cast<int64_t>(top - 1);
  const bool is_signed = type.code != TypeCode::float8_e8m0fnu;
  // Integers in the order of the floats: magnitudes with their sign, both zeros 0.
  const auto ordered = [&](const Expr& value) -> Expr {
    const Expr bits = t(cast(word, call(stored, intrinsic::reinterpret, {value})));
    if (!is_signed) return t(bit_and(bits, low | sign));
    const Expr size = t(bit_and(bits, low));
    return t(select(ne(bit_and(bits, word.bits == type.bits ? ~low : sign), whole(0)), whole(0) - size, size));
  };
  const Expr from = ordered(x), to = ordered(y);
  const Expr next = t(from + select(from < to, whole(1), whole(-1)));
  Expr stepped = next;
  if (is_signed) {
    const bool has_negative_zero = type.bits > 16 || float_format(type).has_negative_zero();
    const Expr mark = constant(word, word.bits == type.bits ? ~low : sign);
    stepped = t(select(next < whole(0), bit_or(whole(0) - next, mark), next));
    // A step from below up to zero keeps the sign, where zero has one.
    if (has_negative_zero) stepped = t(select(logical_and(eq(next, whole(0)), from < whole(0)), mark, stepped));
  }
  const Expr neighbour = call(type, intrinsic::reinterpret, {cast(stored, stepped)});
  return select(is_nan(x), x, select(logical_or(is_nan(y), eq(from, to)), y, neighbour));
}

}  // namespace lathe::codegen::math
