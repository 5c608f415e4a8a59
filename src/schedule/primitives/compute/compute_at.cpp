#include "ir/visit.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "schedule/primitives/compute/steady.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(compute_at_shrinks_region, "schedule_test", "compute_at: one element too few is computed");

namespace {

// Memory that the threads of a block share holds what any of them needs: the region over all of them.
std::optional<Region> of_all_threads(Region region, const Path& target) {
  std::vector<const For*> threads;
  for (const Stmt& s : target)
    if (const auto* loop = s.as<For>();
        loop && loop->kind == ForKind::thread_binding && loop->thread_binding->thread_tag.rfind("threadIdx", 0) == 0)
      threads.push_back(loop);
  const Domains domains = domains_of(threads);
  for (Interval& dimension : region.dimensions) {
    const auto low = interval(dimension.low, domains), high = interval(dimension.high, domains);
    if (!low || !high) return std::nullopt;
    dimension = {low->low, high->high};
  }
  return region;
}

// Whether a read inside the block at the path's end is of what a reduction inside it, complete in one of its instances,
// set itself.
bool reads_own_sum(const Access& read, const Path& path) {
  const auto* around = path.back().as<BlockRealize>();
  if (!read.block || read.block == around->block.get() || !read.block->init || !updates_own_element(*read.block))
    return false;
  const Path inner = path_to(path.back(), read.block->id);
  const auto* sum = inner.empty() ? nullptr : inner.back().as<BlockRealize>();
  return sum && !in_init(inner) && runs_init(*sum, loops_above(inner)) == true;
}

// Which values of a block's variables an iteration of the loop at the end of `target` needs.
class Narrowing {
 public:
  Narrowing(const Block& block, const Program& program, const Path& target) : block_(block) {
    around_ = ranges_around(*program.function, target.back().as<For>()->id);
    const For& loop = *target.back().as<For>();
    around_[loop.loop_var] = Range{loop.min, loop.extent};
    for (const auto& [variable, range] : around_) known_.bind(variable, range);
  }

  // `parts` (what the variables run over, one a variable) becomes what is needed for the elements of `needed` that
  // `write` writes. Reductions run over what they did, and what two writes need different values of over its domain.
  void narrow(const Access& write, const std::vector<Interval>& needed, const std::vector<Interval>& domains,
              std::vector<Interval>& parts, std::vector<bool>& narrowed) {
    VarMap single;  // digits that an iteration needs one value of
    for (const bool lower : {false, true}) {
      for (size_t i = 0; i < parts.size(); ++i) {
        if (block_.iter_vars[i]->type != IterType::spatial || (lower && (narrowed[i] || single.empty()))) continue;
        for (size_t d = 0; d < write.region.size(); ++d) {
          const auto values = values_for(write.region[d], *block_.iter_vars[i], write.loops, needed[d], single);
          if (!values) continue;
          const bool differs = narrowed[i] && !(same(parts[i].low, values->low) && same(parts[i].high, values->high));
          parts[i] = differs ? domains[i] : *values;
          narrowed[i] = true;
          break;
        }
      }
      for (size_t i = 0; i < parts.size(); ++i) {
        if (!narrowed[i]) continue;
        const Expr low = known_.simplify(parts[i].low);
        if (same(low, known_.simplify(parts[i].high))) single[block_.iter_vars[i]->var] = low;
      }
    }
  }

