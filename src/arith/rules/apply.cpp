// Matching rules against expressions. The table is made once; for each kind of root, rules in the order of the rows,
// with a first test on the kinds of the operands that refuses nearly all of them.
#include "arith/interval.h"
#include "arith/knowledge.h"
#include "arith/rules/rule.h"

namespace lathe::arith {
namespace {

using namespace ir;
using namespace rules;

constexpr int kinds = FamilyKinds<ExprNode>::type::size;
static_assert(kinds <= 64, "the operand test is a word of bits");

// Kinds that a pattern node may match.
uint64_t kinds_matching(const PatternNode& node) {
  constexpr uint64_t any = ~uint64_t{0};
  if (node.kind == number_wildcard || node.kind == bool_wildcard) return any;
  if (node.kind == constant_slot || node.kind == literal)
    return uint64_t{1} << kind<IntImm> | uint64_t{1} << kind<FloatImm> | uint64_t{1} << kind<Broadcast>;
  return uint64_t{1} << node.kind;
}

struct Row {
  Rule rule;
  uint64_t operands[3] = {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}};
};

struct Table {
  std::vector<Row> by_kind[kinds];

  Table() {
    for (const Rule& rule : all_rules())
      for (Rule& order : orders_of(rule)) {
        const PatternNode& root = order.pattern.root();
        support::require(root.kind >= 0, "a rule's pattern is an operation");
        Row row{.rule = std::move(order)};
        const Pattern& p = row.rule.pattern;
        for (int i = 0; i < p.root().operands; ++i) row.operands[i] = kinds_matching(p.nodes[p.root().operand[i]]);
        by_kind[root.kind].push_back(std::move(row));
      }
  }
};

const Table& table() {
  static const Table made;
  return made;
}

// Operand `i` of a node of a kind that patterns have; null for lanes.
const ExprNode* operand_of(const ExprNode& e, int i) {
  const ExprNode* found = nullptr;
  if (visit_binary(e, [&](const auto& n) { found = (i == 0 ? n.a : n.b).get(); })) return found;
  switch (kind_of(e)) {
    case kind<Not>:
      return static_cast<const Not&>(e).a.get();
    case kind<Select>: {
      const auto& s = static_cast<const Select&>(e);
      return (i == 0 ? s.condition : i == 1 ? s.true_value : s.false_value).get();
    }
    case kind<Ramp>: {
      const auto& r = static_cast<const Ramp&>(e);
      return i == 0 ? r.base.get() : i == 1 ? r.stride.get() : nullptr;
    }
    case kind<Broadcast>:
      return i == 0 ? static_cast<const Broadcast&>(e).value.get() : nullptr;
    default:
      return nullptr;
  }
}
int64_t lanes_of(const ExprNode& e) {
  return kind_of(e) == kind<Ramp> ? static_cast<const Ramp&>(e).lanes : static_cast<const Broadcast&>(e).lanes;
}

std::optional<int64_t> constant_of(const ExprNode& e) {
  if (kind_of(e) == kind<Broadcast>) return constant_of(*static_cast<const Broadcast&>(e).value);
  if (kind_of(e) != kind<IntImm> || (e.dtype.is_uint() && e.dtype.bits == 64)) return std::nullopt;
  return static_cast<const IntImm&>(e).value;
}

bool is_literal(const ExprNode& e, const PatternNode& node) {
  if (e.dtype.is_bool() != node.is_bool) return false;
  if (kind_of(e) == kind<Broadcast>) return is_literal(*static_cast<const Broadcast&>(e).value, node);
  if (kind_of(e) == kind<IntImm>) return static_cast<const IntImm&>(e).value == node.value;
  // Of the two float zeros a row means the positive one.
  if (kind_of(e) == kind<FloatImm>) {
    const double value = static_cast<const FloatImm&>(e).value;
    return value == static_cast<double>(node.value) && !std::signbit(value) == (node.value >= 0);
  }
  return false;
}

class Match {
 public:
  Match(Knowledge& known, const Row& row) : known_(known), rule_(row.rule) {}

  bool matches(const ExprNode& e) { return match(rule_.pattern.root(), e); }

