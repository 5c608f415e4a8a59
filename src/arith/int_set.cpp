#include "arith/int_set.h"

#include "arith/interval.h"
#include "arith/knowledge.h"
#include "ir/visit.h"

namespace lathe::arith {
namespace {

using namespace ir;

// One variable at a time, innermost first: its range's ends may mention the ones further out.
class Evaluator {
 public:
  Evaluator(const Var& var, Interval domain, Analyzer& analyzer)
      : var_(var), domain_(std::move(domain)), analyzer_(analyzer) {}

  Interval operator()(const Expr& e) {
    if (e.get() == var_.get()) return domain_;
    if (!uses_var(e, var_)) return Interval::point(e);
    if (!e->dtype.is_scalar()) return {};
    switch (kind_of(e)) {
      case kind<Add>:
      case kind<Sub>:
      case kind<Mul>:
        return of_sum(e);
      case kind<FloorDiv>:
        return of_quotient((*this)(as<FloorDiv>(e).a), as<FloorDiv>(e).b);
      case kind<FloorMod>:
        return of_remainder((*this)(as<FloorMod>(e).a), as<FloorMod>(e).b);
      case kind<Min>:
        return both(as<Min>(e).a, as<Min>(e).b, [](auto& a, auto& b) { return min(a, b); });
      case kind<Max>:
        return both(as<Max>(e).a, as<Max>(e).b, [](auto& a, auto& b) { return max(a, b); });
      case kind<Select>:
        return unite((*this)(as<Select>(e).true_value), (*this)(as<Select>(e).false_value), analyzer_);
      case kind<Call>:
        if (as<Call>(e).op == &intrinsic::if_then_else)
          return unite((*this)(as<Call>(e).args[1]), (*this)(as<Call>(e).args[2]), analyzer_);
        break;
      default:
        break;
    }
    return constant_bounds(e);
  }

 private:
  // What is left where the form says nothing: the constant bounds.
  Interval constant_bounds(const Expr& e) {
    const ConstIntBound bound = analyzer_.const_int_bound(e);
    Interval result;
    if (finite(bound.min_value)) result.min = constant(e->dtype, bound.min_value);
    if (finite(bound.max_value)) result.max = constant(e->dtype, bound.max_value);
    return result;
  }

  template <class Op>
  Interval both(const Expr& a, const Expr& b, Op op) {
    const Interval x = (*this)(a), y = (*this)(b);
    Interval result;
    if (x.min && y.min) result.min = op(x.min, y.min);
    if (x.max && y.max) result.max = op(x.max, y.max);
    return result;
  }

  Interval of_sum(const Expr& e) {
    Knowledge& known = analyzer_.knowledge();
    const Sum sum = to_sum(known, e);
    if (sum.overflow) return {};
    Interval total = Interval::point(constant(e->dtype, sum.constant));
    // Terms without the variable stay together.
    Sum rest{.dtype = sum.dtype}, with_var{.dtype = sum.dtype};
    for (const Term& t : sum.terms) (uses_var(t.factor, var_) ? with_var : rest).terms.push_back(t);
    for (const Term& t : rest.terms) total = shifted(total, t.factor, t.coefficient);
    // v*a + v*b has v at one place.
    Sum multiples, others;
    if (split_by(known, with_var, var_, multiples, others) && !uses_var(to_expr(known, multiples), var_)) {
      total = plus(total, times(domain_, to_expr(known, multiples)));
      with_var = others;
    }
    for (const Term& t : with_var.terms) {
      const auto* product = t.factor.as<Mul>();
      Interval value;
      if (!product)
        value = (*this)(t.factor);
      else if (!uses_var(product->b, var_))
        value = times((*this)(product->a), product->b);
      else if (!uses_var(product->a, var_))
        value = times((*this)(product->b), product->a);
      total = plus(total, times(value, constant(e->dtype, t.coefficient)));
    }
    return total;
  }