 private:
  // The values of the variable for which an index is in `needed`, where that is the variable times a positive constant,
  // plus what inner loops add, or other variables as lower digits, or, as higher ones, of one value; nothing where it
  // is something else.
  std::optional<Interval> values_for(const Range& index, const IterVarNode& iter, const std::vector<const For*>& inner,
                                     const Interval& needed, const VarMap& single) const {
    VarMap others = single;
    others.erase(iter.var);
    Linear low = linear(substitute(index.min, others));
    const Linear moving = low.extract([&](const Expr& atom) { return atom == Expr(iter.var); });
    if (moving.terms.size() != 1 || moving.terms[0].coefficient < 1 || uses_var(low.expr(), iter.var))
      return std::nullopt;
    const int64_t step = moving.terms[0].coefficient;
    const Linear outside = low.extract([&](const Expr& atom) {
      const std::vector<Var> free = free_vars(atom);
      return std::all_of(free.begin(), free.end(), [&](const Var& v) { return around_.count(v) != 0; });
    });
    Domains domains = domains_of(inner);
    auto reach = constant_interval(low, domains);
    if (!reach) {
      for (const IterVar& other : block_.iter_vars)
        if (other.get() != &iter) domains[other->var] = {other->dom.min, other->dom.min + other->dom.extent - 1};
      reach = constant_interval(low, domains);
      if (!reach || reach->second - reach->first >= step) return std::nullopt;
    }
    const auto extent = as_int(index.extent);
    if (!extent) return std::nullopt;
    // step * v + [first, last] meets [needed.low, needed.high]
    const int64_t first = reach->first, last = reach->second + *extent - 1;
    const auto divided = [&](const Expr& e) {
      const Expr inside = outside.is_constant() ? e : known_.simplify(e - outside.expr());
      return step == 1 ? Linear(linear(inside)).expr() : floordiv(inside, int64(step));
    };
    return Interval{divided(needed.low - last + (step - 1)), divided(needed.high - first)};
  }

  const Block& block_;
  Ranges around_;
  mutable arith::Analyzer known_;
};

// Whether others write the buffer only before the block or where it has run already, both before and after it moves:
// inside the outermost loop that it moves into, or behind that.
bool others_go_on(const Path& path, const Path& target, const std::vector<Access>& all, const Buffer& buffer) {
  const Block& block = *path.back().as<BlockRealize>()->block;
  const std::vector<const For*> own = loops_above(path);
  const For* top = nullptr;
  for (const For* loop : loops_above(target))
    if (!top && std::find(own.begin(), own.end(), loop) == own.end()) top = loop;
  if (!top) top = target.back().as<For>();
  const auto is_inside = [&](const Access& access) {
    return std::find(access.loops.begin(), access.loops.end(), top) != access.loops.end();
  };
  size_t own_first = std::numeric_limits<size_t>::max(), last = 0;
  for (const Access& access : all) {
    if (instance_of(access, block)) own_first = std::min(own_first, access.order);
    if (is_inside(access)) last = std::max(last, access.order);
  }
  return std::all_of(all.begin(), all.end(), [&](const Access& access) {
    return access.buffer != buffer || !access.writes || instance_of(access, block) || access.order < own_first ||
           is_inside(access) || access.order > last;
  });
}

// Whether no iteration of the loops of `target` that are not around the block at `path` touches an element of the
// buffer that another one writes. Then it means the same where the block does its part right before the one iteration
// that goes on from it.
bool stays_in_iterations(const Path& path, const Path& target, const Buffer& buffer, Proofs* proofs) {
  const std::vector<const For*> own = loops_above(path);
  return std::all_of(target.begin(), target.end(), [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    const auto is_loop = [&](const For* other) { return loop->id == other->id; };
    return !loop || std::any_of(own.begin(), own.end(), is_loop) || disjoint_across(*loop, buffer, proofs);
  });
}

}  // namespace

