#include "schedule/analysis/out_of_bounds.h"

#include "arith/int_set.h"
#include "arith/polyhedral/points.h"
#include "ir/match.h"
#include "schedule/program.h"
#include "script/print.h"
#include "support/mutation.h"
#include "tir/analysis/effects.h"
#include "tir/analysis/loop_exits.h"
#include "tir/codes.h"
#include "tir/rewrite.h"
#include "tir/script/dialect.h"

namespace lathe::schedule {

LATHE_FAULT(out_of_bounds_forgets_conditions, "schedule_test",
            "an access is reported in iterations it is guarded from");

namespace {

using arith::PointSearch;

bool fits(DType dtype, __int128 value) {
  const int bits = dtype.bits;
  if (dtype.is_uint()) return value >= 0 && value < (static_cast<__int128>(1) << bits);
  return value >= -(static_cast<__int128>(1) << (bits - 1)) && value < (static_cast<__int128>(1) << (bits - 1));
}

// Whether arithmetic of narrow integers in `e` never wraps, so that it is that of mathematical integers.
bool is_exact(const Expr& e, arith::Analyzer& known) {
  const auto operation = [&](const auto& n) {
    if (!n.dtype.is_integer() || n.dtype == DType::int64()) return true;
    const arith::ConstIntBound a = known.const_int_bound(n.a), b = known.const_int_bound(n.b);
    for (const __int128 x : {a.min_value, a.max_value})
      for (const __int128 y : {b.min_value, b.max_value}) {
        using T = std::decay_t<decltype(n)>;
        if (!fits(n.dtype, std::is_same_v<T, Add> ? x + y : std::is_same_v<T, Sub> ? x - y : x * y)) return false;
      }
    return true;
  };
  bool exact = true;
  pre_order(e, [&](const NodeRef& node) {
    if (const auto* n = node.as<Add>()) exact = exact && operation(*n);
    if (const auto* n = node.as<Sub>()) exact = exact && operation(*n);
    if (const auto* n = node.as<Mul>()) exact = exact && operation(*n);
    return exact;
  });
  return exact;
}

class BoundsCheck {
 public:
  support::Diagnostics found;

  void statement(const Stmt& s) {
    if (!s) return;
    const support::Place* outside = place_;
    if (s->origin()) place_ = s->origin().get();
    match_all(
        s,
        [&](const LetStmt& n) {
          expression(n.value);
          values_[n.var] = value(n.value);
          statement(n.body);
        },
        [&](const AttrStmt& n) {
          if (n.value) expression(n.value);
          statement(n.body);
        },
        [&](const AssertStmt& n) {
          expression(n.condition);
          conditions_.push_back(value(n.condition));
          ++promises_;
        },
        [&](const BufferStore& n) {
          expression(n.value);
          access(n.buffer, n.indices, n.predicate, "store");
        },
        [&](const DeclBuffer& n) { statement(n.body); },
        [&](const Allocate& n) {
          for (const Expr& extent : n.extents) expression(extent);
          statement(n.body);
        },
        [&](const AllocateConst& n) { statement(n.body); },
        [&](const SeqStmt& n) {
          for (const Stmt& each : n.seq) statement(each);
        },
        [&](const IfThenElse& n) {
          expression(n.condition);
          const Expr condition = value(n.condition);
          under(condition, [&] { statement(n.then_case); });
          under(logical_not(condition), [&] { statement(n.else_case); });
        },
        [&](const Evaluate& n) { evaluate(n); }, [&](const For& n) { loop(n); },
        [&](const While& n) {
          unsure([&] {
            expression(n.condition);
            scoped([&] { statement(n.body); });
          });
        },
        [&](const Block& n) { support::unreachable("a block stands in its realize: " + n.name); },
        [&](const BlockRealize& n) { block(n); });
    place_ = outside;
  }

 private:
  void evaluate(const Evaluate& n) {
    const auto* call = n.value.as<Call>();
    expression(n.value);
    if (!call) return;
    if (call->op == &intrinsic::assume) {
      conditions_.push_back(value(call->args[0]));
      ++promises_;
    }
    // What comes behind may not happen.
    if (call->op == &intrinsic::ret || call->op == &intrinsic::raise_error) may_have_stopped_ = true;
  }

  void loop(const For& n) {
    expression(n.min);
    expression(n.extent);
    const Expr min = value(n.min), end = min + value(n.extent);
    const auto body = [&] {
      scoped([&] {
        conditions_.push_back(n.loop_var >= min);
        conditions_.push_back(n.loop_var < end);
        known_.bind(n.loop_var, Range{min, value(n.extent)});
        loops_.emplace_back(n.loop_var, Range{min, value(n.extent)});
        statement(n.body);
        loops_.pop_back();
      });
    };
    has_loop_exits(n.body) ? unsure(body) : body();
  }