  bool holds(const Expr& e) {
    if (!valid_for(e)) return false;
    for (const Pattern& condition : rule_.conditions)
      if (!shown(condition)) return false;
    return true;
  }

  // Null where constants do not fit or a part could wrap.
  Expr replacement(const Expr& e) {
    const Expr result = build(rule_.replacement, rule_.replacement.nodes.size() - 1, target_type(e));
    if (!result || result->dtype != e->dtype) return {};
    return exact_ && !stays_exact(*result) ? Expr() : result;
  }

 private:
  const PatternNode& node(const Pattern& p, size_t i) const { return p.nodes[i]; }

  bool bind_constant(uint8_t slot, int64_t value) {
    if (bound_ & (1u << slot)) return constants_[slot] == value;
    bound_ |= 1u << slot;
    constants_[slot] = value;
    return true;
  }

  bool bind_wildcard(uint8_t slot, const ExprNode& e) {
    if (bound_ & (1u << slot)) return same(*exprs_[slot], e);
    bound_ |= 1u << slot;
    exprs_[slot] = &e;
    return true;
  }

  // Numbers of a rule are of one dtype; its vectors of one length.
  bool fits_type(const ExprNode& e) {
    const DType element = e.dtype.element();
    if (number_.is_void()) number_ = element;
    return number_ == element;
  }

  bool match(const PatternNode& p, const ExprNode& e) {
    switch (p.kind) {
      case number_wildcard:
        return !e.dtype.is_bool() && !e.dtype.is_handle() && fits_type(e) && bind_wildcard(p.slot, e);
      case bool_wildcard:
        return e.dtype.is_bool() && bind_wildcard(p.slot, e);
      case constant_slot: {
        if (e.dtype.is_bool() || !fits_type(e)) return false;
        const auto value = constant_of(e);
        return value && bind_constant(p.slot, *value);
      }
      case literal:
        return (p.is_bool || fits_type(e)) && is_literal(e, p);
      default:
        break;
    }
    if (kind_of(e) != p.kind) return false;
    const bool vector = p.kind == kind<Ramp> || p.kind == kind<Broadcast>;
    const int operands = vector ? p.operands - 1 : p.operands;
    for (int i = 0; i < operands; ++i)
      if (!match(rule_.pattern.nodes[p.operand[i]], *operand_of(e, i))) return false;
    return !vector || bind_constant(rule_.pattern.nodes[p.operand[operands]].slot, lanes_of(e));
  }

  // Whether the row's domain covers the numbers of the match.
  bool valid_for(const Expr& e) {
    exact_ = false;
    if (rule_.domain == Domain::number || number_.is_void()) return true;
    if (number_.is_floating() || rule_.domain == Domain::logic) return false;
    if (rule_.domain == Domain::integer) return true;
    bool index = true;
    for (size_t s = 0; s < rule_.names.size() && index; ++s)
      if (exprs_[s] && !exprs_[s]->dtype.is_bool()) index = is_index(known_, Expr(exprs_[s]));
    if (index && number_.bits == 64 && number_.is_int()) return true;
    exact_ = true;
    return stays_exact(*e);
  }

  bool is_wildcard_value(const ExprNode& e) const {
    return std::find(exprs_, exprs_ + rule_.names.size(), &e) != exprs_ + rule_.names.size();
  }

  // No operation between the root and what the wildcards stand for wraps.
  bool stays_exact(const ExprNode& e) {
    if (is_wildcard_value(e) || kind_of(e) == kind<IntImm>) return true;
    if (e.dtype.is_integer()) {
      const ConstIntBound bound = exact_bound_of(known_, Expr(&e)), all = range_of(e.dtype.element());
      if (!finite(bound) || !within(bound, all)) return false;
    }
    for (int i = 0; i < 3; ++i) {
      const ExprNode* child = i < 2 || kind_of(e) == kind<Select> ? operand_of(e, i) : nullptr;
      if (child && (kind_of(e) == kind<Not> ? i == 0 : true) && !stays_exact(*child)) return false;
    }
    return true;
  }

