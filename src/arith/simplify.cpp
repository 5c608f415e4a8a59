// The simplifier's driver: bottom up, each node once while nothing new is known. Sums of indices go to their canonical
// form, comparisons of indices to their difference; everything else to the rules.
#include "arith/interval.h"
#include "arith/knowledge.h"
#include "arith/rules/rule.h"

namespace lathe::arith {
namespace {

using namespace ir;

bool is_sum_kind(int k) { return k == kind<Add> || k == kind<Sub> || k == kind<Mul>; }
bool scalar_index(const Knowledge& known, const Expr& e) { return e->dtype.is_scalar() && is_index(known, e); }

std::optional<int64_t> int_constant(const Expr& e) {
  const auto* imm = e.as<IntImm>();
  return imm ? std::optional(imm->value) : std::nullopt;
}

// Simplifies the operands of nested sums and products, leaving the sums themselves to one pass over all terms.
Expr simplify_leaves(Knowledge& known, const Expr& e) {
  Expr a, b;
  if (!is_sum_kind(kind_of(e)) || !visit_binary(*e, [&](const auto& n) { a = n.a, b = n.b; }))
    return simplify(known, e);
  const Expr x = simplify_leaves(known, a), y = simplify_leaves(known, b);
  if (x == a && y == b) return e;
  return kind_of(e) == kind<Add> ? add(x, y) : kind_of(e) == kind<Sub> ? sub(x, y) : mul(x, y);
}

Expr simplify_sum(Knowledge& known, const Expr& e) {
  const Expr parts = simplify_leaves(known, e);
  if (!is_sum_kind(kind_of(parts))) return parts;
  const Sum sum = to_sum(known, parts);
  return sum.overflow ? parts : to_expr(known, sum, parts);
}

Expr simplify_floordiv(Knowledge& known, const Expr& e) {
  const Expr a = simplify(known, as<FloorDiv>(e).a), b = simplify(known, as<FloorDiv>(e).b);
  if (const auto d = int_constant(b); d && *d != 0 && Sum::fits(*d)) {
    Sum numerator = to_sum(known, a);
    if (*d < 0) numerator.scale(-1);
    if (const Expr quotient = floordiv_sum(known, numerator, std::abs(*d))) return quotient;
  } else if (!d) {
    const Sum numerator = to_sum(known, a);
    Sum multiples, rest;
    if (same(a, b)) return constant(e->dtype, int64_t{1});
    if (!numerator.overflow) {
      const bool any = split_by(known, numerator, b, multiples, rest);
      // 0 <= rest < b: the rest's quotient is 0.
      Sum room = to_sum(known, b);
      room.add(rest, -1);
      room.add_constant(-1);
      const bool small = rest.is_constant() && rest.constant == 0
                             ? true
                             : prove_nonnegative(known, rest) && prove_nonnegative(known, room);
      if (small) return to_expr(known, multiples);
      if (any) {
        multiples.add(simplify(known, floordiv(to_expr(known, rest), b)), 1);
        return to_expr(known, multiples);
      }
    }
  }
  return floordiv(a, b);
}

Expr simplify_floormod(Knowledge& known, const Expr& e) {
  const Expr a = simplify(known, as<FloorMod>(e).a), b = simplify(known, as<FloorMod>(e).b);
  if (const auto d = int_constant(b); d && *d != 0 && Sum::fits(*d)) {
    // x % -d is -(-x % d).
    Sum numerator = to_sum(known, a);
    if (*d < 0) numerator.scale(-1);
    Sum remainder = floormod_to_sum(known, numerator, std::abs(*d));
    if (*d < 0) remainder.scale(-1);
    if (!remainder.overflow) return to_expr(known, remainder);
  } else if (!d) {
    const Sum numerator = to_sum(known, a);
    Sum multiples, rest;
    if (same(a, b)) return constant(e->dtype, int64_t{0});
    if (!numerator.overflow) {
      const bool any = split_by(known, numerator, b, multiples, rest);
      Sum room = to_sum(known, b);
      room.add(rest, -1);
      room.add_constant(-1);
      if (prove_nonnegative(known, rest) && prove_nonnegative(known, room)) return to_expr(known, rest);
      if (rest.is_constant() && rest.constant == 0) return constant(e->dtype, int64_t{0});
      if (any) return simplify(known, floormod(to_expr(known, rest), b));
    }
  }
  return floormod(a, b);
}

// min (or max) of index expressions: by the sign of their difference, or of a part common to both sides.
Expr simplify_extremum(Knowledge& known, const Expr& a, const Expr& b, bool smaller) {
  if (same(a, b)) return a;
  Sum difference = to_sum(known, a);
  difference.add(to_sum(known, b), -1);
  if (!difference.overflow) {
    if (prove_nonnegative(known, difference)) return smaller ? b : a;
    difference.scale(-1);
    if (prove_nonnegative(known, difference)) return smaller ? a : b;
  }
  return smaller ? min(a, b) : max(a, b);
}

Expr simplify_comparison(Knowledge& known, const Expr& e) {
  Expr a, b;
  visit_binary(*e, [&](const auto& n) { a = simplify(known, n.a), b = simplify(known, n.b); });
  int k = kind_of(e);
  // One spelling for each order.
  if (k == kind<GT> || k == kind<GE>) {
    std::swap(a, b);
    k = k == kind<GT> ? kind<LT> : kind<LE>;
  }
  if (scalar_index(known, a) && scalar_index(known, b)) {
    Sum difference = to_sum(known, a);
    difference.add(to_sum(known, b), -1);
    if (k == kind<LE>) difference.add_constant(-1);
    if (!difference.overflow) {
      if (k == kind<EQ>) return equal_to_zero(known, difference);
      if (k == kind<NE>) {
        const Expr equal = equal_to_zero(known, difference);
        if (const auto* n = equal.as<EQ>()) return make<NE>(n->a, n->b);
        return logical_not(equal);
      }
      return less_than_zero(known, difference);
    }
  }
  return k == kind<LT> ? lt(a, b) : k == kind<LE> ? le(a, b) : k == kind<EQ> ? eq(a, b) : ne(a, b);
}

// Whether `e` may be evaluated whatever holds, and so may anything it simplifies to under some assumption: it neither
// divides by a variable nor loads.
bool harmless(const ExprNode& e) {
  const int k = kind_of(e);
  if (k == kind<VarNode> || k == kind<IntImm> || k == kind<FloatImm>) return true;
  if (k == kind<BufferLoad> || k == kind<Call> || k == kind<Let> || k == kind<Reduce>) return false;
  bool result = true;
  if (k == kind<Div> || k == kind<Mod> || k == kind<FloorDiv> || k == kind<FloorMod>)
    visit_binary(e, [&](const auto& n) { result = as_int(n.b).value_or(0) != 0; });
  e.node_class().for_each_child(e, [&](const NodeRef& child) {
    result = result && child->node_class().family == ExprNode::family && harmless(static_cast<const ExprNode&>(*child));
  });
  return result;
}

// Simplifies `e` where only its value under `condition` being `truth` counts. `lazy`: it is not even evaluated
// elsewhere.
Expr simplify_under(Knowledge& known, const Expr& condition, bool truth, const Expr& e, bool lazy, bool* impossible) {
  const Assumption assumption(known, condition, truth);
  if (impossible) *impossible = known.contradiction;
  if (known.contradiction) return e;
  if (lazy || harmless(*e)) return simplify(known, e);
  known.leave(known.levels.size() - 1);
  return simplify(known, e);
}

bool is_scalar_bool(const Expr& e) { return e->dtype.is_scalar(); }

Expr simplify_choice(Knowledge& known, const Expr& condition, const Expr& yes, const Expr& no, bool lazy) {
  const Expr c = simplify(known, condition);
  if (const auto value = as_int(c)) return simplify(known, *value ? yes : no);
  Expr a, b;
  bool never_true = false, never_false = false;
  if (is_scalar_bool(c)) {
    a = simplify_under(known, c, true, yes, lazy, &never_true);
    b = simplify_under(known, c, false, no, lazy, &never_false);
    if (never_true) return b;
    if (never_false) return a;
  } else {
    a = simplify(known, yes);
    b = simplify(known, no);
  }
  if (same(a, b)) return a;
  return lazy ? if_then_else(c, a, b) : select(c, a, b);
}

Expr simplify_logic(Knowledge& known, const Expr& e) {
  const bool conjunction = kind_of(e) == kind<And>;
  Expr a, b;
  visit_binary(*e, [&](const auto& n) { a = n.a, b = n.b; });
  a = simplify(known, a);
  if (const auto value = as_int(a))
    return (*value != 0) == conjunction               ? simplify(known, b)
           : boolean(!conjunction)->dtype == e->dtype ? boolean(!conjunction)
                                                      : constant(e->dtype, int64_t{!conjunction});
  // The second operand matters only where the first does not decide.
  b = is_scalar_bool(a) ? simplify_under(known, a, conjunction, b, false, nullptr) : simplify(known, b);
  if (same(a, b)) return a;
  return conjunction ? logical_and(a, b) : logical_or(a, b);
}

Expr simplify_not(Knowledge& known, const Expr& e) {
  const Expr a = simplify(known, as<Not>(e).a);
  if (const auto* n = a.as<Not>()) return n->a;
  if (const auto* n = a.as<EQ>()) return make<NE>(n->a, n->b);
  if (const auto* n = a.as<NE>()) return make<EQ>(n->a, n->b);
  // Not for floats: a NaN makes every order false.
  if (const auto* n = a.as<LT>(); n && n->a->dtype.is_integer()) return simplify(known, le(n->b, n->a));
  if (const auto* n = a.as<LE>(); n && n->a->dtype.is_integer()) return simplify(known, lt(n->b, n->a));
  if (const auto* n = a.as<And>()) return simplify(known, logical_or(logical_not(n->a), logical_not(n->b)));
  if (const auto* n = a.as<Or>()) return simplify(known, logical_and(logical_not(n->a), logical_not(n->b)));
  return logical_not(a);
}

// Operands simplified, the kind kept; constants folded by the builders.
Expr simplify_children(Knowledge& known, const Expr& e) {
  if (const auto* load = e.as<BufferLoad>()) {
    // Subscripts are indices, wherever the load stands.
    std::vector<Expr> indices = load->indices;
    bool changed = false;
    {
      const InPosition index_position(known, false);
      for (Expr& index : indices) {
        const Expr simple = simplify(known, index);
        changed |= simple != index;
        index = simple;
      }
    }
    const Expr predicate = load->predicate ? simplify(known, load->predicate) : Expr();
    if (!changed && predicate == load->predicate) return e;
    return with(*load, [&](BufferLoad& copy) {
      copy.indices = indices;
      copy.predicate = predicate;
    });
  }
  if (kind_of(e) == kind<Reduce> || kind_of(e) == kind<Let>) return e;
  if (const auto* c = e.as<Cast>()) return cast(e->dtype, simplify(known, c->value));
  return ir::detail::narrow<ExprNode>(map_children(NodeRef(e), [&](NodeRef child) -> NodeRef {
    return child->node_class().family == ExprNode::family
               ? NodeRef(simplify(known, Expr(static_cast<const ExprNode*>(child.get()))))
               : child;
  }));
}

bool is_constant(const Expr& e) { return as_int(e).has_value() || as_float(e).has_value(); }

// An operation on two constants that was made node by node, as the builders make it.
Expr folded(const Expr& e) {
  Expr result = e;
  const auto rebuilt = [&]<class T>(std::type_identity<T>, Expr (*build)(const Expr&, const Expr&)) {
    const auto& n = as<T>(e);
    if (is_constant(n.a) && is_constant(n.b)) result = build(n.a, n.b);
  };
  switch (kind_of(e)) {
    case kind<Add>:
      rebuilt(std::type_identity<Add>{}, [](const Expr& a, const Expr& b) { return add(a, b); });
      break;
    case kind<Sub>:
      rebuilt(std::type_identity<Sub>{}, [](const Expr& a, const Expr& b) { return sub(a, b); });
      break;
    case kind<Mul>:
      rebuilt(std::type_identity<Mul>{}, [](const Expr& a, const Expr& b) { return mul(a, b); });
      break;
    case kind<FloorDiv>:
      rebuilt(std::type_identity<FloorDiv>{}, [](const Expr& a, const Expr& b) { return floordiv(a, b); });
      break;
    case kind<FloorMod>:
      rebuilt(std::type_identity<FloorMod>{}, [](const Expr& a, const Expr& b) { return floormod(a, b); });
      break;
    case kind<Min>:
      rebuilt(std::type_identity<Min>{}, [](const Expr& a, const Expr& b) { return min(a, b); });
      break;
    case kind<Max>:
      rebuilt(std::type_identity<Max>{}, [](const Expr& a, const Expr& b) { return max(a, b); });
      break;
    default:
      break;
  }
  return result;
}

Expr simplify_node(Knowledge& known, const Expr& e) {
  const int k = kind_of(e);
  if (scalar_index(known, e)) {
    if (is_sum_kind(k)) return simplify_sum(known, e);
    if (k == kind<FloorDiv>) return simplify_floordiv(known, e);
    if (k == kind<FloorMod>) return simplify_floormod(known, e);
    if (k == kind<Min>)
      return simplify_extremum(known, simplify(known, as<Min>(e).a), simplify(known, as<Min>(e).b), true);
    if (k == kind<Max>)
      return simplify_extremum(known, simplify(known, as<Max>(e).a), simplify(known, as<Max>(e).b), false);
  }
  switch (k) {
    case kind<VarNode>: {
      const VarFacts* facts = known.find(e.as<VarNode>());
      return facts && facts->value ? simplify(known, facts->value) : e;
    }
    case kind<EQ>:
    case kind<NE>:
    case kind<LT>:
    case kind<LE>:
    case kind<GT>:
    case kind<GE>:
      return simplify_comparison(known, e);
    case kind<And>:
    case kind<Or>:
      return simplify_logic(known, e);
    case kind<Not>:
      return simplify_not(known, e);
    case kind<Select>:
      return simplify_choice(known, as<Select>(e).condition, as<Select>(e).true_value, as<Select>(e).false_value,
                             false);
    case kind<Call>:
      if (as<Call>(e).op == &intrinsic::if_then_else)
        return simplify_choice(known, as<Call>(e).args[0], as<Call>(e).args[1], as<Call>(e).args[2], true);
      return simplify_children(known, e);
    default:
      return folded(simplify_children(known, e));
  }
}

// What constraints say of this very condition.
std::optional<bool> assumed(const Knowledge& known, const Expr& e) {
  for (const auto& [condition, truth] : known.truths)
    if (same(condition, e)) return truth;
  return std::nullopt;
}

// Whether the canonical forms have said all there is to say: sums of indices, and their quotients by constants.
bool is_canonical(const Knowledge& known, const Expr& e) {
  const int k = kind_of(e);
  if (!is_sum_kind(k) && k != kind<FloorDiv> && k != kind<FloorMod>) return false;
  if (!scalar_index(known, e)) return false;
  if (k == kind<FloorDiv>) return int_constant(as<FloorDiv>(e).b).has_value();
  return k != kind<FloorMod> || int_constant(as<FloorMod>(e).b).has_value();
}

// Commutative operations have their constant on the right, as the rules are written.
Expr constants_right(const Expr& e) {
  const auto swapped = [&]<class T>(std::type_identity<T>) -> Expr {
    const auto& n = as<T>(e);
    return is_constant(n.a) && !is_constant(n.b) ? Expr(make<T>(n.b, n.a)) : e;
  };
  switch (kind_of(e)) {
    case kind<Add>:
      return swapped(std::type_identity<Add>{});
    case kind<Mul>:
      return swapped(std::type_identity<Mul>{});
    case kind<Min>:
      return swapped(std::type_identity<Min>{});
    case kind<Max>:
      return swapped(std::type_identity<Max>{});
    case kind<EQ>:
      return swapped(std::type_identity<EQ>{});
    case kind<NE>:
      return swapped(std::type_identity<NE>{});
    default:
      return e;
  }
}

bool is_leaf_constant(int k) {
  return k == kind<IntImm> || k == kind<FloatImm> || k == kind<StringImm> || k == kind<GlobalVar>;
}

}  // namespace

Expr simplify(Knowledge& known, const Expr& e) {
  if (is_leaf_constant(kind_of(e)) || known.budget <= 0) return e;
  Knowledge::Memo& before = known.entry(e);
  if (before.key == e && before.result_epoch == known.epoch) return before.result;
  --known.budget;
  Expr result = simplify_node(known, e);
  result = constants_right(result);
  if (known.budget > 0 && !is_canonical(known, result))
    if (const Expr rewritten = apply_rules(known, result)) result = simplify(known, rewritten);
  if (result->dtype.is_scalar()) {
    if (result->dtype.is_bool() && !known.truths.empty()) {
      if (const auto truth = assumed(known, result)) result = boolean(*truth);
    } else if (kind_of(result) != kind<IntImm> && scalar_index(known, result)) {
      if (const ConstIntBound bound = bound_of(known, result); is_point(bound))
        result = constant(result->dtype, bound.min_value);
    }
  }
  if (result != e && same(*result, *e)) result = e;
  const auto remember = [&](const Expr& key) {
    Knowledge::Memo& entry = known.entry(key);
    if (entry.key != key) entry = {.key = key};
    entry.result = result;
    entry.result_epoch = known.epoch;
  };
  remember(e);
  if (result != e && known.budget > 0) remember(result);
  return with_origin(result, e->origin());
}

}  // namespace lathe::arith
