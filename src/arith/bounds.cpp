// Constant bounds: intervals computed bottom up. An operation whose exact result may not fit its dtype wraps, so its
// bound is then all the dtype holds.
#include "arith/interval.h"
#include "arith/knowledge.h"

namespace lathe::arith {
namespace {

using namespace ir;

ConstIntBound of_call(Knowledge& known, const Call& call) {
  const ConstIntBound all = range_of(call.dtype.element());
  const auto arg = [&](size_t i) { return bound_of(known, call.args[i]); };
  if (call.op == &intrinsic::if_then_else) return unite(arg(1), arg(2));
  if (call.op == &intrinsic::likely) return arg(0);
  if (call.op == &intrinsic::abs) {
    const ConstIntBound x = arg(0);
    if (x.min_value >= 0) return x;
    if (!finite(x) || x.min_value == all.min_value) return all;
    return {contains(x, 0) ? 0 : -x.max_value, std::max(-x.min_value, x.max_value)};
  }
  if (call.op == &intrinsic::bitwise_and) {
    // The bits of a number from 0 bound the result.
    const ConstIntBound x = arg(0), y = arg(1);
    if (x.min_value >= 0 && y.min_value >= 0) return {0, std::min(x.max_value, y.max_value)};
    if (x.min_value >= 0) return {0, x.max_value};
    if (y.min_value >= 0) return {0, y.max_value};
  }
  if (call.op == &intrinsic::shift_right) {
    const ConstIntBound x = arg(0), by = arg(1);
    if (is_point(by) && by.min_value >= 0 && by.min_value < 62)
      return quotient_down(x, {int64_t{1} << by.min_value, int64_t{1} << by.min_value});
    if (by.min_value >= 0 && x.min_value >= 0) return {0, x.max_value};
  }
  if (call.op == &intrinsic::popcount || call.op == &intrinsic::clz) return {0, 64};
  return all;
}

ConstIntBound of_ramp(Knowledge& known, const Ramp& ramp) {
  const ConstIntBound first = bound_of(known, ramp.base);
  return unite(first, plus(first, scale(bound_of(known, ramp.stride), ramp.lanes - 1)));
}

ConstIntBound of_var(Knowledge& known, const VarNode& var) {
  ConstIntBound bound = range_of(var.dtype.element());
  if (var.is_size) bound.min_value = std::max<int64_t>(bound.min_value, 0);
  const VarFacts* facts = known.find(&var);
  if (!facts) return bound;
  if (facts->value) bound = intersect(bound, bound_of(known, facts->value));
  return intersect(bound, facts->bound);
}

ConstIntBound of_imm(const IntImm& imm) {
  if (imm.value < 0 && imm.dtype.is_uint()) return {0, plus_infinity};  // uint64 beyond int64
  // The extremes stand for no bound.
  return {imm.value, imm.value};
}

// x - x // c * c is the remainder x % c, as which it has narrower bounds than its parts; also where x is itself a
// quotient, y // a, and x // c became y // (a * c). The divisor c, or null.
const Expr* as_remainder(Knowledge& known, const Sub& e) {
  const auto* whole = e.b.as<Mul>();
  const auto* quotient = whole ? whole->a.as<FloorDiv>() : nullptr;
  if (!quotient) return nullptr;
  const int64_t divisor = as_int(whole->b).value_or(0);
  if (divisor <= 0) return nullptr;
  if (same(quotient->b, whole->b)) return same(quotient->a, e.a) ? &whole->b : nullptr;
  const auto product = as_int(quotient->b);
  if (!product || *product % divisor != 0 || !is_index(known, e.a)) return nullptr;
  const Expr again = floordiv_sum(known, to_sum(known, e.a), divisor);
  return again && same(again, whole->a) ? &whole->b : nullptr;
}

bool is_leaf(const Expr& e) {
  const int k = kind_of(e);
  return k == kind<VarNode> || k == kind<IntImm>;
}

}  // namespace

ConstIntBound exact_bound_of(Knowledge& known, const Expr& e) {
  const auto pair = [&]<class T>(std::type_identity<T>, auto op) {
    return op(bound_of(known, as<T>(e).a), bound_of(known, as<T>(e).b));
  };
  const ConstIntBound all = range_of(e->dtype.element());
  switch (kind_of(e)) {
    case kind<VarNode>:
      return of_var(known, as<VarNode>(e));
    case kind<IntImm>:
      return of_imm(as<IntImm>(e));
    case kind<Add>:
      return pair(std::type_identity<Add>{}, plus);
    case kind<Sub>:
      if (const Expr* divisor = as_remainder(known, as<Sub>(e)))
        return remainder_down(bound_of(known, as<Sub>(e).a), bound_of(known, *divisor));
      return pair(std::type_identity<Sub>{}, minus);
    case kind<Mul>:
      return pair(std::type_identity<Mul>{}, times);
    case kind<Div>:
      return pair(std::type_identity<Div>{}, quotient_toward_zero);
    case kind<Mod>:
      return pair(std::type_identity<Mod>{}, remainder_toward_zero);
    case kind<FloorDiv>:
      return pair(std::type_identity<FloorDiv>{}, quotient_down);
    case kind<FloorMod>:
      return pair(std::type_identity<FloorMod>{}, remainder_down);
    case kind<Min>:
      return pair(std::type_identity<Min>{}, [](ConstIntBound a, ConstIntBound b) -> ConstIntBound {
        return {std::min(a.min_value, b.min_value), std::min(a.max_value, b.max_value)};
      });
    case kind<Max>:
      return pair(std::type_identity<Max>{}, [](ConstIntBound a, ConstIntBound b) -> ConstIntBound {
        return {std::max(a.min_value, b.min_value), std::max(a.max_value, b.max_value)};
      });
    case kind<Select>:
      return unite(bound_of(known, as<Select>(e).true_value), bound_of(known, as<Select>(e).false_value));
    case kind<Cast>: {
      const Expr& value = as<Cast>(e).value;
      if (!value->dtype.is_integer() && !value->dtype.is_bool()) return all;
      return bound_of(known, value);
    }
    case kind<Call>:
      return of_call(known, as<Call>(e));
    case kind<Ramp>:
      return of_ramp(known, as<Ramp>(e));
    case kind<Broadcast>:
      return bound_of(known, as<Broadcast>(e).value);
    case kind<Let>:
      return bound_of(known, as<Let>(e).body);
    default:
      return all;
  }
}

ConstIntBound bound_of(Knowledge& known, const Expr& e) {
  const DType element = e->dtype.element();
  if (element.is_floating() || element.is_handle() || element.is_void()) return {};
  if (is_leaf(e)) return exact_bound_of(known, e);
  Knowledge::Memo& before = known.entry(e);
  if (before.key == e && before.bound_epoch == known.epoch) return before.bound;
  ConstIntBound bound = exact_bound_of(known, e);
  // What does not fit wraps to anything the dtype holds; int64 data that may pass the end wraps too.
  const ConstIntBound all = range_of(element);
  const bool wraps = element.bits < 64 ? !within(bound, all) : !finite(bound) && !is_index(known, e);
  if (wraps || element.is_bool()) bound = all;
  if (element.is_uint()) bound.min_value = std::max<int64_t>(bound.min_value, 0);
  if (element.is_uint() && element.bits == 64 && !finite(bound)) bound = all;
  for (const TermFacts& facts : known.terms)
    if (same(facts.term, e)) bound = intersect(bound, facts.bound);
  Knowledge::Memo& entry = known.entry(e);
  if (entry.key != e) entry = {.key = e};
  entry.bound = bound;
  entry.bound_epoch = known.epoch;
  return bound;
}

namespace {

// A quotient by a positive constant.
struct Quotient {
  Expr dividend;
  int64_t divisor = 0;
};
Quotient quotient_of(const Expr& e) {
  const auto* div = e.as<FloorDiv>();
  const int64_t by = div ? as_int(div->b).value_or(0) : 0;
  return by > 0 ? Quotient{div->a, by} : Quotient{};
}

// x // a - (x + k*a) // (a*c) * c is (x // a + k) % c - k: its bound, where `outer` and `inner` are such terms.
std::optional<ConstIntBound> remainder_of_terms(Knowledge& known, const Term& inner, const Term& outer) {
  const Quotient x = quotient_of(inner.factor), y = quotient_of(outer.factor);
  if (!x.dividend || !y.dividend || outer.coefficient % inner.coefficient != 0) return std::nullopt;
  const int64_t c = -(outer.coefficient / inner.coefficient);
  int64_t product;
  if (c <= 1 || !checked_mul(x.divisor, c, product) || product != y.divisor) return std::nullopt;
  Sum apart = to_sum(known, y.dividend);
  apart.add(to_sum(known, x.dividend), -1);
  if (!apart.is_constant() || apart.constant % x.divisor != 0) return std::nullopt;
  const int64_t k = apart.constant / x.divisor;
  return ConstIntBound{-k, c - 1 - k};
}

}  // namespace

ConstIntBound bound_of(Knowledge& known, const Sum& sum) {
  if (sum.overflow) return {};
  ConstIntBound bound{sum.constant, sum.constant};
  std::vector<const Term*> quotients;
  for (const Term& term : sum.terms) {
    if (quotient_of(term.factor).dividend && !finite(bound_of(known, term.factor)))
      quotients.push_back(&term);
    else
      bound = plus(bound, scale(bound_of(known, term.factor), term.coefficient));
  }
  while (!quotients.empty()) {
    const Term& term = *quotients.back();
    quotients.pop_back();
    ConstIntBound own = bound_of(known, term.factor);
    int64_t times = term.coefficient;
    for (size_t i = 0; i < quotients.size(); ++i) {
      const Term& other = *quotients[i];
      auto both = remainder_of_terms(known, term, other);
      if (!both) both = remainder_of_terms(known, other, term), times = both ? other.coefficient : times;
      if (!both) continue;
      own = *both;
      quotients.erase(quotients.begin() + static_cast<ptrdiff_t>(i));
      break;
    }
    bound = plus(bound, scale(own, times));
  }
  return bound;
}

}  // namespace lathe::arith
