#include "codegen/emit/math/expand.h"

#include "codegen/emit/math/building.h"
#include "ir/structural.h"

namespace lathe::codegen::math {
namespace {

using Unary = Expr (*)(Terms&, const Expr&);
using Binary = Expr (*)(Terms&, const Expr&, const Expr&);

// Exponents of float32 end at 2^128, of float64 at 2^1024.
template <auto F, int widest>
Expr bounded(Terms& t, const Expr& x) {
  return F(t, x, widest);
}

Expr exp_nonpositive(Terms& t, const Expr& x) { return exp_nonpositive_single(t, x, 1, -87); }

// Without a function for float32 it is computed in float64 and rounded: those are no operators of a hot loop.
struct Row {
  const Intrinsic* op;
  Unary single, wide;
  Unary widened = nullptr;     // of a float32 argument in float64, where that is simpler than `wide`
  bool single_by_fma = false;  // `single` is for targets that have it
};
const Row unary_rows[] = {
    {&intrinsic::exp, &exp_single, &exp_double},
    {&intrinsic::log, &log_single, &log_double},
    {&intrinsic::tanh, &tanh_single, &tanh_double},
    {&intrinsic::erf, &erf_single, &erf_double},
    {&intrinsic::sigmoid, &sigmoid_single, &sigmoid_double},
    {&intrinsic::sin, &sin_single, &bounded<&sin_double, 1024>, &bounded<&sin_double, 128>, true},
    {&intrinsic::cos, &cos_single, &bounded<&cos_double, 1024>, &bounded<&cos_double, 128>, true},
    {&sin_apart, nullptr, nullptr, &bounded<&sin_double, 128>},
    {&cos_apart, nullptr, nullptr, &bounded<&cos_double, 128>},
    {&exp_apart, &exp_guarded, nullptr},
    {&sigmoid_apart, &sigmoid_guarded, nullptr},
    {&intrinsic::tan, nullptr, &bounded<&tan_double, 1024>, &bounded<&tan_double, 128>},
    {&intrinsic::exp_nonpositive, &exp_nonpositive, &exp_double},
    {&intrinsic::exp2, nullptr, &exp2_double},
    {&intrinsic::exp10, nullptr, &exp10_double},
    {&intrinsic::expm1, nullptr, &expm1_double},
    {&intrinsic::log2, nullptr, &log2_double},
    {&intrinsic::log10, nullptr, &log10_double},
    {&intrinsic::log1p, &log1p_single, &log1p_double},
    {&intrinsic::sinh, nullptr, &sinh_double},
    {&intrinsic::cosh, nullptr, &cosh_double},
    {&intrinsic::asinh, nullptr, &asinh_double},
    {&intrinsic::acosh, nullptr, &acosh_double},
    {&intrinsic::atanh, nullptr, &atanh_double},
    {&intrinsic::atan, &atan_single, &atan_double},
    {&intrinsic::asin, &asin_single, &asin_double},
    {&intrinsic::acos, &acos_single, &acos_double},
};

struct BinaryRow {
  const Intrinsic* op;
  Binary single, wide;
};
const BinaryRow binary_rows[] = {
    {&intrinsic::pow, &pow_single, &pow_double},
    {&intrinsic::atan2, nullptr, &atan2_double},
    {&intrinsic::hypot, nullptr, &hypot_double},
};

bool is_single(DType t) { return t.is_ieee_float() && t.bits == 32; }

DType wide_of(DType t) { return DType::float_(64, t.lanes); }

Expr unary(const Row& row, const Expr& argument, const Native& native) {
  const DType t = argument->dtype;
  Terms terms(native);
  const Expr x = terms(argument);
  const Unary single = row.single_by_fma && !native.fma ? nullptr : row.single;
  Expr y;
  if (t.bits == 64)
    y = row.wide(terms, x);
  else if (single && t.bits == 32)
    y = single(terms, x);
  else if (single)
    y = cast(t, single(terms, terms(cast(DType::float_(32, t.lanes), x))));
  else
    y = cast(t, (row.widened ? row.widened : row.wide)(terms, terms(cast(wide_of(t), x))));
  return terms.wrap(y);
}

Expr binary(const BinaryRow& row, const Expr& first, const Expr& second, const Native& native) {
  const DType t = first->dtype;
  Terms terms(native);
  const Expr a = terms(first), b = terms(second);
  Expr y;
  if (t.bits == 64)
    y = row.wide(terms, a, b);
  else if (row.single && t.bits == 32)
    y = row.single(terms, a, b);
  else if (row.single) {
    const DType single = DType::float_(32, t.lanes);
    y = cast(t, row.single(terms, terms(cast(single, a)), terms(cast(single, b))));
  } else {
    y = cast(t, row.wide(terms, terms(cast(wide_of(t), a)), terms(cast(wide_of(t), b))));
  }
  return terms.wrap(y);
}

Expr scaled_by_exponent(const Expr& first, const Expr& second) {
  const DType t = first->dtype;
  Terms terms;
  const Expr y = ldexp_double(terms, terms(cast(wide_of(t), first)), terms(cast(DType::int_(64, t.lanes), second)));
  return terms.wrap(cast(t, y));
}

Expr neighbour(const Expr& first, const Expr& second) {
  Terms terms;
  const Expr x = terms(first), y = terms(second);
  return terms.wrap(next_after(terms, x, y));
}

// x and c of x c or x / c, where neither is so large or small that it matters to what is computed of it; c is 1 for all
// else. GELU divides by the root of 2, and a division takes as long as five products.
std::pair<Expr, double> scaled(const Expr& e) {
  const auto* quotient = e.as<Div>();
  const auto* product = e.as<Mul>();
  const auto is_plain = [](std::optional<double> c) { return c && *c >= 0x1p-20 && *c <= 0x1p20; };
  if (quotient && is_plain(as_float(quotient->b))) return {quotient->a, 1 / *as_float(quotient->b)};
  if (product && is_plain(as_float(product->b))) return {product->a, *as_float(product->b)};
  if (product && is_plain(as_float(product->a))) return {product->b, *as_float(product->a)};
  return {e, 1};
}

// c, where `e` is x but no more than a constant c, and NaN where x is.
std::optional<double> most_of(const Expr& e, const Expr& x) {
  const auto* choice = e.as<Select>();
  if (!choice || !structural_equal(choice->false_value, x)) return std::nullopt;
  const auto* less = choice->condition.as<LT>();
  const auto* greater = choice->condition.as<GT>();
  const Expr same = less      ? less->b
                    : greater ? greater->a
                              : Expr(),
             bound = less      ? less->a
                     : greater ? greater->b
                               : Expr();
  if (!same || !structural_equal(same, x) || !structural_equal(bound, choice->true_value)) return std::nullopt;
  return as_float(bound);
}

}  // namespace

Expr expand(const Select& choice, const Native& native) {
  const auto* below = choice.condition.as<LT>();
  const auto* power = choice.false_value.as<Call>();
  if (!below || !power || !is_single(choice.dtype)) return nullptr;
  const auto low = as_float(below->b), none = as_float(choice.true_value);
  if (!low || !(*low >= -104) || none != 0.0 || std::signbit(*none)) return nullptr;
  const Expr& argument = power->args[0];
  if (power->op == &intrinsic::exp_nonpositive && *low >= -87 && structural_equal(below->a, argument)) {
    const auto [x, scale] = scaled(argument);
    Terms terms(native);
    return terms.wrap(exp_nonpositive_single(terms, terms(x), scale, *low / scale));
  }
  if (power->op != &intrinsic::exp) return nullptr;
  const auto high = structural_equal(below->a, argument) ? std::optional(infinite()) : most_of(argument, below->a);
  if (!high || !(*high >= *low)) return nullptr;
  Terms terms(native);
  const Expr x = terms(below->a);
  return terms.wrap(exp_single_above(terms, x, *low, std::isinf(*high) ? x : terms(at_most(x, *high)), *high));
}

namespace {

// The argument of 1 + f(x).
std::optional<Expr> one_plus(const Intrinsic& f, const Add& sum) {
  for (const auto& [term, other] : {std::pair(sum.a, sum.b), std::pair(sum.b, sum.a)}) {
    const auto* call = term.as<Call>();
    if (call && call->op == &f && as_float(other) == 1.0) return call->args[0];
  }
  return std::nullopt;
}

// x (1 + erf(y)) h, h a power of two, which changes no bit of a table's entries but the exponent.
Expr gelu(const Mul& product, const Native& native) {
  const auto [rest, height] = scaled(Expr(&product));
  const auto* inner = rest.as<Mul>();
  int exponent = 0;
  if (!inner || height == 1 || std::frexp(height, &exponent) != 0.5 || native.table_entries < 16) return nullptr;
  for (const auto& [factor, x] : {std::pair(inner->a, inner->b), std::pair(inner->b, inner->a)}) {
    const auto* sum = factor.as<Add>();
    const auto argument = sum ? one_plus(intrinsic::erf, *sum) : std::nullopt;
    if (!argument) continue;
    const auto [y, scale] = scaled(*argument);
    Terms terms(native);
    const Expr first = terms(x), second = structural_equal(x, y) ? first : terms(y);
    return terms.wrap(first * one_plus_erf_single(terms, second, scale, height));
  }
  return nullptr;
}

bool is_negated(const Expr& e, const Expr& x) {
  const auto* product = e.as<Mul>();
  if (!product) return false;
  const auto is = [&](const Expr& sign, const Expr& y) { return as_float(sign) == -1.0 && structural_equal(y, x); };
  return is(product->a, product->b) || is(product->b, product->a);
}

const Expr* argument_of(const Expr& e, const Intrinsic& f) {
  const auto* call = e.as<Call>();
  return call && call->op == &f ? &call->args[0] : nullptr;
}

// x, of max(x, 0) + log1p(exp(-|x|)).
std::optional<Expr> softplus_argument(const Add& sum) {
  for (const auto& [term, other] : {std::pair(sum.a, sum.b), std::pair(sum.b, sum.a)}) {
    const auto* most = term.as<Max>();
    const Expr* e = argument_of(other, intrinsic::log1p);
    const Expr* exponent = e ? argument_of(*e, intrinsic::exp) : nullptr;
    if (!most || !exponent || as_float(most->b) != 0.0) continue;
    if (is_negated(*exponent, call(intrinsic::abs, most->a))) return most->a;
  }
  return std::nullopt;
}

}  // namespace

Expr expand(const Mul& product, const Native& native) {
  if (!is_single(product.dtype)) return nullptr;
  if (Expr whole = gelu(product, native)) return whole;
  for (const auto& [factor, x] : {std::pair(product.a, product.b), std::pair(product.b, product.a)}) {
    Terms terms(native);
    if (const Expr* of = argument_of(factor, intrinsic::sigmoid); of && structural_equal(*of, x))
      return terms.wrap(silu_single(terms, terms(x)));
    const Expr* of = argument_of(factor, intrinsic::tanh);
    const auto* sum = of ? of->as<Add>() : nullptr;
    const auto argument = sum ? softplus_argument(*sum) : std::nullopt;
    if (argument && structural_equal(*argument, x)) return terms.wrap(mish_single(terms, terms(x)));
  }
  return nullptr;
}

Expr expand(const Add& sum, const Native& native) {
  if (!is_single(sum.dtype)) return nullptr;
  Terms terms(native);
  if (const auto argument = one_plus(intrinsic::erf, sum)) {
    const auto [x, scale] = scaled(*argument);
    return terms.wrap(one_plus_erf_single(terms, terms(x), scale));
  }
  if (const auto argument = one_plus(intrinsic::tanh, sum))
    return terms.wrap(one_plus_tanh_single(terms, terms(*argument)));
  if (const auto x = softplus_argument(sum)) return terms.wrap(softplus_single(terms, terms(*x)));
  return nullptr;
}

bool is_function(const Intrinsic& op) {
  const auto is_same = [&](const auto& row) { return row.op == &op; };
  return std::any_of(std::begin(unary_rows), std::end(unary_rows), is_same) ||
         std::any_of(std::begin(binary_rows), std::end(binary_rows), is_same);
}

Expr expand(const Call& call, const Native& native) {
  if (call.args.empty() || !call.args[0]->dtype.is_floating()) return nullptr;
  if (call.op == &intrinsic::ldexp)
    return native.has_ldexp(call.dtype) ? Expr() : scaled_by_exponent(call.args[0], call.args[1]);
  if (call.op == &intrinsic::nextafter) return neighbour(call.args[0], call.args[1]);
  for (const Row& row : unary_rows)
    if (row.op == call.op) return unary(row, call.args[0], native);
  for (const BinaryRow& row : binary_rows)
    if (row.op == call.op) return binary(row, call.args[0], call.args[1], native);
  return nullptr;
}

}  // namespace lathe::codegen::math
