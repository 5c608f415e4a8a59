// Modular sets: what is known of the remainder of an expression, computed bottom up. In dtypes that wrap, only the
// powers of two that divide the modulus survive.
#include "arith/interval.h"
#include "arith/knowledge.h"

namespace lathe::arith {
namespace {

using namespace ir;

constexpr ModularSet anything{1, 0};

ModularSet normal(int64_t coeff, int64_t base) {
  if (coeff == std::numeric_limits<int64_t>::min()) return anything;
  if (coeff < 0) coeff = -coeff;
  return {coeff, coeff ? floor_mod(base, coeff) : base};
}

// The smallest set that holds both.
ModularSet join(ModularSet a, ModularSet b) {
  int64_t difference;
  if (__builtin_sub_overflow(a.base, b.base, &difference)) return anything;
  return normal(gcd(gcd(a.coeff, b.coeff), difference), a.base);
}

ModularSet plus(ModularSet a, ModularSet b) {
  int64_t base;
  if (!checked_add(a.base, b.base, base)) return anything;
  return normal(gcd(a.coeff, b.coeff), base);
}

ModularSet times(ModularSet a, ModularSet b) {
  // (ac x + ab)(bc y + bb) = ac bc xy + ac bb x + ab bc y + ab bb
  int64_t both, left, right, base;
  if (!checked_mul(a.coeff, b.coeff, both) || !checked_mul(a.coeff, b.base, left) ||
      !checked_mul(a.base, b.coeff, right) || !checked_mul(a.base, b.base, base))
    return anything;
  return normal(gcd(both, gcd(left, right)), base);
}

ModularSet negated(ModularSet a) { return times(a, {0, -1}); }

ModularSet divided(ModularSet a, ModularSet b) {
  if (b.coeff != 0 || b.base == 0 || b.base == -1) return anything;
  if (a.coeff % b.base != 0) return anything;
  return normal(a.coeff / b.base, floor_div(a.base, b.base));
}

ModularSet remainder(ModularSet a, ModularSet b) {
  if (b.coeff != 0 || b.base <= 0) return anything;
  if (a.coeff == 0 || a.coeff % b.base == 0) return {0, floor_mod(a.base, b.base)};
  return normal(gcd(a.coeff, b.base), a.base);
}

ModularSet of_var(Knowledge& known, const Expr& e) {
  const VarFacts* facts = known.find(e.as<VarNode>());
  if (!facts) return anything;
  if (is_point(facts->bound)) return {0, facts->bound.min_value};
  return facts->value && facts->set.coeff == 1 ? set_of(known, facts->value) : facts->set;
}

ModularSet exact_set(Knowledge& known, const Expr& e) {
  const auto pair = [&]<class T>(std::type_identity<T>, auto op) {
    return op(set_of(known, as<T>(e).a), set_of(known, as<T>(e).b));
  };
  switch (kind_of(e)) {
    case kind<VarNode>:
      return of_var(known, e);
    case kind<IntImm>:
      return {0, as<IntImm>(e).value};
    case kind<Add>:
      return pair(std::type_identity<Add>{}, plus);
    case kind<Sub>:
      return pair(std::type_identity<Sub>{}, [](ModularSet a, ModularSet b) { return plus(a, negated(b)); });
    case kind<Mul>:
      return pair(std::type_identity<Mul>{}, times);
    case kind<FloorDiv>:
      return pair(std::type_identity<FloorDiv>{}, divided);
    case kind<FloorMod>:
      return pair(std::type_identity<FloorMod>{}, remainder);
    case kind<Min>:
      return pair(std::type_identity<Min>{}, join);
    case kind<Max>:
      return pair(std::type_identity<Max>{}, join);
    case kind<Select>:
      return join(set_of(known, as<Select>(e).true_value), set_of(known, as<Select>(e).false_value));
    case kind<Call>: {
      const auto& call = as<Call>(e);
      if (call.op == &intrinsic::if_then_else) return join(set_of(known, call.args[1]), set_of(known, call.args[2]));
      return call.op == &intrinsic::likely ? set_of(known, call.args[0]) : anything;
    }
    case kind<Broadcast>:
      return set_of(known, as<Broadcast>(e).value);
    case kind<Ramp>: {
      const ModularSet stride = set_of(known, as<Ramp>(e).stride);
      // Lanes differ by multiples of the stride.
      return plus(set_of(known, as<Ramp>(e).base), normal(gcd(stride.coeff, stride.base), 0));
    }
    default:
      return anything;
  }
}

bool divides_exactly(const Expr& e) { return kind_of(e) == kind<FloorDiv> || kind_of(e) == kind<FloorMod>; }

}  // namespace

ModularSet set_of(Knowledge& known, const Expr& e) {
  if (!e->dtype.is_integer()) return anything;
  if (e->dtype.is_uint() && e->dtype.bits == 64 && kind_of(e) == kind<IntImm> && as<IntImm>(e).value < 0)
    return anything;
  ModularSet set = exact_set(known, e);
  const bool leaf = kind_of(e) == kind<IntImm> || kind_of(e) == kind<VarNode>;
  if (!leaf && !is_index(known, e)) {
    // Wrapping keeps a remainder by a power of two only.
    const ConstIntBound all = range_of(e->dtype.element()), exact = exact_bound_of(known, e);
    const bool fits = finite(exact) && within(exact, all);
    if (!fits && divides_exactly(e)) return anything;
    if (!fits) {
      const int bits = e->dtype.bits;
      set = normal(gcd(set.coeff, bits < 62 ? int64_t{1} << bits : int64_t{1} << 62), set.base);
    }
  }
  for (const TermFacts& facts : known.terms)
    if (facts.set.coeff > 1 && set.coeff == 1 && same(facts.term, e)) set = facts.set;
  return set;
}

ModularSet set_of(Knowledge& known, const Sum& sum) {
  if (sum.overflow) return anything;
  ModularSet set{0, sum.constant};
  for (const Term& term : sum.terms) set = plus(set, times(set_of(known, term.factor), {0, term.coefficient}));
  return set;
}

}  // namespace lathe::arith
