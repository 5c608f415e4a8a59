#include "arith/analyzer.h"
#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(reverse_compute_at_drops_predicate, "schedule_test", "reverse_compute_at: the tail is not cut off");

namespace {

// Whether predicates on an access in `body` cut off only what lies beyond the end of a block variable's domain, that
// variable being the index: the part that its loops run over is cut off at the same place then for whoever reads it.
bool ends_with_domain(const Access& access, const Stmt& body) {
  if (!access.predicate) return true;
  for (const BlockInstance* at = access.instance.get(); at; at = at->outer.get())
    if (!predicate_is_domain(path_to(body, at->block->id))) return false;
  const std::vector<Var> decided = free_vars(access.predicate);
  return std::all_of(access.region.begin(), access.region.end(), [&](const Range& range) {
    const bool moves =
        std::any_of(decided.begin(), decided.end(), [&](const Var& v) { return uses_var(range.min, v); });
    bool is_variable = false;
    for (const BlockInstance* at = access.instance.get(); at; at = at->outer.get())
      for (const Expr& value : at->values) is_variable = is_variable || same(value, range.min);
    return !moves || is_variable;
  });
}

// What ran between the beginning of `nest` and the block, before the block was moved: of the accesses in its scope.
struct Before {
  size_t from = 0;                 // the first of them, by its order
  size_t count = 0;                // how many
  std::vector<const For*> shared;  // the loops that the block has been in as well
};

Expr same_iteration(const std::vector<const For*>& loops, const VarMap& a, const VarMap& b) {
  Expr same = boolean(true);
  for (const For* loop : loops) same = logical_and(same, eq(a.at(loop->loop_var), b.at(loop->loop_var)));
  return same;
}

// Element by element, in `after`, where the block runs inside of the loops `moved_under`: whether something that came
// before an instance now comes after it, and touches what it touches; or whether two iterations run one instance.
Conflict too_early(const PrimFunc& after, const Block& block, Id nest, const Before& before) {
  const Path path = path_to(after.body, block.id);
  const BlockRealize* scope = scope_of(path);
  const std::vector<Access> all = accesses(scope ? scope->block->body : after.body);
  const Ranges around = ranges_around(after, nest);
  Conflict undecided;
  std::vector<Buffer> asked;
  for (const Access& mine : all) {
    if (mine.block != &block || std::find(asked.begin(), asked.end(), mine.buffer) != asked.end()) continue;
    asked.push_back(mine.buffer);
    AccessList others;
    size_t seen = 0;
    for (const Access& other : all) {
      if (other.block == &block || other.order < before.from || ++seen > before.count) continue;
      if (other.buffer == mine.buffer) others.push_back(&other);
    }
    const Conflict conflict = find_conflict(
        accesses_of(all, mine.buffer, block), others, {}, around,
        [&](const Access& a, const VarMap& first, const Access& b, const VarMap& second) {
          return logical_and(same_iteration(before.shared, first, second), comes_before(a, first, b, second));
        });
    if (conflict.outcome == arith::PointSearch::found) return conflict;
    if (conflict) undecided = conflict;
  }
  return undecided;
}

// Whether two different iterations of the loops around it (in one of `shared`) run the same instance of the block.
bool may_run_twice(const PrimFunc& after, const Block& block, const std::vector<const For*>& shared) {
  const Path path = path_to(after.body, block.id);
  const auto& realized = *path.back().as<BlockRealize>();
  const std::vector<const For*> loops = loops_above(path);
  VarMap first, second;
  for (const For* loop : loops) {
    first.emplace(loop->loop_var, var(loop->loop_var->name, loop->loop_var->dtype));
    second.emplace(loop->loop_var, var(loop->loop_var->name, loop->loop_var->dtype));
  }
  Expr condition = comes_before(loops, first, second);
  for (const VarMap& at : {first, second})
    condition = logical_and(condition, substitute(logical_and(in_range(loops), realized.predicate), at));
  for (const Expr& value : realized.iter_values)
    condition = logical_and(condition, eq(substitute(value, first), substitute(value, second)));
  condition = logical_and(condition, same_iteration(shared, first, second));
  return arith::find_point(condition).outcome != arith::PointSearch::none;
}

}  // namespace

