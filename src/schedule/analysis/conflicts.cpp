#include "schedule/analysis/conflicts.h"

#include "ir/visit.h"
#include "schedule/analysis/tree.h"
#include "support/mutation.h"

namespace lathe::schedule {

LATHE_FAULT(conflicts_forget_writes, "schedule_test", "two writes of one element in another order are no conflict");

using arith::PointSearch;

namespace {

// Pairs of accesses that are asked before the budget counts as spent: each costs up to milliseconds.
constexpr size_t most_pairs = 96;

bool same_condition(const Expr& a, const Expr& b) { return !a == !b && (!a || structural_equal(a, b)); }

bool same_access(const Access& a, const Access& b) {
  if (!a.block || a.writes != b.writes || a.block != b.block || a.loops != b.loops ||
      a.region.size() != b.region.size() || a.is_init != b.is_init || a.opaque != b.opaque || a.exact != b.exact ||
      !same_condition(a.guard, b.guard) || !same_condition(a.predicate, b.predicate))
    return false;
  for (size_t d = 0; d < a.region.size(); ++d)
    if (!structural_equal(a.region[d].min, b.region[d].min) ||
        !structural_equal(a.region[d].extent, b.region[d].extent))
      return false;
  return true;
}

// The loops that an instance is in, and their variables renamed for it.
struct Renamed {
  std::vector<const For*> loops;
  VarMap map;

  Renamed(const std::vector<const For*>& moving, const Access& access) : loops(moving) {
    loops.insert(loops.end(), access.loops.begin(), access.loops.end());
    for (const For* loop : loops) map.emplace(loop->loop_var, var(loop->loop_var->name, loop->loop_var->dtype));
  }

  // It runs at all, and touches `element`.
  Expr touches(const Access& access, const std::vector<Var>& element) const {
    Expr condition = substitute(in_range(loops), map);
    for (const Expr& known : {access.predicate, access.guard})
      if (known) condition = logical_and(condition, substitute(known, map));
    for (size_t d = 0; d < element.size(); ++d) {
      const Expr low = substitute(access.region[d].min, map);
      if (is_int(access.region[d].extent, 1)) {
        condition = logical_and(condition, eq(element[d], low));
        continue;
      }
      const Expr end = substitute(access.region[d].min + access.region[d].extent, map);
      condition = logical_and(condition, logical_and(element[d] >= low, element[d] < end));
    }
    return condition;
  }

