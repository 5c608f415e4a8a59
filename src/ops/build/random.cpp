// Numbers drawn by counting: the number of a place is a function of the place and the stream alone, so any part of a
// tensor can be computed in any order, and every run gives the same.
#include "ops/build.h"

namespace lathe::ops::build {

namespace {

constexpr DType word = DType::uint(64), wide = DType::float_(64);
constexpr uint64_t golden = 0x9e3779b97f4a7c15;  // 2^64 / phi: SplitMix64's distance between neighbours

Expr bits(uint64_t value) { return ir::constant(word, static_cast<int64_t>(value)); }

Expr folded(const Expr& z, int64_t shift) {
  return ir::call(word, ir::intrinsic::bitwise_xor,
                  {z, ir::call(word, ir::intrinsic::shift_right, {z, ir::constant(word, shift)})});
}

// SplitMix64 ("Fast splittable pseudorandom number generators", 2014): the output for the state of a place.
Expr bits_at(uint64_t stream, const Expr& place) {
  Expr z = (ir::cast(word, place) + bits(1)) * bits(golden) + bits(stream);
  z = folded(z, 30) * bits(0xbf58476d1ce4e5b9);
  z = folded(z, 27) * bits(0x94d049bb133111eb);
  return folded(z, 31);
}

// The `count` bits from bit `first` as a number from 0 on, below 1.
Expr fraction(const Expr& z, int64_t first, int64_t count) {
  const Expr high = ir::call(word, ir::intrinsic::shift_left, {z, ir::constant(word, 64 - first - count)});
  const Expr field = ir::call(word, ir::intrinsic::shift_right, {high, ir::constant(word, 64 - count)});
  return ir::cast(wide, ir::cast(DType::int64(), field)) *
         ir::constant(wide, std::ldexp(1.0, static_cast<int>(-count)));
}

Tensor bits_of(const Shape& shape, uint64_t stream) {
  return te::compute(
      shape,
      [&](const Indices& at) {
        Expr place = ir::int64(0);
        for (size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + at[d];
        return bits_at(stream, place);
      },
      {}, "random_bits");
}

Value drawn(BlockBuilder& b, const Shape& shape, uint64_t stream, DType dtype, const char* name,
            const std::function<Expr(const Expr& bits)>& number) {
  const auto build = [&](const std::vector<Tensor>&) {
    const Tensor z = bits_of(shape, stream);
    return std::vector{te::compute(shape, [&](const Indices& i) { return ir::cast(dtype, number(z(i))); }, {z}, name)};
  };
  return b.call_te(name, {}, build).value_or_throw();
}

}  // namespace

uint64_t stream_of(uint64_t seed) {
  uint64_t z = seed + golden;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Value random_uniform(BlockBuilder& b, const Shape& shape, uint64_t stream, DType dtype, double low, double high) {
  return drawn(b, shape, stream, dtype, "random_uniform", [&](const Expr& z) {
    return ir::constant(wide, low) + fraction(z, 11, 53) * ir::constant(wide, high - low);
  });
}

Value random_normal(BlockBuilder& b, const Shape& shape, uint64_t stream, DType dtype, double mean, double deviation) {
  return drawn(b, shape, stream, dtype, "random_normal", [&](const Expr& z) {
    // Box and Muller: a radius from the upper half, never of zero, and an angle from the lower.
    const Expr upper = fraction(z, 32, 32) + ir::constant(wide, std::ldexp(1.0, -33));
    const Expr radius = ir::call(ir::intrinsic::sqrt, ir::call(ir::intrinsic::log, upper) * ir::constant(wide, -2.0));
    const Expr angle = fraction(z, 0, 32) * ir::constant(wide, 6.283185307179586);
    return ir::constant(wide, mean) + radius * ir::call(ir::intrinsic::cos, angle) * ir::constant(wide, deviation);
  });
}

Value random_choice(BlockBuilder& b, const Value& shares, const Expr& count, uint64_t stream, DType dtype) {
  const Shape own = shape_of(shares), shape{own[0], count};
  const Value sums =
      reshape(b, cumulate(b, reshape(b, cast(b, shares, wide), {own[0], own[1], ir::int64(1)}), {}), own);
  const Value at = random_uniform(b, shape, stream, wide, 0, 1);
  const Expr last = relax::simplified(ir::max(own[1] - 1, ir::int64(0)));
  const auto build = [&](const std::vector<Tensor>& in) {
    const te::IterVar k = te::reduce_axis(ir::int64(0), own[1], "k");
    const Tensor passed = te::compute(
        shape,
        [&](const Indices& i) {
          const Expr level = in[1](i) * in[0]({i[0], last});
          return te::sum(ir::cast(DType::int64(), in[0]({i[0], k->var}) <= level), {k});
        },
        in, "random_choice");
    return std::vector{te::compute(
        shape, [&](const Indices& i) { return ir::cast(dtype, ir::min(passed(i), last)); }, {passed}, "chosen")};
  };
  return b.call_te("random_choice", {sums, at}, build).value_or_throw();
}

}  // namespace lathe::ops::build
