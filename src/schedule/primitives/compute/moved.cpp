#include "schedule/primitives/compute/moved.h"

#include "ir/visit.h"
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "support/mutation.h"

namespace lathe::schedule {

LATHE_FAULT(moved_loses_instances, "schedule_test", "instances may be lost, or come anew, where a block is moved");
LATHE_FAULT(moved_turns_round, "schedule_test", "a moved block's instances may change their order");

namespace {

Expr same_iteration(const std::vector<const For*>& loops, const VarMap& a, const VarMap& b) {
  Expr same = boolean(true);
  for (const For* loop : loops) same = logical_and(same, eq(a.at(loop->loop_var), b.at(loop->loop_var)));
  return same;
}

// One place of the block: the loops around it, and what it is bound to.
struct Place {
  std::vector<const For*> loops;
  const BlockRealize& realize;
  Expr guard = boolean(true);  // the conditions that it is under
  bool known = true;           // nothing else decides how often it runs

  Place(const PrimFunc& function, const Block& block) : Place(path_to(function.body, block.id)) {}
  explicit Place(const Path& path) : loops(loops_above(path)), realize(*path.back().as<BlockRealize>()) {
    for (size_t at = path.size() - 1; at-- > 0 && !path[at].is<Block>();) {
      if (const auto* branch = path[at].as<IfThenElse>()) {
        const bool then = branch->then_case == path[at + 1];
        guard = logical_and(guard, then ? branch->condition : logical_not(branch->condition));
      } else if (!path[at].is<For>() && !path[at].is<SeqStmt>() && !path[at].is<BlockRealize>()) {
        known = false;
      }
    }
  }

  VarMap renamed() const {
    VarMap map;
    for (const For* loop : loops) map.emplace(loop->loop_var, var(loop->loop_var->name, loop->loop_var->dtype));
    return map;
  }
  Expr runs() const { return logical_and(in_range(loops), logical_and(guard, realize.predicate)); }
  // The block runs there with these values.
  Expr runs(const std::vector<Expr>& values) const {
    Expr condition = runs();
    for (size_t i = 0; i < values.size(); ++i)
      condition = logical_and(condition, eq(realize.iter_values[i], values[i]));
    return condition;
  }
};

std::vector<Access> scope_accesses(const PrimFunc& function, const Block& block) {
  const Path path = path_to(function.body, block.id);
  const BlockRealize* scope = scope_of(path);
  return accesses(scope ? scope->block->body : function.body);
}

bool runs_twice(const Place& place, const std::vector<const For*>& shared) {
  const VarMap first = place.renamed(), second = place.renamed();
  Expr condition = comes_before(place.loops, first, second);
  for (const VarMap& at : {first, second}) condition = logical_and(condition, substitute(place.runs(), at));
  for (const Expr& value : place.realize.iter_values)
    condition = logical_and(condition, eq(substitute(value, first), substitute(value, second)));
  condition = logical_and(condition, same_iteration(shared, first, second));
  return arith::find_point(condition).outcome != arith::PointSearch::none;
}

}  // namespace

Conflict too_early(const Moved& moved) {
  const std::vector<Access> all = scope_accesses(moved.after, moved.block);
  const Ranges around = ranges_around(moved.after, moved.nest);
  Conflict undecided;
  std::vector<Buffer> asked;
  for (const Access& mine : all) {
    if (!instance_of(mine, moved.block) || std::find(asked.begin(), asked.end(), mine.buffer) != asked.end()) continue;
    asked.push_back(mine.buffer);
    AccessList others;
    size_t seen = 0;
    for (const Access& other : all) {
      if (instance_of(other, moved.block) || other.order < moved.from || ++seen > moved.count) continue;
      if (other.buffer == mine.buffer) others.push_back(&other);
    }
    const Conflict conflict = find_conflict(
        accesses_of(all, mine.buffer, moved.block), others, {}, around,
        [&](const Access& a, const VarMap& first, const Access& b, const VarMap& second) {
          return logical_and(same_iteration(moved.shared, first, second), comes_before(a, first, b, second));
        });
    if (conflict.outcome == arith::PointSearch::found) return conflict;
    if (conflict) undecided = conflict;
  }
  return undecided;
}

Conflict turned_round(const Moved& moved) {
  const Block& block = moved.block;
  const std::vector<Access> all = scope_accesses(moved.after, block);
  const Place before(moved.before, block);
  const Ranges around = ranges_around(moved.after, moved.nest);
  const bool sums = is_reduction(block);
  const auto counts = [&](const Access& a, const VarMap& first, const Access& b, const VarMap& second) {
    const VarMap earlier = before.renamed(), later = before.renamed();  // where b was, and a
    Expr condition = logical_and(comes_before(a, first, b, second), comes_before(before.loops, earlier, later));
    const auto was_at = [&](const VarMap& was, const Access& access, const VarMap& is) {
      const BlockInstance& instance = *instance_of(access, block);
      condition = logical_and(condition, substitute(before.runs(), was));
      for (size_t i = 0; i < instance.values.size(); ++i)
        condition = logical_and(condition,
                                eq(substitute(before.realize.iter_values[i], was), substitute(instance.values[i], is)));
      for (const For* loop : moved.shared)
        condition = logical_and(condition, eq(was.at(loop->loop_var), is.at(loop->loop_var)));
    };
    was_at(later, a, first);
    was_at(earlier, b, second);
    if (!sums) return condition;
    Expr one_sum = boolean(true);
    const BlockInstance &mine = *instance_of(a, block), &other = *instance_of(b, block);
    for (size_t i = 0; i < mine.values.size(); ++i)
      if (block.iter_vars[i]->type == IterType::spatial)
        one_sum = logical_and(one_sum, eq(substitute(mine.values[i], first), substitute(other.values[i], second)));
    return logical_and(condition, logical_not(one_sum));
  };
  Conflict undecided;
  if (support::flip(moved_turns_round)) return undecided;
  for (const Buffer& buffer : buffers_written(Stmt(&before.realize))) {
    const Block* allocates = allocating_block(moved.after, buffer);
    if (allocates && is_inside(allocates, block)) continue;
    const AccessList mine = accesses_of(all, buffer, block);
    const Conflict conflict = find_conflict(mine, mine, {}, around, counts);
    if (conflict.outcome == arith::PointSearch::found) return conflict;
    if (conflict) undecided = conflict;
  }
  return undecided;
}

bool runs_the_same(const Moved& moved) {
  if (support::flip(moved_loses_instances)) return true;
  const Place before(moved.before, moved.block), after(moved.after, moved.block);
  if (!before.known || !after.known || runs_twice(after, moved.shared)) return false;
  std::vector<Expr> values;
  for (const IterVar& iter : moved.block.iter_vars) values.push_back(var(iter->var->name, iter->var->dtype));
  const auto instances = [&](const Place& place) {
    arith::Projection instances{place.runs(values), {}};
    for (const For* loop : place.loops)
      if (std::none_of(moved.shared.begin(), moved.shared.end(),
                       [&](const For* shared) { return shared->loop_var == loop->loop_var; }))
        instances.hidden.push_back(loop->loop_var);
    for (const auto& [v, range] : ranges_around(moved.after, moved.nest))
      if (uses_var(instances.condition, v))
        instances.condition =
            logical_and(instances.condition, logical_and(v >= range.min, v < range.min + range.extent));
    return instances;
  };
  const arith::Projection ran = instances(before), run = instances(after);
  return arith::find_uncovered(ran, {run}).outcome == arith::PointSearch::none &&
         arith::find_uncovered(run, {ran}).outcome == arith::PointSearch::none;
}

}  // namespace lathe::schedule