Result<Edit> compute_at(const Program& program, Id block_id, Id loop_id, bool keep_unit_loops, int64_t index) {
  const Move move = TRY(move_under(program, block_id, loop_id));
  if (auto refused = instances_meet(program, move)) return *std::move(refused);
  const Path &path = move.path, &target = move.target;
  const BlockRealize& realized = move.realize();
  const Ref<Block>& block = realized.block;
  const For& loop = move.loop();
  const auto problem = [&](const support::Code& code, const std::string& why) { return move.problem(code, why); };

  // What it writes, and who reads that.
  const std::vector<Access> all = accesses(program.function->body);
  const std::vector<Access> inside = accesses(loop.body);
  const std::vector<Buffer> written = buffers_written(path.back());
  const auto is_written = [&](const Buffer& buffer) {
    return std::find(written.begin(), written.end(), buffer) != written.end();
  };
  size_t own_order = 0;
  bool shares = false;            // others write other parts of what it writes
  std::vector<Buffer> continued;  // others go on from what it leaves in these, or write what it has read
  for (const Access& access : all)
    if (instance_of(access, *block)) own_order = access.order;
  const bool reduces = updates_own_element(*block) && block->init && runs_init(realized, loops_above(path)) == true;
  for (const Access& access : all) {
    if (instance_of(access, *block)) {
      // What goes on from what others left may do so once for each element, wherever that is.
      if (!access.writes && is_written(access.buffer) && !reduces && !reads_own_sum(access, path)) {
        if (!updates_own_element(*block) || block->init)
          return problem(codes::dependence, fmt::format("it reads '{}', which it writes", access.buffer->name));
        continued.push_back(access.buffer);
      }
      if (access.opaque) return problem(codes::dependence, "it takes the address of a buffer");
      continue;
    }
    const std::string who = access.block ? name_of(*access.block) : "a statement outside blocks";
    if (is_written(access.buffer)) {
      if (access.writes) {
        if (!program.proves) continue;
        // Only what the block does not write itself.
        const Conflict conflict = find_conflict(accesses_of(all, access.buffer, *block), {&access}, {}, {}, any_pair);
        shares = shares || !conflict;
        if (!conflict) continue;
        if (others_go_on(path, target, all, access.buffer)) {
          continued.push_back(access.buffer);
          continue;
        }
        Diagnostic refused =
            problem(codes::dependence, fmt::format("'{}' is also written by {}", access.buffer->name, who));
        conflict.explain(refused);
        return refused;
      }
      const bool found = std::any_of(inside.begin(), inside.end(), [&](const Access& other) {
        return other.block == access.block && other.buffer == access.buffer;
      });
      if (!found)
        return problem(codes::region,
                       fmt::format("{}, which reads '{}', is not inside the loop", who, access.buffer->name));
    }
  }
  for (const Buffer& buffer : written)
    if (!allocating_block(*program.function, buffer))
      return problem(codes::region, fmt::format("'{}' is an output of the function", buffer->name));
  // What it reads must not change between its old place and its new one.
  const std::vector<const For*> own_loops = loops_above(path);
  const auto steady_in = [&](const For& around, const Buffer& buffer) {
    Steadiness steadiness(program, around, all);
    return std::all_of(all.begin(), all.end(), [&](const Access& read) {
      return read.writes || read.buffer != buffer || !instance_of(read, *block) || !steadiness.of_read(read);
    });
  };
  for (const Buffer& buffer : buffers_read(path.back())) {
    if (is_written(buffer) || !program.proves) continue;
    for (const Access& write : all) {
      if (!write.writes || write.buffer != buffer) continue;
      bool safe = write.order < own_order;
      for (const For* around : own_loops)
        if (safe && std::find(write.loops.begin(), write.loops.end(), around) != write.loops.end())
          safe = disjoint_across(*around, buffer, program.proofs) || steady_in(*around, buffer);
      if (!safe && write.order > own_order && others_go_on(path, target, all, buffer)) {
        continued.push_back(buffer);
        continue;
      }
      if (!safe)
        return problem(codes::dependence, fmt::format("'{}', which it reads, is written again{}", buffer->name,
                                                      write.block ? " by " + name_of(*write.block) : ""));
    }
  }

  // The part of its domain that one iteration of the loop needs.
  std::vector<Interval> domains, parts;
  const Domains ran = domains_of(own_loops);
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    const IterVar& iter = block->iter_vars[i];
    domains.push_back({iter->dom.min, Linear(linear(iter->dom.min + iter->dom.extent - 1)).expr()});
    // A reduction runs over the part of its axes that its loops ran over; so does what others write the rest of.
    if (shares && !is_int(realized.predicate, 1))
      return problem(codes::region, "it has a predicate, and others write a part of what it writes");
    if ((iter->type == IterType::spatial && !shares) || !is_int(realized.predicate, 1)) continue;
    bool exact = true;
    const auto part = interval(realized.iter_values[i], ran, &exact);
    if (!part || (!exact && program.proves)) return problem(codes::region, "its own loops do not run over an interval");
    domains.back() = *part;
  }
  parts = domains;
  std::vector<bool> narrowed(parts.size());
  Narrowing narrowing(*block, program, target);
  bool exact = true;  // the part is what an iteration touches and nothing else
  for (const Access& write : accesses(block->body)) {
    if (!write.writes) continue;
    auto region = touched(inside, [&](const Access& access) { return access.buffer == write.buffer; });
    if (region && write.buffer->scope.rfind("shared", 0) == 0) region = of_all_threads(*std::move(region), target);
    if (!region)
      return problem(codes::region,
                     fmt::format("which part of '{}' an iteration needs could not be told", write.buffer->name));
    exact = exact && region->exact;
    narrowing.narrow(write, region->dimensions, domains, parts, narrowed);
  }
  // Where the block leaves out a part of its domain, the box around what an iteration touches may have instances that
  // did not run before, whose operands nobody has written.
  const auto is_scratch = [&](const Buffer& buffer) {
    return !is_written(buffer) && allocating_block(*program.function, buffer);
  };
  const std::vector<Buffer> operands = buffers_read(path.back());
  if (program.proves && !exact && !runs_whole_domain(realized, own_loops) &&
      std::any_of(operands.begin(), operands.end(), is_scratch))
    return problem(codes::region, "an iteration would run instances that did not run before");
  // A variable by which the result is not indexed takes the values that it had: that of a block around, for one.
  for (size_t i = 0; i < parts.size(); ++i) {
    if (narrowed[i] || block->iter_vars[i]->type != IterType::spatial) continue;
    bool exact = true;
    const auto part = interval(realized.iter_values[i], ran, &exact);
    if (!part || (!exact && program.proves)) return problem(codes::region, "its own loops do not run over an interval");
    parts[i] = *part;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (support::flip(compute_at_shrinks_region) && narrowed[i]) parts[i].low = parts[i].low + 1;
  }

  Id next = program.next;
  const Stmt nest = nest_over(block, parts, domains, target, keep_unit_loops, next);
  // Before the first statement of the loop's body that reads the result, or goes on from what it has read, and behind
  // those that write what it reads.
  std::vector<Stmt> statements = items(loop.body);
  size_t last = 0;
  const auto reads_result = [&](const Stmt& s) {
    for (const Access& access : accesses(s))
      if (is_written(access.buffer) ||
          (access.writes && std::find(continued.begin(), continued.end(), access.buffer) != continued.end()))
        return true;
    return false;
  };
  while (last < statements.size() && !reads_result(statements[last])) ++last;
  if (last == statements.size()) return problem(codes::region, "nothing in the loop reads what it writes");
  const size_t first = behind_all({statements.begin(), statements.begin() + static_cast<ptrdiff_t>(last)}, nest);
  const auto at_index = place_of(index, first, last);
  if (!at_index.ok()) return problem(codes::bad_argument, at_index.diagnostics()[0].message);
  const size_t at = *at_index;
  statements.insert(statements.begin() + static_cast<ptrdiff_t>(at), nest);
  const Stmt changed = with(loop, [&](For& copy) { copy.body = seq(statements); });
  const Stmt body = replace_all(program.function->body, {{target.back(), changed}, {path.back(), nop()}});
  const Function after = with_body(program.function, body);
  if (auto refused = refuse_parallel_above(program, after, target, "compute a block")) return *std::move(refused);
  const Path moved = path_to(after->body, loop_id);
  for (const Buffer& buffer : continued)
    if (!stays_in_iterations(path, moved, buffer, program.proofs))
      return problem(codes::dependence,
                     fmt::format("other blocks go on writing '{}', and different iterations may meet in an element",
                                 buffer->name));
  return edited(program, after, next);
}

}  // namespace lathe::schedule::primitives
