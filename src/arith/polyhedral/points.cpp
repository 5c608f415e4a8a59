#include "arith/polyhedral/points.h"

#include <isl/aff.h>
#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include "ir/build.h"
#include "ir/conditions.h"
#include "ir/visit.h"
#include "support/mutation.h"

namespace lathe::arith {

LATHE_FAULT(points_drop_conditions, "arith_polyhedral_test schedule_test", "the second of two conditions is not asked");

namespace {

using namespace ir;  // NOLINT: written over expressions throughout

// Rewrites what is not quasi-affine to variables of which nothing is known.
class Opaque {
 public:
  Expr obstacle;               // the first of them
  std::vector<Var> stand_ins;  // those variables

  Expr condition(const Expr& e) {
    if (const auto* n = e.as<And>()) return logical_and(condition(n->a), condition(n->b));
    if (const auto* n = e.as<Or>()) return logical_or(condition(n->a), condition(n->b));
    if (const auto* n = e.as<Not>()) return make<Not>(condition(n->a));
    if (as_int(e)) return e;
    if (const auto* n = e.as<LT>()) return compared<LT>(*n, e);
    if (const auto* n = e.as<LE>()) return compared<LE>(*n, e);
    if (const auto* n = e.as<GT>()) return compared<GT>(*n, e);
    if (const auto* n = e.as<GE>()) return compared<GE>(*n, e);
    if (const auto* n = e.as<EQ>()) return compared<EQ>(*n, e);
    if (const auto* n = e.as<NE>()) return compared<NE>(*n, e);
    return make<NE>(unknown(e), int64(0));
  }

 private:
  template <class T>
  Expr compared(const T& n, const Expr& whole) {
    if (!n.a->dtype.is_int() && !n.a->dtype.is_uint() && !n.a->dtype.is_bool())
      return make<NE>(unknown(whole), int64(0));
    return make<T>(value(n.a), value(n.b));
  }

  // Operands may be of different integer dtypes afterwards; as indices they are all mathematical integers.
  Expr value(const Expr& e) {
    if (e->dtype.is_vector()) return unknown(e);
    if (const auto constant = as_int(e)) return int64(*constant);
    if (e.is<VarNode>()) return e->dtype.is_handle() ? unknown(e) : e;
    if (const auto* n = e.as<Add>()) return make<Add>(value(n->a), value(n->b));
    if (const auto* n = e.as<Sub>()) return make<Sub>(value(n->a), value(n->b));
    if (const auto* n = e.as<Min>()) return make<Min>(value(n->a), value(n->b));
    if (const auto* n = e.as<Max>()) return make<Max>(value(n->a), value(n->b));
    if (const auto* n = e.as<Select>())
      return make<Select>(condition(n->condition), value(n->true_value), value(n->false_value));
    if (const auto* n = e.as<Mul>()) {
      if (as_int(n->a) || as_int(n->b)) return make<Mul>(value(n->a), value(n->b));
    } else if (const auto* n = e.as<FloorDiv>()) {
      if (as_int(n->b).value_or(0) > 0) return make<FloorDiv>(value(n->a), value(n->b));
    } else if (const auto* n = e.as<FloorMod>()) {
      if (as_int(n->b).value_or(0) > 0) return make<FloorMod>(value(n->a), value(n->b));
    } else if (const auto* n = e.as<Cast>()) {
      const DType from = n->value->dtype;
      if (e->dtype.is_int() && from.is_int() && from.bits <= e->dtype.bits) return value(n->value);
    }
    return unknown(e);
  }

  Expr unknown(const Expr& e) {
    if (!obstacle) obstacle = e;
    bool lasting = true;  // the same wherever its variables have the same values
    pre_order(e, [&](const NodeRef& n) {
      lasting = lasting && !n.is<BufferLoad>() && !n.is<Call>();
      return lasting;
    });
    if (lasting)
      for (const auto& [known, stand_in] : known_)
        if (structural_equal(known, e)) return stand_in;
    const Var stand_in = var("unknown");
    stand_ins.push_back(stand_in);
    if (lasting) known_.emplace_back(e, stand_in);
    return stand_in;
  }