  // The builders fold constants as values wrap: whether the result fits all the same.
  bool folds_exactly(int k, const Expr& a, const Expr& b) const {
    const auto x = as_int(a), y = as_int(b);
    if (!x || !y) return true;
    int64_t result = 0;
    bool fits = true;
    if (k == kind<Add>)
      fits = checked_add(*x, *y, result);
    else if (k == kind<Sub>)
      fits = !__builtin_sub_overflow(*x, *y, &result);
    else if (k == kind<Mul>)
      fits = checked_mul(*x, *y, result);
    else if (k == kind<FloorDiv> || k == kind<Div>)
      fits = *y != -1;
    else
      return true;
    return fits && contains(range_of(number_), result);
  }

  // The value of a pattern of constants; nothing where it does not fit or divides by zero.
  std::optional<int64_t> compute(const Pattern& p, size_t at) const {
    const PatternNode& n = p.nodes[at];
    if (n.kind == literal) return n.value;
    if (n.kind == constant_slot) return constants_[n.slot];
    if (n.kind == kind<Not>) {
      const auto a = compute(p, n.operand[0]);
      return a ? std::optional<int64_t>(!*a) : std::nullopt;
    }
    if (n.kind == kind<Select>) {
      const auto c = compute(p, n.operand[0]);
      return c ? compute(p, n.operand[*c ? 1 : 2]) : std::nullopt;
    }
    const auto a = compute(p, n.operand[0]), b = compute(p, n.operand[1]);
    if (!a || !b) return std::nullopt;
    int64_t result = 0;
    const bool divisible = *b != 0 && *b != -1;
    switch (n.kind) {
      case kind<Add>:
        return checked_add(*a, *b, result) ? std::optional(result) : std::nullopt;
      case kind<Sub>:
        return __builtin_sub_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
      case kind<Mul>:
        return checked_mul(*a, *b, result) ? std::optional(result) : std::nullopt;
      case kind<FloorDiv>:
        return divisible ? std::optional(floor_div(*a, *b)) : std::nullopt;
      case kind<FloorMod>:
        return divisible ? std::optional(floor_mod(*a, *b)) : std::nullopt;
      case kind<Div>:
        return divisible ? std::optional(*a / *b) : std::nullopt;
      case kind<Mod>:
        return divisible ? std::optional(*a % *b) : std::nullopt;
      case kind<Min>:
        return std::min(*a, *b);
      case kind<Max>:
        return std::max(*a, *b);
      case kind<EQ>:
        return *a == *b;
      case kind<NE>:
        return *a != *b;
      case kind<LT>:
        return *a < *b;
      case kind<LE>:
        return *a <= *b;
      case kind<GT>:
        return *a > *b;
      case kind<GE>:
        return *a >= *b;
      case kind<And>:
        return *a && *b;
      case kind<Or>:
        return *a || *b;
      default:
        return std::nullopt;
    }
  }

  ConstIntBound bound_at(const Pattern& p, size_t at) {
    const PatternNode& n = p.nodes[at];
    if (n.kind == number_wildcard) return bound_of(known_, Expr(exprs_[n.slot]));
    if (n.constant) {
      const auto value = compute(p, at);
      return value ? ConstIntBound{*value, *value} : ConstIntBound{};
    }
    return {};
  }

  bool shown(const Pattern& p) {
    const size_t root = p.nodes.size() - 1;
    const PatternNode& n = p.root();
    if (n.constant) {
      const auto value = compute(p, root);
      return value && *value;
    }
    if (!number_.is_integer()) return false;
    if (n.operands == 2) {
      const ConstIntBound a = bound_at(p, n.operand[0]), b = bound_at(p, n.operand[1]);
      if (n.kind == kind<LT> && finite(a.max_value) && a.max_value < b.min_value) return true;
      if (n.kind == kind<LE> && finite(a.max_value) && a.max_value <= b.min_value) return true;
      if (n.kind == kind<GT> && finite(b.max_value) && a.min_value > b.max_value) return true;
      if (n.kind == kind<GE> && finite(b.max_value) && a.min_value >= b.max_value) return true;
    }
    // Only mathematical integers may be reasoned about further, and only in conditions that compute something.
    const bool computes = std::any_of(p.nodes.begin(), p.nodes.end() - 1,
                                      [](const PatternNode& m) { return m.kind >= 0 && !m.constant; });
    if (!computes || exact_ || number_ != DType::int64() || known_.value_position) return false;
    const Expr condition = build(p, root, DType::boolean());
    return condition && is_int(simplify(known_, condition), 1);
  }

