// For the tests of codegen/emit/math: its functions of one argument, what they are held against, and how errors count.
#pragma once

#include <cmath>

#include "codegen/llvm/run_kernel_test.h"

namespace lathe::codegen::test {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

inline constexpr int64_t samples = 1 << 16;

// B[i] = op(A[i]) by vectors of `lanes`.
inline Kernel unary_kernel(const Intrinsic& op, DType t, int lanes) {
  const Buffer a = buffer("A", {int64(samples)}, t), b = buffer("B", {int64(samples)}, t);
  const Var i = var("i");
  const Expr at = lanes == 1 ? Expr(i) : Expr(make<Ramp>(Expr(i * lanes), int64(1), int64_t{lanes}));
  const Stmt body = make<For>(i, int64(0), int64(samples / lanes), ForKind::serial,
                              Stmt(make<BufferStore>(b, call(op, load(a, {at})), std::vector<Expr>{at})));
  return {std::string(op.name), prim_func({a, b}, body)};
}

// |got - wanted| in units of the last place of T at `wanted`; infinite when one is special and the other is not.
template <class T, class Wide>
double error_in_ulps(T got, Wide wanted) {
  const T nearest = static_cast<T>(wanted);
  if (std::isnan(nearest)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  if (std::isnan(got)) return std::numeric_limits<double>::infinity();
  if (nearest == 0 && got == 0)
    return std::signbit(nearest) == std::signbit(got) ? 0 : std::numeric_limits<double>::infinity();
  const Wide largest = std::numeric_limits<T>::max();
  if (std::isinf(nearest) && std::isinf(got)) return nearest == got ? 0 : std::numeric_limits<double>::infinity();
  if (std::isinf(got) || std::isinf(nearest)) {
    // Next to overflow one may round up and the other down.
    const Wide a = std::isinf(got) ? std::copysign(largest, static_cast<Wide>(got)) : static_cast<Wide>(got);
    const Wide b = std::isinf(nearest) ? std::copysign(largest, static_cast<Wide>(nearest)) : wanted;
    if (std::isinf(static_cast<double>(wanted)) && std::isinf(wanted)) return std::numeric_limits<double>::infinity();
    return static_cast<double>(std::fabs(a - b) /
                               std::ldexp(Wide(1), std::ilogb(largest) - std::numeric_limits<T>::digits + 1));
  }
  const int exponent = std::max(std::ilogb(std::max(std::fabs(wanted), Wide(std::numeric_limits<T>::min()))),
                                std::numeric_limits<T>::min_exponent - 1);
  const Wide ulp = std::ldexp(Wide(1), exponent - std::numeric_limits<T>::digits + 1);
  return static_cast<double>(std::fabs(static_cast<Wide>(got) - wanted) / ulp);
}

struct Worst {
  double error = 0, argument = 0, second = 0, got = 0, wanted = 0;
};
inline std::string describe(const std::string& name, const Worst& w) {
  return fmt::format("{}: {:.3f} ulp at {:a} {:a}: {:a}, true {:a}", name, w.error, w.argument, w.second, w.got,
                     w.wanted);
}

template <class Wide>
Wide logistic(Wide x) {
  const Wide e = std::exp(-std::fabs(x));
  return (x < 0 ? e : Wide(1)) / (1 + e);
}

template <class Wide>
Wide power_of_ten(Wide x) {
  return std::pow(Wide(10), x);
}

using L = long double;
struct UnaryCase {
  const Intrinsic* op;
  double (*single)(double);
  L (*wide)(L);
  double single_limit, wide_limit;  // ulp
};
inline const UnaryCase unary_cases[] = {
    {&intrinsic::exp, std::exp, expl, 1.1, 1.0},
    {&intrinsic::log, std::log, logl, 1.0, 1.0},
    {&intrinsic::tanh, std::tanh, tanhl, 1.9, 2.5},
    {&intrinsic::erf, std::erf, erfl, 1.8, 1.5},
    {&intrinsic::sigmoid, logistic<double>, logistic<L>, 2.0, 2.5},
    {&intrinsic::sin, std::sin, sinl, 1.6, 1.0},
    {&intrinsic::cos, std::cos, cosl, 1.6, 1.0},
    {&intrinsic::tan, std::tan, tanl, 0.51, 2.5},
    {&intrinsic::exp2, std::exp2, exp2l, 0.51, 1.0},
    {&intrinsic::exp10, power_of_ten<double>, power_of_ten<L>, 0.51, 2.0},
    {&intrinsic::expm1, std::expm1, expm1l, 0.51, 2.0},
    {&intrinsic::log2, std::log2, log2l, 0.51, 2.0},
    {&intrinsic::log10, std::log10, log10l, 0.51, 2.0},
    {&intrinsic::log1p, std::log1p, log1pl, 1.6, 2.5},
    {&intrinsic::sinh, std::sinh, sinhl, 0.51, 2.5},
    {&intrinsic::cosh, std::cosh, coshl, 0.51, 2.5},
    {&intrinsic::asinh, std::asinh, asinhl, 0.51, 3.5},
    {&intrinsic::acosh, std::acosh, acoshl, 0.51, 3.5},
    {&intrinsic::atanh, std::atanh, atanhl, 0.51, 3.5},
    {&intrinsic::atan, std::atan, atanl, 1.85, 1.5},
    {&intrinsic::asin, std::asin, asinl, 2.0, 2.0},
    {&intrinsic::acos, std::acos, acosl, 1.4, 1.5},
};

}  // namespace lathe::codegen::test