  std::vector<std::pair<Expr, Var>> known_;
};

// Rewrites what is computed of sizes alone, and is no plain sum, to variables: extents that shapes derive from one
// another are nested quotients and maxima, and which values they take seldom matters. Of equal ones equal variables
// are known, and constants that they do not fall short of. So no point is lost, and there may be more.
class Coarse : public Rewriter {
 public:
  Expr bounds = boolean(true);  // of those variables
  bool changes = false;

 private:
  NodeRef visit(NodeRef node) override {
    if (!node.is<Max>() && !node.is<Min>() && !node.is<FloorDiv>() && !node.is<FloorMod>()) return descend(node);
    const Expr e = Expr(static_cast<const ExprNode*>(node.get()));
    const std::vector<Var> variables = free_vars(e);
    if (variables.empty() || std::any_of(variables.begin(), variables.end(), [](const Var& v) { return !v->is_size; }))
      return descend(node);
    for (const auto& [known, stand_in] : known_)
      if (structural_equal(known, e)) return stand_in;
    const Var stand_in = var("of_sizes");
    known_.emplace_back(e, stand_in);
    changes = true;
    if (const auto* most = e.as<Max>())
      for (const Expr& least : {most->a, most->b})
        if (as_int(least)) bounds = logical_and(bounds, make<GE>(stand_in, least));
    return stand_in;
  }

