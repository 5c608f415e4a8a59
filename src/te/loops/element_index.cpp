// Which element an index means: as in NumPy, a negative one counts from the end.
#include "ir/floor.h"
#include "ir/visit.h"
#include "script/expr_printer.h"
#include "support/mutation.h"
#include "te/codes.h"
#include "te/loops/read_loops.h"

namespace lathe::te {

LATHE_FAULT(from_python_keeps_negative_indices, "te_test", "an index that may be negative is taken as it is");

using ir::Buffer;
using ir::Expr;
using ir::Var;
using script::syntax::ExprKind;

std::vector<Expr> LoopReader::load_indices(const Buffer& b, const Syntax& index) {
  std::vector<const Syntax*> items{&index};
  if (index.kind == ExprKind::tuple) items.assign(index.items.begin(), index.items.end());
  for (const Syntax* item : items)
    if (item->kind == ExprKind::slice)
      fail(codes::not_loops, *item, "a part of an array is no number", "write a loop over its elements");
  std::vector<Expr> indices = ExprReader::load_indices(b, index);
  for (size_t d = 0; d < indices.size(); ++d) indices[d] = element_index(b, d, std::move(indices[d]), *items[d]);
  return indices;
}

Expr LoopReader::element_index(const Buffer& b, size_t dimension, Expr index, const Syntax& at) {
  const Expr& extent = b->shape[dimension];
  const bool positive = index->dtype.is_uint() || analyzer_.can_prove_greater_equal(index, 0);
  const Expr wide = index->dtype == extent->dtype ? index : ir::cast(extent->dtype, index);
  const bool near = analyzer_.can_prove(ir::lt(wide, extent)) &&
                    (positive || analyzer_.can_prove(ir::ge(wide + extent, ir::int64(0))));
  if (!near) refuse_outside(b, dimension, wide, at);
  if (positive || support::flip(from_python_keeps_negative_indices)) return index;
  const Expr from_end = analyzer_.simplify(wide + extent);
  if (analyzer_.can_prove_less(wide, 0)) return from_end;
  return ir::select(ir::lt(wide, ir::int64(0)), from_end, wide);
}

namespace {

// Iterations one by one, as numbers: of the loops that an index, or a condition around it, goes by.
class Count {
 public:
  Count(const arith::Domain& loops, const std::vector<Expr>& conditions, const Expr& index, const Expr& extent)
      : conditions_(conditions), index_(index), extent_(extent) {
    std::unordered_set<const ir::VarNode*> used;
    const auto use = [&](const Expr& e) {
      for (const Var& v : ir::free_vars(e)) used.insert(v.get());
    };
    use(index);
    for (const Expr& condition : conditions) use(condition);
    for (auto it = loops.rbegin(); it != loops.rend(); ++it) {
      const auto& [v, range] = *it;
      const std::optional<int64_t> turns = ir::as_int(range.extent);
      if (turns && !used.count(v.get())) {
        runs_ = runs_ && *turns > 0;
        continue;
      }
      use(range.min);
      use(range.extent);
      loops_.insert(loops_.begin(), {v, range});
    }
  }

  enum class Found : uint8_t { inside, outside, unknown };
  Found look() { return runs_ ? from(0) : Found::inside; }
  int64_t reached() const { return reached_; }

 private:
  Found from(size_t depth) {
    if (depth == loops_.size()) return here();
    const auto& [v, range] = loops_[depth];
    const auto min = number(range.min), turns = number(range.extent);
    if (!min || !turns) return Found::unknown;
    for (int64_t turn = 0; turn < *turns; ++turn) {
      values_[v.get()] = *min + turn;
      if (const Found found = from(depth + 1); found != Found::inside) return found;
    }
    return Found::inside;
  }

  Found here() {
    constexpr int64_t most = int64_t{1} << 20;
    if (++looked_ > most) return Found::unknown;
    for (const Expr& condition : conditions_) {
      const auto holds = number(condition);
      if (!holds) return Found::unknown;
      if (*holds == 0) return Found::inside;
    }
    const auto index = number(index_), extent = number(extent_);
    if (!index || !extent) return Found::unknown;
    reached_ = *index;
    return *index >= *extent || *index + *extent < 0 ? Found::outside : Found::inside;
  }