  void block(const BlockRealize& n) {
    const Block& block = *n.block;
    expression(n.predicate);
    scoped([&] {
      conditions_.push_back(value(n.predicate));
      for (const Expr& bound : n.iter_values) expression(bound);
      for (size_t k = 0; k < block.iter_vars.size() && k < n.iter_values.size(); ++k)
        values_[block.iter_vars[k]->var] = value(n.iter_values[k]);
      for (const MatchBufferRegion& match : block.match_buffers) views_[match->buffer] = match->source;
      if (block.init)
        scoped([&] {
          for (const IterVar& iter : block.iter_vars)
            if (iter->type == IterType::reduce)
              conditions_.push_back(eq(as_index(value(iter->var)), as_index(value(iter->dom.min))));
          statement(block.init);
        });
      statement(block.body);
    });
  }

  // What is asserted inside counts inside; what comes later may not happen where it does not hold.
  template <class Body>
  void scoped(Body body) {
    const size_t conditions = conditions_.size(), promises = promises_;
    body();
    conditions_.resize(conditions);
    if (promises_ != promises) may_have_stopped_ = true;
    promises_ = promises;
  }
  template <class Body>
  void under(const Expr& condition, Body body) {
    scoped([&] {
      conditions_.push_back(condition);
      body();
    });
  }
  template <class Body>
  void unsure(Body body) {
    ++unsure_;
    body();
    --unsure_;
  }

  void expression(const Expr& e) {
    if (const auto* load = e.as<BufferLoad>()) return access(load->buffer, load->indices, load->predicate, "load");
    if (const auto* let = e.as<Let>()) {
      expression(let->value);
      values_[let->var] = value(let->value);
      return expression(let->body);
    }
    if (const auto* choice = e.as<Select>()) return choose(choice->condition, choice->true_value, choice->false_value);
    if (const auto* both = e.as<And>()) return choose(both->a, both->b, {});
    if (const auto* either = e.as<Or>()) return choose(either->a, {}, either->b);
    if (const auto* call = e.as<Call>()) {
      if (is_hint(*call)) return;
      if (call->op == &intrinsic::if_then_else) return choose(call->args[0], call->args[1], call->args[2]);
      const auto* element = call->op == &intrinsic::address_of ? call->args[0].as<BufferLoad>() : nullptr;
      if (element) {
        for (const Expr& index : element->indices) expression(index);
        return;
      }
    }
    e->node_class().for_each_child(*e, [&](const NodeRef& child) {
      if (child && child->node_class().family == ExprNode::family) expression(ir::detail::narrow<ExprNode>(child));
    });
  }

  void choose(const Expr& condition, const Expr& chosen, const Expr& otherwise) {
    expression(condition);
    if (chosen) under(value(condition), [&] { expression(chosen); });
    if (otherwise) under(logical_not(value(condition)), [&] { expression(otherwise); });
  }

  void access(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask, const char* what) {
    for (const Expr& index : indices) expression(index);
    if (mask) expression(mask);
    if (unsure_ > 0 || may_have_stopped_ || mask) return;
    Buffer memory = buffer;
    std::vector<Expr> at;
    for (const Expr& index : indices) at.push_back(value(index));
    for (auto view = views_.find(memory); view != views_.end(); view = views_.find(memory)) {
      const std::vector<Range>& region = view->second->region;
      if (region.size() < at.size()) return;
      const size_t dropped = region.size() - at.size();
      std::vector<Expr> moved;
      for (size_t d = 0; d < region.size(); ++d) {
        const Expr corner = value(region[d].min);
        if (d < dropped)
          moved.push_back(corner);
        else if (at[d - dropped]->dtype != corner->dtype)
          return;
        else
          moved.push_back(at[d - dropped] + corner);
      }
      at = std::move(moved);
      memory = view->second->buffer;
    }
    for (size_t d = 0; d < at.size() && d < memory->shape.size(); ++d)
      if (index_is_wrong(memory, d, at[d], what)) return;
  }