Result<Edit> reverse_compute_at(const Program& program, Id block_id, Id loop_id, bool keep_unit_loops, int64_t index) {
  const Move move = TRY(move_under(program, block_id, loop_id));
  const Path &path = move.path, &target = move.target;
  const BlockRealize& realized = move.realize();
  const Ref<Block>& block = realized.block;
  const For& loop = move.loop();
  const auto problem = [&](const support::Code& code, const std::string& why) { return move.problem(code, why); };

  // The loops that the block does not share with the target, outermost first; the first holds all that must end before
  // the block ran so far.
  const std::vector<const For*> own_loops = loops_above(path);
  std::vector<const For*> shared, moved_under;
  for (const For* around : loops_above(target)) {
    const bool common = std::find(own_loops.begin(), own_loops.end(), around) != own_loops.end();
    (common ? shared : moved_under).push_back(around);
  }
  moved_under.push_back(&loop);
  const For& nest = *moved_under.front();

  // In terms of the variables of the block around, as what is inside of the loop is.
  const BlockRealize* scope = scope_of(path);
  const Stmt scope_body = scope ? scope->block->body : program.function->body;
  const std::vector<Access> all = accesses(scope_body), everywhere = accesses(program.function->body);
  const std::vector<Access> inside = accesses(loop.body);
  const auto of_nest = [&](const Access& access) {
    return std::find(access.loops.begin(), access.loops.end(), &nest) != access.loops.end();
  };
  const auto of_loop = [&](const Access& access) {
    return std::find(access.loops.begin(), access.loops.end(), &loop) != access.loops.end();
  };
  // What regions do not tell is asked of the elements, once it is known where the instances go.
  std::optional<Diagnostic> doubt;
  const auto doubted = [&](const support::Code& code, std::string why) {
    if (!doubt) doubt = problem(code, std::move(why));
  };
  size_t own_order = 0, nest_order = all.size();
  for (const Access& access : all) {
    if (access.block == block.get()) own_order = access.order;
    if (of_nest(access)) nest_order = std::min(nest_order, access.order);
  }
  if (nest_order > own_order) return problem(codes::dependence, "the loop runs after the block");

  const std::vector<Buffer> written = buffers_written(path.back());
  const auto is_written = [&](const Buffer& buffer) {
    return std::find(written.begin(), written.end(), buffer) != written.end();
  };
  const bool reduces = updates_own_element(*block) && block->init && runs_init(realized, loops_above(path)) == true;
  std::vector<Buffer> produced;
  for (const Access& mine : all) {
    if (mine.block != block.get()) continue;
    if (mine.opaque && program.proves) return problem(codes::dependence, "it takes the address of a buffer");
    if (!mine.writes && is_written(mine.buffer)) {
      if (!reduces && program.proves)
        return problem(codes::dependence, fmt::format("it reads '{}', which it writes", mine.buffer->name));
      continue;
    }
    if (mine.writes) {
      for (const Access& other : all)
        if (program.proves && other.block != block.get() && other.buffer == mine.buffer && other.order >= nest_order &&
            other.order < own_order) {
          const auto theirs = touched(all, [&](const Access& a) { return a.order == other.order; }, shared);
          const auto ours = touched(all, [&](const Access& a) { return a.order == mine.order; }, shared);
          if (!theirs || !ours || !apart(*theirs, *ours))
            doubted(codes::dependence, fmt::format("'{}', which it writes, is touched before by {}", mine.buffer->name,
                                                   other.block ? name_of(*other.block) : "a statement"));
        }
      continue;
    }
    if (std::find(produced.begin(), produced.end(), mine.buffer) != produced.end()) continue;
    bool here = false;
    for (const Access& write : all) {
      if (!write.writes || write.buffer != mine.buffer || write.order < nest_order) continue;
      if (of_loop(write)) {
        here = true;
        continue;
      }
      if (!program.proves) continue;
      const auto theirs = touched(all, [&](const Access& a) { return a.order == write.order; }, shared);
      const auto ours =
          touched(all, [&](const Access& a) { return a.block == block.get() && a.buffer == mine.buffer; }, shared);
      if (!theirs || !ours || !apart(*theirs, *ours))
        doubted(codes::dependence, fmt::format("'{}', which it reads, is also written outside the loop{}",
                                               mine.buffer->name, write.block ? " by " + name_of(*write.block) : ""));
    }
    if (here) produced.push_back(mine.buffer);
  }
  if (produced.empty()) return problem(codes::region, "nothing that it reads is written in the loop");

  // The values must be final where the block now runs: no other iteration of the loops around it touches them.
  for (const Buffer& buffer : produced)
    for (const For* around : moved_under)
      if (program.proves && !disjoint_across(*around, buffer, program.proofs))
        doubted(codes::dependence,
                fmt::format("could not show that '{}' is final after one iteration: other iterations of {} touch "
                            "it too",
                            buffer->name, name_of(*around)));

  // The part of its domain that one iteration's values allow, of the part it ran over so far.
  std::vector<Interval> domains, parts;
  std::vector<const For*> own;
  arith::Analyzer known;
  for (const For* around : shared) known.bind(around->loop_var, Range{around->min, around->extent});
  for (const For* around : own_loops)
    if (std::find(shared.begin(), shared.end(), around) == shared.end()) own.push_back(around);
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    const IterVar& iter = block->iter_vars[i];
    Interval domain{iter->dom.min, Linear(linear(iter->dom.min + iter->dom.extent - 1)).expr()};
    bool exact = true;
    const auto ran = interval(realized.iter_values[i], domains_of(own), &exact);
    if (!ran || (!exact && program.proves)) return problem(codes::region, "its own loops do not run over an interval");
    if (is_int(realized.predicate, 1)) {
      domain = *ran;
    } else {
      // The predicate cuts at the ends of the domain only.
      const auto before = difference(ran->low, domain.low), beyond = difference(ran->high, domain.high);
      if (!beyond) return problem(codes::region, "where its predicate ends its own loops could not be told");
      if (*beyond < 0) domain.high = ran->high;
      if (before ? *before > 0 : known.can_prove(ran->low >= domain.low)) {
        domain.low = ran->low;
      } else if (!before && !known.can_prove(ran->low <= domain.low)) {
        return problem(codes::region, "where its predicate begins its own loops could not be told");
      }
    }
    domains.push_back(domain);
  }
  parts = domains;
  std::vector<bool> narrowed(parts.size());
  const std::vector<Access> own_accesses = accesses(block->body);
  for (const Buffer& buffer : produced) {
    const auto writes_it = [&](const Access& access) { return access.buffer == buffer && access.writes; };
    const auto region = touched(inside, writes_it);
    const auto everything = touched(all, [&](const Access& a) { return writes_it(a) && of_loop(a); }, shared);
    const auto needed =
        touched(all, [&](const Access& a) { return a.block == block.get() && a.buffer == buffer; }, shared);
    if (!region || !everything || !needed)
      return problem(codes::region,
                     fmt::format("which part of '{}' an iteration writes could not be told", buffer->name));
    // What is written for certain is all that is written.
    const auto surely = touched(inside, [&](const Access& access) { return writes_it(access) && access.certain; });
    if (program.proves && !(surely && surely->exact && holds(*surely, *region)))
      doubted(codes::region, fmt::format("an iteration does not write one region of '{}'", buffer->name));
    for (const Access& write : inside)
      if (program.proves && writes_it(write) && !ends_with_domain(write, loop.body))
        doubted(codes::region,
                fmt::format("the predicate of {} leaves out parts of '{}'", name_of(*write.block), buffer->name));
    const bool elsewhere =
        std::any_of(everywhere.begin(), everywhere.end(), [&](const Access& a) { return writes_it(a) && !of_loop(a); });
    if (program.proves && elsewhere && !(everything->exact && holds(*everything, *needed)))
      return problem(codes::region, fmt::format("the loop does not write all that it reads of '{}'", buffer->name));
    for (const Access& read : own_accesses) {
      if (read.buffer != buffer || read.writes) continue;
      for (size_t d = 0; d < read.region.size(); ++d) {
        const Linear index = linear(read.region[d].min);
        if (index.is_constant()) continue;
        size_t which = parts.size();
        for (size_t i = 0; i < parts.size(); ++i)
          if (index.terms.size() == 1 && index.terms[0].coefficient == 1 &&
              index.terms[0].atom == Expr(block->iter_vars[i]->var))
            which = i;
        const Interval& part = region->dimensions[d];
        const bool all_of_it =
            same(part.low, everything->dimensions[d].low) && same(part.high, everything->dimensions[d].high);
        // Where every iteration writes all of the dimension, it tells nothing about the instances.
        if (all_of_it) continue;
        if (which == parts.size())
          return problem(codes::region, fmt::format("its index into dimension {} of '{}' is not one of its variables",
                                                    d, buffer->name));
        const Interval wanted{Linear(linear(part.low - index.constant)).expr(),
                              Linear(linear(part.high - index.constant)).expr()};
        if (block->iter_vars[which]->type != IterType::spatial)
          return problem(codes::region,
                         fmt::format("an iteration writes only a part of '{}' along its reduce axis '{}'", buffer->name,
                                     block->iter_vars[which]->var->name));
        // Instances that read nothing (padding) belong to no iteration.
        const Region reached{{{Linear(linear(everything->dimensions[d].low - index.constant)).expr(),
                               Linear(linear(everything->dimensions[d].high - index.constant)).expr()}}};
        if (program.proves && !holds(reached, {{domains[which]}}))
          return problem(codes::region, fmt::format("not every value of its axis '{}' reads what the loop writes",
                                                    block->iter_vars[which]->var->name));
        if (narrowed[which] && !(same(parts[which].low, wanted.low) && same(parts[which].high, wanted.high)))
          return problem(codes::region,
                         fmt::format("what it reads of '{}' does not fit its other inputs", buffer->name));
        parts[which] = wanted;
        narrowed[which] = true;
      }
    }
  }
  // Where the values do not say which iteration an instance belongs to, every iteration would run it.
  for (const For* around : moved_under) {
    if (is_int(around->extent, 1) || !program.proves || doubt) continue;
    bool told = false;
    for (size_t i = 0; i < parts.size(); ++i) told = told || (narrowed[i] && uses_var(parts[i].low, around->loop_var));
    if (!told)
      return problem(codes::region,
                     fmt::format("every iteration of {} would run the same instances", name_of(*around)));
  }

  if (support::flip(reverse_compute_at_drops_predicate))
    for (size_t i = 0; i < parts.size(); ++i)
      if (narrowed[i]) domains[i] = parts[i];
  Id next = program.next;
  const Stmt moved = nest_over(block, parts, domains, target, keep_unit_loops, next);
  // All that the loop does came before it.
  std::vector<Stmt> statements = items(loop.body);
  const auto at_index = place_of(index, behind_all(statements, moved), statements.size());
  if (!at_index.ok()) return problem(codes::bad_argument, at_index.diagnostics()[0].message);
  const size_t at = *at_index;
  statements.insert(statements.begin() + static_cast<ptrdiff_t>(at), moved);
  const Stmt changed = with(loop, [&](For& copy) { copy.body = seq(statements); });
  const Stmt body = replace_all(program.function->body, {{target.back(), changed}, {path.back(), nop()}});
  const Function after = with_body(program.function, body);
  if (doubt) {
    Before before{nest_order, 0, shared};
    for (const Access& access : all)
      before.count += access.block != block.get() && access.order >= nest_order && access.order < own_order;
    const Conflict conflict = too_early(*after, *block, nest.id, before);
    conflict.explain(*doubt);
    if (conflict || may_run_twice(*after, *block, shared)) return *std::move(doubt);
  }
  if (auto refused = refuse_parallel_above(program, after, target, "compute a block")) return *std::move(refused);
  return edited(program, after, next);
}

}  // namespace lathe::schedule::primitives
