// Integers that stand for floats: quantize, dequantize.
#include "ops/composites/windows.h"

namespace lathe::ops::composites {

namespace {

struct QuantizeAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "QuantizeAttributes";
  int64_t axis = -1;
  DType out_dtype = DType::int_(8);
  static constexpr auto fields() {
    return std::tuple{field("axis", &QuantizeAttributes::axis), field("out_dtype", &QuantizeAttributes::out_dtype)};
  }
};

struct DequantizeAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "DequantizeAttributes";
  int64_t axis = -1;
  DType out_dtype = DType::float32();
  static constexpr auto fields() {
    return std::tuple{field("axis", &DequantizeAttributes::axis), field("out_dtype", &DequantizeAttributes::out_dtype)};
  }
};

// The scale or zero point to stand beside each element of x: one for all, or
// one along the axis.
Value per_channel(const Expansion& e, const Value& x, size_t i, std::string_view name, int64_t axis) {
  const Value& parameter = e.tensor(i);
  const Shape own = build::shape_of(x), given = build::shape_of(parameter);
  if (given.empty()) return parameter;
  if (given.size() != 1)
    e.refuse(codes::wrong_rank, std::string(name) + " is one number or one a channel, not " + relax::text_of(given));
  if (ir::is_int(given[0], 1)) return e.reshape(parameter, {});
  const auto at = static_cast<size_t>(e.axis(axis, own.size()));
  if (relax::different_extents(given[0], own[at]))
    e.refuse(codes::shape_mismatch, std::string(name) + " has " + relax::text_of(given[0]) +
                                        " numbers for the extent " + relax::text_of(own[at]) + " of axis " +
                                        std::to_string(at) + " of " + relax::text_of(own));
  build::expect_equal(e.b, given[0], own[at]);
  Shape column{own[at]};
  column.resize(own.size() - at, ir::int64(1));
  return e.reshape(parameter, std::move(column));
}

// A floating scale and an integer zero point.
void check_parameters(const Expansion& e) {
  const DType scale = build::dtype_of(e.tensor(1)), zero = build::dtype_of(e.tensor(2));
  if (!relax::contains(DTypeSet::floating, scale))
    e.refuse(codes::dtype_not_supported, "scale is of a floating dtype, not " + scale.str());
  if (!zero.is_integer() || zero.bits > 32)
    e.refuse(codes::dtype_not_supported, "zero_point is an integer of up to 32 bits, not " + zero.str());
}

// clamp(round(data / scale) + zero_point); halves are rounded to even.
Value expand_quantize(const Expansion& e) {
  const auto& a = e.attrs<QuantizeAttributes>();
  const Value& x = e.tensor(0);
  const DType own = build::dtype_of(x), out = a.out_dtype, zero_dtype = build::dtype_of(e.tensor(2));
  if (!relax::contains(DTypeSet::floating, own))
    e.refuse(codes::dtype_not_supported, "data is of a floating dtype, not " + own.str());
  if (!out.is_integer() || !out.is_scalar() || (out.bits != 8 && out.bits != 16 && out.bits != 32))
    e.refuse(codes::wrong_attribute, "out_dtype is an integer dtype of 8, 16 or 32 bits, not " + out.str());
  check_parameters(e);
  const Value scale = per_channel(e, x, 1, "scale", a.axis), zero = per_channel(e, x, 2, "zero_point", a.axis);
  const DType double_precision = DType::float_(64);
  const bool is_double = own == double_precision || build::dtype_of(scale) == double_precision;
  const DType quotient = is_double ? double_precision : DType::float32();
  // The sum is exact: float32 holds integers of 24 bits.
  const DType wide = is_double || out.bits > 16 || zero_dtype.bits > 16 ? double_precision : quotient;
  const Value ratio = e.call(ops::divide, {e.cast(x, quotient), e.cast(scale, quotient)});
  const Value sum = e.call(ops::add, {e.cast(e.call(ops::round, {ratio}), wide), e.cast(zero, wide)});
  const double count = std::ldexp(1.0, out.bits), low = out.is_uint() ? 0 : -count / 2;
  return e.cast(e.call(ops::clip, {sum, build::scalar(wide, low), build::scalar(wide, low + count - 1)}), out);
}

// (data - zero_point) * scale
Value expand_dequantize(const Expansion& e) {
  const auto& a = e.attrs<DequantizeAttributes>();
  const Value& x = e.tensor(0);
  const DType own = build::dtype_of(x), out = a.out_dtype;
  if (!own.is_integer() || own.bits > 32)
    e.refuse(codes::dtype_not_supported, "data is an integer of up to 32 bits, not " + own.str());
  if (!relax::contains(DTypeSet::floating, out) || out.bits < 16)
    e.refuse(codes::wrong_attribute, "out_dtype is float16, bfloat16, float32 or float64, not " + out.str());
  check_parameters(e);
  const Value scale = per_channel(e, x, 1, "scale", a.axis), zero = per_channel(e, x, 2, "zero_point", a.axis);
  const DType exact = own.bits > 16 || build::dtype_of(zero).bits > 16 ? DType::int64() : DType::int32();
  const bool is_double = out.bits == 64 || build::dtype_of(scale).bits == 64;
  const DType wide = is_double ? DType::float_(64) : DType::float32();
  const Value away = e.call(ops::subtract, {e.cast(x, exact), e.cast(zero, exact)});
  return e.cast(e.call(ops::multiply, {e.cast(away, wide), e.cast(scale, wide)}), out);
}

}  // namespace

const Operator quantize = composite("quantize", {{"data"}, {"scale"}, {"zero_point"}},
                                    relax::attributes_of<QuantizeAttributes>(), expand_quantize,
                                    "numpy.clip(numpy.rint(data / scale) + zero_point, "
                                    "numpy.iinfo(out_dtype).min, numpy.iinfo(out_dtype).max)");
const Operator dequantize =
    composite("dequantize", {{"data"}, {"scale"}, {"zero_point"}}, relax::attributes_of<DequantizeAttributes>(),
              expand_dequantize, "(data.astype('int64') - zero_point) * scale");

}  // namespace lathe::ops::composites