  // The dtype that the replacement's numbers have.
  DType target_type(const Expr& e) const { return e->dtype; }

  // `type` is the dtype of the node built, as far as its parent knows.
  Expr build(const Pattern& p, size_t at, DType type) {
    const PatternNode& n = p.nodes[at];
    if (n.kind == number_wildcard || n.kind == bool_wildcard) return Expr(exprs_[n.slot]);
    if (n.constant && !n.is_bool) {
      const auto value = compute(p, at);
      const DType dtype = number_.with_lanes(type.lanes);
      if (!value || (exact_ && !contains(range_of(number_), *value))) return {};
      return constant(dtype, *value);
    }
    if (n.constant) {
      const auto value = compute(p, at);
      return value ? constant(DType::boolean(type.lanes), *value) : Expr();
    }
    if (n.kind == kind<Ramp> || n.kind == kind<Broadcast>) {
      const Expr base = build(p, n.operand[0], type.element());
      const auto lanes = compute(p, n.operand[n.operands - 1]);
      if (!base || !lanes) return {};
      if (n.kind == kind<Broadcast>) return make<Broadcast>(base, *lanes);
      const Expr stride = build(p, n.operand[1], type.element());
      return stride ? Expr(make<Ramp>(base, stride, *lanes)) : Expr();
    }
    const Expr a = build(p, n.operand[0], type);
    if (!a) return {};
    if (n.kind == kind<Not>) return logical_not(a);
    const Expr b = build(p, n.operand[1], type);
    if (!b) return {};
    if (exact_ && !folds_exactly(n.kind, a, b)) return {};
    switch (n.kind) {
      case kind<Select>: {
        const Expr c = build(p, n.operand[2], type);
        return c ? select(a, b, c) : Expr();
      }
      case kind<Add>:
        return add(a, b);
      case kind<Sub>:
        return sub(a, b);
      case kind<Mul>:
        return mul(a, b);
      case kind<Div>:
        return div(a, b);
      case kind<Mod>:
        return mod(a, b);
      case kind<FloorDiv>:
        return floordiv(a, b);
      case kind<FloorMod>:
        return floormod(a, b);
      case kind<Min>:
        return min(a, b);
      case kind<Max>:
        return max(a, b);
      case kind<EQ>:
        return eq(a, b);
      case kind<NE>:
        return ne(a, b);
      case kind<LT>:
        return lt(a, b);
      case kind<LE>:
        return le(a, b);
      case kind<GT>:
        return gt(a, b);
      case kind<GE>:
        return ge(a, b);
      case kind<And>:
        return logical_and(a, b);
      case kind<Or>:
        return logical_or(a, b);
      default:
        support::unreachable("a rule builds an unknown kind");
    }
  }

  Knowledge& known_;
  const Rule& rule_;
  uint32_t bound_ = 0;
  const ExprNode* exprs_[max_slots] = {};
  int64_t constants_[max_slots] = {};
  DType number_ = DType::void_();
  bool exact_ = false;
};

}  // namespace

Expr apply_rules(Knowledge& known, const Expr& e) {
  const std::vector<Row>& rows = table().by_kind[kind_of(e)];
  if (rows.empty()) return {};
  uint64_t bits[3] = {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}};
  for (int i = 0; i < 3; ++i) {
    if (i == 2 && kind_of(e) != kind<Select>) break;
    if (const ExprNode* child = operand_of(*e, i)) bits[i] = uint64_t{1} << kind_of(*child);
  }
  for (const Row& row : rows) {
    if (!(row.operands[0] & bits[0]) || !(row.operands[1] & bits[1]) || !(row.operands[2] & bits[2])) continue;
    Match match(known, row);
    if (!match.matches(*e) || !match.holds(e)) continue;
    if (Expr result = match.replacement(e)) return result;
  }
  return {};
}

}  // namespace lathe::arith
