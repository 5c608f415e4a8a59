#include "arith/analyzer.h"
#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/moved.h"
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
  std::optional<Diagnostic> doubt = instances_meet(program, move);
  bool meets_itself = doubt.has_value();
  const auto doubted = [&](const support::Code& code, const std::string& why) {
    if (!doubt) doubt = problem(code, why);
  };
  const auto of_block = [&](const Access& access) { return instance_of(access, *block) != nullptr; };
  size_t own_order = 0, nest_order = all.size();
  for (const Access& access : all) {
    if (of_block(access)) own_order = access.order;
    if (of_nest(access)) nest_order = std::min(nest_order, access.order);
  }
  if (nest_order > own_order) return problem(codes::dependence, "the loop runs after the block");
  if (const auto why = program.proves ? undecided_above(target) : std::nullopt)
    doubted(codes::region, "the loop is " + *why);

  const std::vector<Buffer> written = buffers_written(path.back());
  const auto is_written = [&](const Buffer& buffer) {
    return std::find(written.begin(), written.end(), buffer) != written.end();
  };
  const bool reduces = updates_own_element(*block) && block->init && runs_init(realized, loops_above(path)) == true;
  std::vector<Buffer> produced;
  for (const Access& mine : all) {
    if (!of_block(mine)) continue;
    const Block* allocates = allocating_block(*program.function, mine.buffer);
    if (allocates && is_inside(allocates, *block)) continue;
    if (mine.opaque && program.proves) return problem(codes::dependence, "it takes the address of a buffer");
    if (!mine.writes && is_written(mine.buffer)) {
      if (reduces || !program.proves) continue;
      doubted(codes::dependence, fmt::format("it reads '{}', which it writes", mine.buffer->name));
      meets_itself = true;
      continue;
    }
    if (mine.writes) {
      for (const Access& other : all)
        if (program.proves && !of_block(other) && other.buffer == mine.buffer && other.order >= nest_order &&
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
      const auto ours = touched(all, [&](const Access& a) { return of_block(a) && a.buffer == mine.buffer; }, shared);
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
      if (beyond ? *beyond < 0 : known.can_prove(ran->high <= domain.high)) {
        domain.high = ran->high;
      } else if (!beyond && !known.can_prove(ran->high >= domain.high)) {
        return problem(codes::region, "where its predicate ends its own loops could not be told");
      }
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
    const auto needed = touched(all, [&](const Access& a) { return of_block(a) && a.buffer == buffer; }, shared);
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
    if (program.proves && !(everything->exact && (!elsewhere || holds(*everything, *needed))))
      doubted(codes::region, fmt::format("the loop does not write all that it reads of '{}'", buffer->name));
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
          doubted(codes::region, fmt::format("not every value of its axis '{}' reads what the loop writes",
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
      doubted(codes::region, fmt::format("every iteration of {} would run the same instances", name_of(*around)));
  }

  if (support::flip(reverse_compute_at_drops_predicate))
    for (size_t i = 0; i < parts.size(); ++i)
      if (narrowed[i]) domains[i] = parts[i];
  Id next = program.next;
  const Stmt nested = nest_over(block, parts, domains, target, keep_unit_loops, next);
  // All that the loop does came before it.
  std::vector<Stmt> statements = items(loop.body);
  const auto at_index = place_of(index, behind_all(statements, nested), statements.size());
  if (!at_index.ok()) return problem(codes::bad_argument, at_index.diagnostics()[0].message);
  const size_t at = *at_index;
  statements.insert(statements.begin() + static_cast<ptrdiff_t>(at), nested);
  const Stmt changed = with(loop, [&](For& copy) { copy.body = seq(statements); });
  const Stmt body = replace_all(program.function->body, {{target.back(), changed}, {path.back(), nop()}});
  const Function after = with_body(program.function, body);
  if (doubt) {
    Moved moved{.before = *program.function, .after = *after, .block = *block, .nest = nest.id, .from = nest_order};
    moved.shared = shared;
    for (const Access& access : all)
      moved.count += !of_block(access) && access.order >= nest_order && access.order < own_order;
    Conflict conflict = too_early(moved);
    if (!conflict && meets_itself) conflict = turned_round(moved);
    conflict.explain(*doubt);
    if (conflict || !runs_the_same(moved)) return *std::move(doubt);
  }
  if (auto refused = refuse_parallel_above(program, after, target, "compute a block")) return *std::move(refused);
  return edited(program, after, next);
}

}  // namespace lathe::schedule::primitives
