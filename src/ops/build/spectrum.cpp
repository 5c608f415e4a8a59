// Discrete Fourier transforms, term by term. The angle of a term is a whole multiple of a turn's n-th part, so sines
// and cosines come from a table, which is exact for any length.
#include "ops/build.h"

namespace lathe::ops::build {

namespace {

constexpr double turn = 6.283185307179586;

// cos and sin of i / length of a turn: two tensors.
std::pair<Tensor, Tensor> turn_table(const Expr& length, DType dtype) {
  const DType wide = DType::float_(64);
  const auto table = [&](const ir::Intrinsic& function, const char* name) {
    return te::compute(
        {length},
        [&](const Indices& i) {
          const Expr part = ir::div(ir::cast(wide, i[0]), ir::cast(wide, length));
          return ir::cast(dtype, ir::call(function, part * ir::constant(wide, turn)));
        },
        {}, name);
  };
  return {table(ir::intrinsic::cos, "cosines"), table(ir::intrinsic::sin, "sines")};
}

// Part `part` (0 real, 1 imaginary) of (re + j im) * (c + j s), where s has its sign already.
Expr part_of_product(const Expr& part, const Expr& re, const Expr& im, const Expr& c, const Expr& s) {
  if (!im) return re * ir::select(ir::eq(part, ir::int64(0)), c, s);
  return ir::select(ir::eq(part, ir::int64(0)), re * c - im * s, re * s + im * c);
}

bool is_complex(const Shape& shape) {
  const auto parts = ir::as_int(shape.back());
  if (!parts || (*parts != 1 && *parts != 2))
    throw support::DiagnosticError(relax::wrong(
        codes::shape_mismatch,
        "a signal's last dimension is 1 or 2, real or complex, but it is " + relax::text_of(shape.back())));
  return *parts == 2;
}

}  // namespace

Value fourier(BlockBuilder& b, const Value& x, const FourierTransform& how) {
  const Shape own = shape_of(x);
  const auto axis = static_cast<size_t>(how.axis);
  const bool complex_in = is_complex(own), gives_real = how.inverse && how.onesided;
  const Expr half = relax::simplified(ir::floordiv(how.length, ir::int64(2)) + 1);
  Shape shape = own;
  shape[axis] = how.onesided && !how.inverse ? half : how.length;
  shape.back() = ir::int64(gives_real ? 1 : 2);
  const Expr used = relax::simplified(ir::min(gives_real ? half : how.length, own[axis]));
  const DType dtype = dtype_of(x), wide = relax::accumulation_dtype(dtype);
  const auto build = [&](const std::vector<Tensor>& in) {
    const auto [cosines, sines] = turn_table(how.length, wide);
    const te::IterVar k = te::reduce_axis(ir::int64(0), used, "k");
    const Tensor sums = te::compute(
        shape,
        [&](const Indices& i) {
          Indices at = i;
          at[axis] = k->var;
          const auto component = [&](int64_t c) {
            at.back() = ir::int64(c);
            return ir::cast(wide, in[0](at));
          };
          const Expr re = component(0), im = complex_in ? component(1) : Expr();
          const Expr step = ir::floormod(k->var * i[axis], ir::max(how.length, ir::int64(1)));
          const Expr c = cosines({step}), sine = sines({step});
          const Expr s = how.inverse ? sine : ir::constant(wide, 0) - sine;
          if (!gives_real) return te::sum(part_of_product(i.back(), re, im, c, s), {k});
          // The other half of the spectrum are the conjugates, but of the first term and of the middle one.
          const Expr is_alone = ir::logical_or(ir::eq(k->var, ir::int64(0)), ir::eq(k->var * 2, how.length));
          const Expr term = part_of_product(ir::int64(0), re, im, c, s);
          return te::sum(ir::select(is_alone, ir::constant(wide, 1), ir::constant(wide, 2)) * term, {k});
        },
        {in[0], cosines, sines}, "fourier");
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          const Expr value = sums(i);
          return ir::cast(dtype, how.inverse ? ir::div(value, ir::cast(wide, how.length)) : value);
        },
        {sums}, "fourier_result")};
  };
  return b.call_te("fourier", {x}, build).value_or_throw();
}

Value short_time_fourier(BlockBuilder& b, const Value& signal, const Value& window, const Expr& length,
                         const Expr& step, bool onesided) {
  const Shape own = shape_of(signal);
  const bool complex_in = is_complex(own);
  const Expr bins = onesided ? relax::simplified(ir::floordiv(length, ir::int64(2)) + 1) : length;
  const Expr frames = relax::non_negative(ir::floordiv(own[1] - length, ir::max(step, ir::int64(1))) + 1);
  const Shape shape{own[0], frames, bins, ir::int64(2)};
  const Expr used = window ? relax::simplified(ir::min(length, shape_of(window)[0])) : length;
  const DType dtype = dtype_of(signal), wide = relax::accumulation_dtype(dtype);
  std::vector<Value> args{signal};
  if (window) args.push_back(window);
  const auto build = [&](const std::vector<Tensor>& in) {
    const auto [cosines, sines] = turn_table(length, wide);
    const te::IterVar k = te::reduce_axis(ir::int64(0), used, "k");
    std::vector<Tensor> read = in;
    read.push_back(cosines);
    read.push_back(sines);
    const Tensor sums = te::compute(
        shape,
        [&](const Indices& i) {
          const auto component = [&](int64_t c) {
            return ir::cast(wide, in[0]({i[0], i[1] * step + k->var, ir::int64(c)}));
          };
          const Expr turned = ir::floormod(k->var * i[2], ir::max(length, ir::int64(1)));
          const Expr s = ir::constant(wide, 0) - sines({turned});
          Expr term = part_of_product(i[3], component(0), complex_in ? component(1) : Expr(), cosines({turned}), s);
          if (window) term = term * ir::cast(wide, in[1]({k->var}));
          return te::sum(term, {k});
        },
        read, "short_time_fourier");
    return std::vector{te::topi::cast(sums, dtype, "short_time_fourier_result")};
  };
  return b.call_te("short_time_fourier", std::move(args), build).value_or_throw();
}

}  // namespace lathe::ops::build