  std::vector<std::pair<Expr, Var>> known_;
};

struct FreeContext {
  void operator()(isl_ctx* context) const { isl_ctx_free(context); }
};
using Context = std::unique_ptr<isl_ctx, FreeContext>;

Context limited_context(PointBudget budget) {
  Context context(isl_ctx_alloc());
  isl_options_set_on_error(context.get(), ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(context.get(), budget.operations);
  return context;
}

// Sets over the variables of a list, one dimension each. isl's functions take over what they are given, and give null
// once one of them failed or the budget is spent, so that nothing is asked in between.
class Sets {
 public:
  Sets(isl_ctx* context, const std::vector<Var>& variables)
      : space_(isl_space_set_alloc(context, 0, static_cast<unsigned>(variables.size()))), context_(context) {
    for (size_t i = 0; i < variables.size(); ++i) dimension_[variables[i].get()] = static_cast<unsigned>(i);
  }
  Sets(const Sets&) = delete;
  ~Sets() { isl_space_free(space_); }

  isl_set* nothing() const { return isl_set_empty(isl_space_copy(space_)); }

  isl_set* where(const Expr& e) const {
    if (const auto* n = e.as<And>()) {
      isl_set* first = where(n->a);
      return support::flip(points_drop_conditions) ? first : isl_set_intersect(first, where(n->b));
    }
    if (const auto* n = e.as<Or>()) return isl_set_union(where(n->a), where(n->b));
    if (const auto* n = e.as<Not>()) return isl_set_complement(where(n->a));
    if (const auto value = as_int(e)) return *value ? isl_set_universe(isl_space_copy(space_)) : nothing();
    if (const auto* n = e.as<LT>()) return isl_pw_aff_lt_set(value(n->a), value(n->b));
    if (const auto* n = e.as<LE>()) return isl_pw_aff_le_set(value(n->a), value(n->b));
    if (const auto* n = e.as<GT>()) return isl_pw_aff_gt_set(value(n->a), value(n->b));
    if (const auto* n = e.as<GE>()) return isl_pw_aff_ge_set(value(n->a), value(n->b));
    if (const auto* n = e.as<EQ>()) return isl_pw_aff_eq_set(value(n->a), value(n->b));
    if (const auto* n = e.as<NE>()) return isl_pw_aff_ne_set(value(n->a), value(n->b));
    support::unreachable("a condition that was not prepared");
  }

 private:
  isl_local_space* local() const { return isl_local_space_from_space(isl_space_copy(space_)); }
  isl_val* number(int64_t value) const { return isl_val_int_from_si(context_, value); }

  isl_pw_aff* value(const Expr& e) const {
    if (const auto constant = as_int(e)) return isl_pw_aff_from_aff(isl_aff_val_on_domain(local(), number(*constant)));
    if (const auto* v = e.as<VarNode>())
      return isl_pw_aff_from_aff(isl_aff_var_on_domain(local(), isl_dim_set, dimension_.at(v)));
    if (const auto* n = e.as<Add>()) return isl_pw_aff_add(value(n->a), value(n->b));
    if (const auto* n = e.as<Sub>()) return isl_pw_aff_sub(value(n->a), value(n->b));
    if (const auto* n = e.as<Mul>()) return isl_pw_aff_mul(value(n->a), value(n->b));
    if (const auto* n = e.as<Min>()) return isl_pw_aff_min(value(n->a), value(n->b));
    if (const auto* n = e.as<Max>()) return isl_pw_aff_max(value(n->a), value(n->b));
    if (const auto* n = e.as<FloorDiv>())
      return isl_pw_aff_floor(isl_pw_aff_scale_down_val(value(n->a), number(*as_int(n->b))));
    if (const auto* n = e.as<FloorMod>()) return isl_pw_aff_mod_val(value(n->a), number(*as_int(n->b)));
    if (const auto* n = e.as<Select>())
      return isl_pw_aff_cond(isl_set_indicator_function(where(n->condition)), value(n->true_value),
                             value(n->false_value));
    support::unreachable("a value that was not prepared");
  }

  isl_space* space_;
  isl_ctx* context_;
  std::unordered_map<const VarNode*, unsigned> dimension_;
};

Expr with_sizes(Expr condition) {
  for (const Var& v : free_vars(condition))
    if (v->is_size) condition = logical_and(condition, make<GE>(v, int64(0)));
  return condition;
}

// What is to be said once `set` (taken over) is known.
PointSearch sample(isl_set* set, const std::vector<Var>& variables, const Expr& obstacle) {
  PointSearch result;
  isl_point* point = isl_set_sample_point(set);
  const isl_bool nowhere = isl_point_is_void(point);
  if (nowhere == isl_bool_false && obstacle) {
    result.outcome = PointSearch::undecided;
    result.obstacle = obstacle;
  } else if (nowhere == isl_bool_false) {
    result.outcome = PointSearch::found;
    for (size_t i = 0; i < variables.size(); ++i) {
      isl_val* value = isl_point_get_coordinate_val(point, isl_dim_set, static_cast<int>(i));
      result.values[variables[i]] = isl_val_get_num_si(value);
      isl_val_free(value);
    }
  } else if (nowhere == isl_bool_error) {
    result.outcome = PointSearch::spent;
  }
  isl_point_free(point);
  return result;
}

bool share(const std::vector<Var>& some, const std::vector<Var>& others) {
  return std::any_of(some.begin(), some.end(),
                     [&](const Var& v) { return std::find(others.begin(), others.end(), v) != others.end(); });
}

// Of conditions that hold together those that mention some of the variables, or that mention none where none are
// given; grouped as they were, which decides what point isl finds.
Expr part_about(const std::vector<Var>& variables, const Expr& e) {
  if (const auto* both = e.as<And>())
    return logical_and(part_about(variables, both->a), part_about(variables, both->b));
  const std::vector<Var> mentioned = free_vars(e);
  return share(mentioned, variables) || (mentioned.empty() && variables.empty()) ? e : boolean(true);
}

// A condition's parts that have no variable in common, each of which has a point by itself or not: the box of one axis
// has nothing to do with that of another, and what isl takes grows much faster than the number of variables. Those of
// few variables come first.
std::vector<Expr> apart(const Expr& condition) {
  std::vector<std::vector<Var>> groups;
  for (const Expr& part : conjuncts(condition)) {
    std::vector<Var> joined = free_vars(part);
    const auto met = std::partition(groups.begin(), groups.end(),
                                    [&](const std::vector<Var>& group) { return !share(group, joined); });
    for (auto group = met; group != groups.end(); ++group)
      for (const Var& v : *group)
        if (!share({v}, joined)) joined.push_back(v);
    groups.erase(met, groups.end());
    groups.push_back(std::move(joined));
  }
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<Expr> parts;
  for (const std::vector<Var>& group : groups) parts.push_back(part_about(group, condition));
  return parts;
}

// A point of each part of the condition, together one of the whole.
PointSearch point_by_parts(const Expr& condition, PointBudget budget) {
  const Context context = limited_context(budget);
  PointSearch whole;
  whole.outcome = PointSearch::found;
  for (const Expr& part : apart(condition)) {
    const std::vector<Var> variables = free_vars(part);
    const Sets sets(context.get(), variables);
    const PointSearch search = sample(sets.where(part), variables, {});
    if (search.outcome == PointSearch::none) return search;
    if (search.outcome == PointSearch::spent) whole.outcome = PointSearch::spent;
    whole.values.insert(search.values.begin(), search.values.end());
  }
  return whole;
}

}  // namespace

PointSearch find_point(const Expr& condition, PointBudget budget) {
  Opaque opaque;
  const Expr prepared = with_sizes(opaque.condition(condition));
  Coarse coarse;
  const Expr simpler = coarse(prepared);
  if (coarse.changes)
    if (PointSearch search = point_by_parts(logical_and(simpler, coarse.bounds), budget);
        search.outcome == PointSearch::none)
      return search;
  const PointSearch whole = point_by_parts(prepared, budget);
  if (whole.outcome == PointSearch::none) return whole;
  if (whole.outcome == PointSearch::found && !opaque.obstacle) return whole;
  PointSearch unsure;
  unsure.outcome = whole.outcome == PointSearch::spent ? PointSearch::spent : PointSearch::undecided;
  if (unsure.outcome == PointSearch::undecided) unsure.obstacle = opaque.obstacle;
  return unsure;
}

PointSearch find_uncovered(const Projection& part, const std::vector<Projection>& whole, PointBudget budget) {
  // One space for all: first what is not hidden, then what is, each projection's apart from the others'.
  std::vector<Var> shown, hidden;
  std::vector<Expr> conditions;
  Expr obstacle;
  const auto add = [&](const Projection& projection) {
    VarMap own;
    for (const Var& v : projection.hidden) own.emplace(v, with(*v, [](VarNode&) {}));
    Opaque opaque;
    conditions.push_back(with_sizes(opaque.condition(substitute(projection.condition, own))));
    for (const auto& [v, fresh] : own) hidden.push_back(cast<VarNode>(fresh));
    hidden.insert(hidden.end(), opaque.stand_ins.begin(), opaque.stand_ins.end());
    if (!obstacle) obstacle = opaque.obstacle;
    for (const Var& v : free_vars(conditions.back()))
      if (std::find(hidden.begin(), hidden.end(), v) == hidden.end() &&
          std::find(shown.begin(), shown.end(), v) == shown.end())
        shown.push_back(v);
    return !opaque.obstacle;
  };
  add(part);
  for (const Projection& projection : whole)
    if (!add(projection)) conditions.back() = boolean(false);  // what is only perhaps there covers nothing
  std::vector<Var> variables = shown;
  variables.insert(variables.end(), hidden.begin(), hidden.end());
  const Context context = limited_context(budget);
  const Sets sets(context.get(), variables);
  const auto projected = [&](const Expr& condition) {
    return isl_set_project_out(sets.where(condition), isl_dim_set, static_cast<unsigned>(shown.size()),
                               static_cast<unsigned>(hidden.size()));
  };
  isl_set* left = projected(conditions[0]);
  for (size_t i = 1; i < conditions.size(); ++i) left = isl_set_subtract(left, projected(conditions[i]));
  return sample(left, shown, obstacle);
}

}  // namespace lathe::arith