  // Nothing where it goes by more than the loops, or by what has no number.
  std::optional<int64_t> number(const Expr& e) {
    using ir::as_int;
    if (const auto known = as_int(e)) return known;
    if (const auto* v = e.as<ir::VarNode>()) {
      const auto it = values_.find(v);
      return it == values_.end() ? std::nullopt : std::optional(it->second);
    }
    if (const auto* n = e.as<ir::Cast>()) return n->dtype == ir::DType::int64() ? number(n->value) : std::nullopt;
    if (const auto* n = e.as<ir::Not>()) return unary(n->a, [](int64_t a) { return int64_t{a == 0}; });
    if (const auto* n = e.as<ir::Select>()) return choice(n->condition, n->true_value, n->false_value);
    if (const auto* n = e.as<ir::Call>(); n && n->op == &ir::intrinsic::if_then_else)
      return choice(n->args[0], n->args[1], n->args[2]);
    if (e->dtype != ir::DType::int64() && !e->dtype.is_bool()) return std::nullopt;
    std::optional<int64_t> result;
    const auto of = [&]<class T>(std::type_identity<T>, auto compute) {
      const auto* n = e.as<T>();
      if (!n || !n->a->dtype.is_scalar() || n->a->dtype.is_floating()) return;
      const auto a = number(n->a), b = number(n->b);
      if (a && b) result = compute(*a, *b);
    };
    using std::type_identity;
    const auto held = [](bool overflows, int64_t value) { return overflows ? std::nullopt : std::optional(value); };
    int64_t value = 0;
    of(type_identity<ir::Add>{},
       [&](int64_t a, int64_t b) { return held(__builtin_add_overflow(a, b, &value), value); });
    of(type_identity<ir::Sub>{},
       [&](int64_t a, int64_t b) { return held(__builtin_sub_overflow(a, b, &value), value); });
    of(type_identity<ir::Mul>{},
       [&](int64_t a, int64_t b) { return held(__builtin_mul_overflow(a, b, &value), value); });
    of(type_identity<ir::Min>{}, [](int64_t a, int64_t b) { return std::min(a, b); });
    of(type_identity<ir::Max>{}, [](int64_t a, int64_t b) { return std::max(a, b); });
    of(type_identity<ir::FloorDiv>{},
       [&](int64_t a, int64_t b) { return held(b <= 0, b > 0 ? ir::floor_div(a, b) : 0); });
    of(type_identity<ir::FloorMod>{},
       [&](int64_t a, int64_t b) { return held(b <= 0, b > 0 ? ir::floor_mod(a, b) : 0); });
    of(type_identity<ir::EQ>{}, [](int64_t a, int64_t b) { return int64_t{a == b}; });
    of(type_identity<ir::NE>{}, [](int64_t a, int64_t b) { return int64_t{a != b}; });
    of(type_identity<ir::LT>{}, [](int64_t a, int64_t b) { return int64_t{a < b}; });
    of(type_identity<ir::LE>{}, [](int64_t a, int64_t b) { return int64_t{a <= b}; });
    of(type_identity<ir::GT>{}, [](int64_t a, int64_t b) { return int64_t{a > b}; });
    of(type_identity<ir::GE>{}, [](int64_t a, int64_t b) { return int64_t{a >= b}; });
    of(type_identity<ir::And>{}, [](int64_t a, int64_t b) { return int64_t{a && b}; });
    of(type_identity<ir::Or>{}, [](int64_t a, int64_t b) { return int64_t{a || b}; });
    return result;
  }
  template <class Compute>
  std::optional<int64_t> unary(const Expr& a, Compute compute) {
    const auto value = number(a);
    return value ? std::optional(compute(*value)) : std::nullopt;
  }
  std::optional<int64_t> choice(const Expr& condition, const Expr& yes, const Expr& no) {
    const auto holds = number(condition);
    return holds ? number(*holds ? yes : no) : std::nullopt;
  }

  const std::vector<Expr>& conditions_;
  const Expr &index_, &extent_;
  arith::Domain loops_;
  bool runs_ = true;
  std::unordered_map<const ir::VarNode*, int64_t> values_;
  int64_t looked_ = 0, reached_ = 0;
};

}  // namespace

// Looks at iterations of the loops around: as numbers, all of those that matter; where sizes are not known or there are
// too many, the corners. One that surely runs and leaves the array is shown.
void LoopReader::refuse_outside(const Buffer& b, size_t dimension, const Expr& index, const Syntax& at) {
  if (reads_arrays(index)) return;
  Count count(loops_, conditions_, index, b->shape[dimension]);
  const Count::Found found = count.look();
  if (found == Count::Found::inside) return;
  if (found == Count::Found::outside) fail_outside(b, dimension, ir::int64(count.reached()), at);
  constexpr size_t most = 256;
  size_t all = 1;
  for (const auto& [v, range] : loops_) {
    const arith::ConstIntBound count = analyzer_.const_int_bound(range.extent);
    const bool few = count.max_value <= static_cast<int64_t>(most);
    all = few && all <= most ? all * static_cast<size_t>(std::max<int64_t>(count.max_value, 1)) : most + 1;
  }
  if (all > most && loops_.size() > 6) return;
  for (size_t number = 0; number < (all <= most ? all : size_t{1} << loops_.size()); ++number)
    refuse_outside_at(number, all <= most, b, dimension, index, at);
}

void LoopReader::refuse_outside_at(size_t number, bool counted, const Buffer& b, size_t dimension, const Expr& index,
                                   const Syntax& at) {
  ir::VarMap values;
  for (const auto& [v, range] : loops_) {
    const auto turns = static_cast<size_t>(
        counted ? std::max<int64_t>(analyzer_.const_int_bound(range.extent).max_value, 1) : int64_t{2});
    const Expr count = analyzer_.simplify(ir::substitute(range.extent, values));
    const auto turn = static_cast<int64_t>(number % turns);
    number /= turns;
    if (!analyzer_.can_prove_greater_equal(count, counted ? turn + 1 : 1)) return;
    const Expr last = counted || turn == 0 ? ir::int64(turn) : count - ir::int64(1);
    values[v] = analyzer_.simplify(ir::substitute(range.min, values) + last);
  }
  for (const Expr& condition : conditions_)
    if (!analyzer_.can_prove(ir::substitute(condition, values))) return;
  const Expr reached = analyzer_.simplify(ir::substitute(index, values));
  const Expr& extent = b->shape[dimension];
  if (analyzer_.can_prove(ir::ge(reached, extent)) || analyzer_.can_prove(ir::lt(reached + extent, ir::int64(0))))
    fail_outside(b, dimension, reached, at);
}

void LoopReader::fail_outside(const Buffer& b, size_t dimension, const Expr& reached, const Syntax& at) {
  const Expr& extent = b->shape[dimension];
  fail(codes::not_loops, at,
       "this index reaches " + script::expression_text(reached) + ", and dimension " + std::to_string(dimension) +
           " of '" + b->name + "' has " + script::expression_text(extent) + " elements");
}

}  // namespace lathe::te