  static Interval shifted(const Interval& a, const Expr& by, int64_t coefficient) {
    const Expr shift = mul(by, constant(by->dtype, coefficient));
    return plus(a, Interval::point(shift));
  }
  static Interval plus(const Interval& a, const Interval& b) {
    return {a.min && b.min ? add(a.min, b.min) : Expr(), a.max && b.max ? add(a.max, b.max) : Expr()};
  }
  // Times a factor whose sign is known.
  Interval times(const Interval& a, const Expr& factor) {
    const auto scaled = [&](const Expr& e) { return e ? mul(e, factor) : Expr(); };
    if (analyzer_.can_prove_greater_equal(factor, 0)) return {scaled(a.min), scaled(a.max)};
    if (analyzer_.can_prove_less(factor, 1)) return {scaled(a.max), scaled(a.min)};
    if (!a.bounded()) return {};
    const Expr x = scaled(a.min), y = scaled(a.max);
    return {min(x, y), max(x, y)};
  }

  Interval of_quotient(const Interval& a, const Expr& divisor) {
    if (uses_var(divisor, var_)) return {};
    const auto divided = [&](const Expr& e) { return e ? floordiv(e, divisor) : Expr(); };
    if (analyzer_.can_prove_greater_equal(divisor, 1)) return {divided(a.min), divided(a.max)};
    if (analyzer_.can_prove_less(divisor, 0)) return {divided(a.max), divided(a.min)};
    return {};
  }

  Interval of_remainder(const Interval& a, const Expr& divisor) {
    if (uses_var(divisor, var_) || !analyzer_.can_prove_greater_equal(divisor, 1)) return {};
    const Expr zero = constant(divisor->dtype, int64_t{0}), one = constant(divisor->dtype, int64_t{1});
    // Within one block the remainder moves with the dividend.
    if (a.bounded() && analyzer_.can_prove_equal(floordiv(a.min, divisor), floordiv(a.max, divisor)))
      return {floormod(a.min, divisor), floormod(a.max, divisor)};
    return {zero, sub(divisor, one)};
  }

  const Var& var_;
  const Interval domain_;
  Analyzer& analyzer_;
};

Interval simplified(Interval interval, Analyzer& analyzer) {
  if (interval.min) interval.min = analyzer.simplify(interval.min);
  if (interval.max) interval.max = analyzer.simplify(interval.max);
  return interval;
}

}  // namespace

Interval Interval::of(const Range& range) {
  return {range.min, sub(add(range.min, range.extent), constant(range.min->dtype, int64_t{1}))};
}

Range Interval::range(Analyzer& analyzer) const {
  support::require(bounded(), "only a bounded interval is a range");
  return {min, analyzer.simplify(add(sub(max, min), constant(min->dtype, int64_t{1})))};
}

Interval unite(const Interval& a, const Interval& b, Analyzer& analyzer) {
  Interval result;
  if (a.min && b.min) result.min = analyzer.simplify(min(a.min, b.min));
  if (a.max && b.max) result.max = analyzer.simplify(max(a.max, b.max));
  return result;
}

Interval intersect(const Interval& a, const Interval& b, Analyzer& analyzer) {
  Interval result{a.min ? a.min : b.min, a.max ? a.max : b.max};
  if (a.min && b.min) result.min = analyzer.simplify(max(a.min, b.min));
  if (a.max && b.max) result.max = analyzer.simplify(min(a.max, b.max));
  return result;
}

Interval evaluate_interval(const Expr& e, const Domain& domain, Analyzer& analyzer) {
  const Analyzer::Scope scope(analyzer);
  for (const auto& [var, range] : domain) analyzer.bind(var, range);
  Interval result = Interval::point(analyzer.simplify(e));
  for (size_t i = domain.size(); i-- > 0;) {
    Evaluator evaluate(domain[i].first, simplified(Interval::of(domain[i].second), analyzer), analyzer);
    if (result.min) result.min = evaluate(result.min).min;
    if (result.max) result.max = evaluate(result.max).max;
    result = simplified(result, analyzer);
  }
  return result;
}

}  // namespace lathe::arith
