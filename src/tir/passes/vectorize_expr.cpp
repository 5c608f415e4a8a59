#include "tir/passes/vectorize_expr.h"

#include "ir/match.h"

namespace lathe::tir {
namespace {

bool is_vector(const Expr& e) { return e->dtype.is_vector(); }

// Where all lanes of a ramp have one quotient, it is scalar, and the remainders are a ramp again.
std::optional<std::pair<Expr, Expr>> ramp_quotient(const Expr& a, const Expr& b) {
  const auto* ramp = a.as<Ramp>();
  const auto divisor = as_int(b);
  if (!ramp || !divisor || *divisor <= 0 || !is_int(ramp->stride, 1) || *divisor % ramp->lanes != 0)
    return std::nullopt;
  // The base must be a multiple of the number of lanes: a constant, or a sum of products that shows it.
  const std::function<bool(const Expr&)> multiple = [&](const Expr& e) -> bool {
    if (const auto value = as_int(e)) return *value % ramp->lanes == 0;
    if (const auto* sum = e.as<Add>()) return multiple(sum->a) && multiple(sum->b);
    if (const auto* difference = e.as<Sub>()) return multiple(difference->a) && multiple(difference->b);
    if (const auto* product = e.as<Mul>()) return multiple(product->a) || multiple(product->b);
    return false;
  };
  if (!multiple(ramp->base)) return std::nullopt;
  return std::pair(
      floordiv(ramp->base, constant(ramp->base->dtype, *divisor)),
      Expr(make<Ramp>(floormod(ramp->base, constant(ramp->base->dtype, *divisor)), ramp->stride, ramp->lanes)));
}

Expr vector_div(const Expr& a, const Expr& b) {
  const auto parts = ramp_quotient(a, b);
  return parts ? make<Broadcast>(parts->first, int64_t{a->dtype.lanes}) : floordiv(a, b);
}
Expr vector_mod(const Expr& a, const Expr& b) {
  const auto parts = ramp_quotient(a, b);
  return parts ? parts->second : floormod(a, b);
}

// Reading memory, or a division by what may be zero: not to be evaluated in a lane that does not choose it.
bool may_trap(const Expr& e) {
  bool traps = false;
  post_order(e, [&](const NodeRef& n) {
    const auto integer_division = [](const auto* d) {
      if (!d || d->dtype.is_floating()) return false;
      const auto divisor = as_int(d->b);
      return !divisor || *divisor == 0;
    };
    traps |= integer_division(n.as<Div>()) || integer_division(n.as<Mod>()) || integer_division(n.as<FloorDiv>()) ||
             integer_division(n.as<FloorMod>());
  });
  return traps;
}

}  // namespace

template <class Kind>
Expr LaneValues::compare(const Kind& n, Expr (*build)(Expr, Expr)) {
  return build((*this)(n.a), (*this)(n.b));
}

Expr LaneValues::load(const BufferLoad& load) {
  if (load.indices.size() != 1) return refuse("a load has several indices", Expr(&load));
  if (load.predicate || load.dtype.is_vector())
    return refuse(fmt::format("'{}' is loaded in vectors already", load.buffer->name), Expr(&load));
  const Expr index = (*this)(load.indices[0]);
  if (!is_vector(index)) {
    // The same element in every lane; under a mask it may only be touched where a lane is active.
    if (mask) return make<BufferLoad>(load.buffer, std::vector<Expr>{make<Broadcast>(index, lanes_)}, mask);
    return index == load.indices[0] ? Expr(&load) : make<BufferLoad>(load.buffer, std::vector<Expr>{index});
  }
  return make<BufferLoad>(load.buffer, std::vector<Expr>{index}, mask);
}

Expr LaneValues::choice(const Expr& condition, const Expr& yes, const Expr& no, bool lazy) {
  const Expr chosen = (*this)(condition);
  if (!is_vector(chosen)) {
    const Expr a = (*this)(yes), b = (*this)(no);
    if (!is_vector(a) && !is_vector(b)) return lazy ? if_then_else(chosen, a, b) : select(chosen, a, b);
    if (lazy) return if_then_else(chosen, widen(a, lanes_), widen(b, lanes_));
    return select(widen(chosen, lanes_), widen(a, lanes_), widen(b, lanes_));
  }
  if (lazy && (may_trap(yes) || may_trap(no)))
    return refuse("a division by what may be zero is guarded in each lane", yes);
  // Only the lanes that choose a value read memory for it.
  const Expr outer = mask;
  if (lazy) mask = outer ? logical_and(outer, chosen) : chosen;
  const Expr a = widen((*this)(yes), lanes_);
  if (lazy) mask = outer ? logical_and(outer, logical_not(chosen)) : logical_not(chosen);
  const Expr b = widen((*this)(no), lanes_);
  mask = outer;
  return select(chosen, a, b);
}

Expr LaneValues::call(const Call& call, const Expr& self) {
  if (call.op == &intrinsic::if_then_else) return choice(call.args[0], call.args[1], call.args[2], true);
  if (call.op->effect != Effect::pure || call.op->arity < 0)
    return refuse(fmt::format("'{}' has no form in lanes", call.op->name), self);
  std::vector<Expr> args;
  bool any = false;
  for (const Expr& arg : call.args) {
    args.push_back((*this)(arg));
    any = any || is_vector(args.back());
  }
  if (!any) return make<Call>(call.dtype, call.op, std::move(args));
  if (call.dtype.is_vector()) return refuse("a call on vectors is inside", self);
  for (Expr& arg : args) arg = widen(arg, lanes_);
  return make<Call>(call.dtype.with_lanes(static_cast<int>(lanes_)), call.op, std::move(args));
}

Expr LaneValues::operator()(const Expr& e) {
  const auto both = [&](const auto& n, auto build) { return build((*this)(n.a), (*this)(n.b)); };
  return match(
      e,
      [&](const VarNode& n) {
        const auto it = values_.find(&n);
        return it == values_.end() ? e : it->second;
      },
      [&](const Cast& n) -> Expr {
        const Expr value = (*this)(n.value);
        if (value == n.value) return e;
        if (const auto* ramp = value.as<Ramp>(); ramp && n.dtype.is_integer() && n.dtype.bits == 64)
          return make<Ramp>(cast(n.dtype, ramp->base), cast(n.dtype, ramp->stride), ramp->lanes);
        return cast(n.dtype.with_lanes(value->dtype.lanes), value);
      },
      [&](const Add& n) { return both(n, add_index); }, [&](const Sub& n) { return both(n, sub_index); },
      [&](const Mul& n) { return both(n, mul_index); }, [&](const Div& n) { return both(n, div); },
      [&](const Mod& n) { return both(n, mod); }, [&](const FloorDiv& n) { return both(n, vector_div); },
      [&](const FloorMod& n) { return both(n, vector_mod); }, [&](const Min& n) { return compare(n, min); },
      [&](const Max& n) { return compare(n, max); }, [&](const EQ& n) { return compare(n, eq); },
      [&](const NE& n) { return compare(n, ne); }, [&](const LT& n) { return compare(n, lt); },
      [&](const LE& n) { return compare(n, le); }, [&](const GT& n) { return compare(n, gt); },
      [&](const GE& n) { return compare(n, ge); }, [&](const And& n) { return compare(n, logical_and); },
      [&](const Or& n) { return compare(n, logical_or); }, [&](const Not& n) { return logical_not((*this)(n.a)); },
      [&](const Select& n) { return choice(n.condition, n.true_value, n.false_value, false); },
      [&](const Let& n) -> Expr {
        const Expr value = (*this)(n.value);
        Var var = n.var;
        if (is_vector(value)) {
          var = make<VarNode>(n.var->name, value->dtype);
          bind(n.var, var);
        }
        return make<Let>(var, value, (*this)(n.body));
      },
      [&](const BufferLoad& n) { return load(n); }, [&](const Call& n) { return call(n, e); },
      [&](const ExprNode& n) -> Expr {
        if (n.dtype.is_vector()) {
          bool differs = false;
          for (const Var& v : free_vars(e)) differs |= values_.count(v.get()) != 0;
          if (differs) return refuse("it holds vectors already", e);
        }
        return e;
      });
}

}  // namespace lathe::tir