  Instance instance(const Access& access, const std::unordered_map<Var, int64_t>& values) const {
    Instance result{access, {}};
    for (const For* loop : loops) {
      const auto it = values.find(cast<VarNode>(map.at(loop->loop_var)));
      // What no condition mentions may be anything; its loop has an iteration.
      const int64_t value = it != values.end() ? it->second : as_int(loop->min).value_or(0);
      result.at.emplace_back(loop->loop_var->name, value);
    }
    return result;
  }
};

std::string listed(const std::vector<std::pair<std::string, int64_t>>& values) {
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

// The condition with what is known of the variables in it and in that.
Expr with_ranges(Expr condition, const Ranges& around) {
  std::vector<Var> open = free_vars(condition);
  for (size_t i = 0; i < open.size(); ++i) {
    const auto it = around.find(open[i]);
    if (it == around.end()) continue;
    const Expr low = it->second.min, end = low + it->second.extent;
    condition = logical_and(condition, logical_and(open[i] >= low, open[i] < end));
    for (const Var& v : free_vars(end))
      if (std::find(open.begin(), open.end(), v) == open.end()) open.push_back(v);
  }
  return condition;
}

// What nothing is known of, in words.
std::string unknown_in(const Expr& obstacle) {
  std::string words;
  pre_order(obstacle, [&](const NodeRef& n) {
    if (const auto* load = n.as<BufferLoad>(); load && words.empty())
      words = fmt::format("the values of '{}'", load->buffer->name);
    if (const auto* call = n.as<Call>(); call && words.empty()) words = fmt::format("a call of '{}'", call->op->name);
    return words.empty();
  });
  if (!words.empty()) return words;
  std::vector<std::string> names;
  for (const Var& v : free_vars(obstacle)) names.push_back("'" + v->name + "'");
  return fmt::format("{} in an expression that is not affine", fmt::join(names, ", "));
}

Conflict conflict_of(const Access& a, const Access& b, const std::vector<const For*>& moving, const Ranges& around,
                     PairCondition counts) {
  const Renamed first(moving, a), second(moving, b);
  std::vector<Var> element;
  for (size_t d = 0; d < a.region.size(); ++d) element.push_back(var(fmt::format("element{}", d)));
  const Expr pair = counts(a, first.map, b, second.map);
  Conflict conflict;
  if (is_int(pair, 0)) return conflict;
  const Expr condition =
      with_ranges(logical_and(pair, logical_and(first.touches(a, element), second.touches(b, element))), around);
  const PointSearch search = arith::find_point(condition);
  conflict.outcome = search.outcome;
  conflict.obstacle = search.obstacle;
  if (search.outcome != PointSearch::found) return conflict;
  conflict.first = first.instance(a, search.values);
  conflict.second = second.instance(b, search.values);
  for (const Var& v : element) conflict.element.push_back(search.values.at(v));
  std::unordered_set<Var> own(element.begin(), element.end());
  for (const VarMap* map : {&first.map, &second.map})
    for (const auto& [from, to] : *map) own.insert(cast<VarNode>(to));
  for (const Var& v : free_vars(condition))
    if (!own.count(v)) conflict.shared.emplace_back(v->name, search.values.at(v));
  return conflict;
}

}  // namespace

std::string Conflict::reason(const std::string& loop, const Buffer& buffer) const {
  if (outcome == PointSearch::found && first.access.exact && second.access.exact)
    return fmt::format("different iterations of {} touch the same element of '{}'", loop, buffer->name);
  return fmt::format("could not show that different iterations of {} touch different elements of '{}'{}", loop,
                     buffer->name,
                     outcome == PointSearch::spent ? ": the budget of the polyhedral proof is spent" : "");
}

void Conflict::explain(Diagnostic& problem) const {
  if (outcome == PointSearch::undecided) problem.note("which elements are touched depends on " + unknown_in(obstacle));
  if (outcome == PointSearch::spent) problem.note("the budget of the polyhedral proof is spent");
  if (outcome != PointSearch::found) return;
  for (const Instance* instance : {&first, &second}) {
    const Access& access = instance->access;
    std::vector<std::pair<std::string, int64_t>> where = shared;
    where.insert(where.end(), instance->at.begin(), instance->at.end());
    problem.note(fmt::format("{} {}{} {}[{}]{}{}", access.block ? name_of(*access.block) : "a statement outside blocks",
                             access.exact ? "" : "perhaps ", access.writes ? "writes" : "reads", access.buffer->name,
                             fmt::join(element, ", "), where.empty() ? "" : " where ", listed(where)));
  }
}

Expr in_range(const std::vector<const For*>& loops) {
  Expr condition = boolean(true);
  for (const For* loop : loops)
    condition =
        logical_and(condition, logical_and(loop->loop_var >= loop->min, loop->loop_var < loop->min + loop->extent));
  return condition;
}

Expr comes_before(const std::vector<const For*>& loops, const VarMap& a, const VarMap& b) {
  Expr before = boolean(false);
  for (size_t i = loops.size(); i-- > 0;) {
    const Expr x = a.at(loops[i]->loop_var), y = b.at(loops[i]->loop_var);
    before = logical_or(x < y, logical_and(eq(x, y), before));
  }
  return before;
}

Expr comes_before(const Access& a, const VarMap& at_a, const Access& b, const VarMap& at_b) {
  std::vector<const For*> common;
  while (common.size() < a.loops.size() && common.size() < b.loops.size() &&
         a.loops[common.size()] == b.loops[common.size()])
    common.push_back(a.loops[common.size()]);
  const Expr before = comes_before(common, at_a, at_b);
  if (a.order >= b.order) return before;
  return logical_not(comes_before(common, at_b, at_a));
}

namespace {

AccessList different(const AccessList& list) {
  AccessList result;
  for (const Access* access : list)
    if (std::none_of(result.begin(), result.end(), [&](const Access* other) { return same_access(*access, *other); }))
      result.push_back(access);
  return result;
}

}  // namespace

Conflict find_conflict(const AccessList& firsts, const AccessList& seconds, const std::vector<const For*>& moving,
                       const Ranges& around, PairCondition counts) {
  const AccessList some = different(firsts), others = different(seconds);
  Conflict undecided;
  size_t pairs = 0;
  for (const Access* a : some)
    for (const Access* b : others) {
      const bool matters = support::flip(conflicts_forget_writes) ? a->writes != b->writes : a->writes || b->writes;
      if (!matters) continue;
      if (a->region.size() != b->region.size()) continue;
      if (++pairs > most_pairs) {
        undecided.outcome = PointSearch::spent;
        return undecided;
      }
      Conflict conflict = conflict_of(*a, *b, moving, around, counts);
      if (conflict.outcome == PointSearch::found) return conflict;
      if (conflict) undecided = std::move(conflict);
    }
  return undecided;
}

}  // namespace lathe::schedule