  // Whether the index is shown to be outside; then it is reported.
  bool index_is_wrong(const Buffer& buffer, size_t dimension, Expr index, const char* what) {
    arith::Domain moving = loops_;
    Expr lanes = boolean(true);
    if (const auto* ramp = index.as<Ramp>()) {
      const Var lane = make<VarNode>("lane", ramp->base->dtype);
      const Range range{constant(lane->dtype, 0), constant(lane->dtype, ramp->lanes)};
      known_.bind(lane, range);
      moving.emplace_back(lane, range);
      lanes = logical_and(lane >= range.min, lane < range.extent);
      index = ramp->base + lane * ramp->stride;
    } else if (const auto* same = index.as<Broadcast>()) {
      index = same->value;
    }
    const Expr extent = value(buffer->shape[dimension]);
    if (!index->dtype.is_scalar() || !is_exact(index, known_) || !is_exact(extent, known_)) return false;
    const Expr inside = logical_and(as_index(index) >= 0, as_index(index) < as_index(extent));
    if (known_.can_prove(inside)) return false;
    Expr happens = lanes;
    for (const Expr& condition : conditions_) {
      if (support::flip(out_of_bounds_forgets_conditions)) continue;
      if (!is_exact(condition, known_)) return false;
      happens = logical_and(happens, without_hints(condition));
    }
    const Expr wrong = logical_and(happens, make<Not>(inside));
    const PointSearch point = arith::find_point(wrong);
    if (point.outcome != PointSearch::found) return false;

    // Where something else than loops decides: all that it may be.
    std::vector<Var> hidden;
    for (const auto& [variable, range] : moving) hidden.push_back(variable);
    const std::vector<Var> all = free_vars(wrong);
    const bool open = std::any_of(all.begin(), all.end(), [&](const Var& v) {
      return std::find(hidden.begin(), hidden.end(), v) == hidden.end();
    });
    if (open && arith::find_uncovered({happens, hidden}, {{wrong, hidden}}).outcome != PointSearch::none) return false;
    report(buffer, dimension, index, extent, moving, point, what);
    return true;
  }

  void report(const Buffer& buffer, size_t dimension, const Expr& index, const Expr& extent,
              const arith::Domain& moving, const PointSearch& point, const char* what) {
    const arith::Interval range = arith::evaluate_interval(index, moving, known_);
    VarMap at;
    std::string where;
    for (const Var& v : free_vars(make<LT>(as_index(index), as_index(extent)))) {
      const auto it = point.values.find(v);
      if (it == point.values.end()) continue;
      at[v] = constant(v->dtype, it->second);
      where += fmt::format("{}{} = {}", where.empty() ? " where " : ", ", v->name, it->second);
    }
    const auto end = [&](const Expr& e) { return e ? text(known_.simplify(e)) : std::string("unknown"); };
    support::Diagnostic problem;
    problem.code = tir::codes::access_out_of_bounds;
    if (place_) problem.place = *place_;
    problem.message =
        fmt::format("a {} of '{}' is out of bounds: index {} is {}, from {} to {}, and the extent is {}", what,
                    buffer->name, dimension, text(index), end(range.min), end(range.max), text(extent));
    problem.note(fmt::format("it is {}{}", text(fold_constants(substitute(index, at))), where));
    found.push_back(std::move(problem));
  }

  static std::string text(const Expr& e) {
    if (const auto number = as_int(e)) return std::to_string(*number);
    const script::Dialect* dialects[] = {&tir::script_dialect()};
    return script::print(e, {}, dialects);
  }

  static Expr without_hints(const Expr& e) {
    return rewrite_post_order(e, [](NodeRef node) -> NodeRef {
      const auto* call = node.as<Call>();
      return call && call->op == &intrinsic::likely ? NodeRef(call->args[0]) : node;
    });
  }

  static Expr as_index(const Expr& e) { return cast(DType::int64(), e); }

  Expr value(const Expr& e) const { return values_.empty() ? e : substitute(e, values_); }

  arith::Analyzer known_;
  VarMap values_;  // of lets and of blocks' variables, in loop variables
  std::unordered_map<Buffer, BufferRegion> views_;
  arith::Domain loops_;           // outermost first
  std::vector<Expr> conditions_;  // under which what is looked at happens
  size_t promises_ = 0;           // how many of them are assertions and assumptions
  int unsure_ = 0;                // loops around that may end before it
  bool may_have_stopped_ = false;
  const support::Place* place_ = nullptr;
};

}  // namespace

support::Diagnostics find_out_of_bounds(const ir::IRModule& module) {
  support::Diagnostics all;
  for (const auto& [name, function] : module) {
    if (!function.is<PrimFunc>()) continue;
    BoundsCheck check;
    check.statement(cast<PrimFunc>(function)->body);
    for (support::Diagnostic& problem : check.found) {
      problem.note("in function '" + name + "'");
      all.push_back(std::move(problem));
    }
  }
  return all;
}

}  // namespace lathe::schedule
