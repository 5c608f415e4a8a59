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

// A block on its way into a loop that comes behind it, and that reads what it writes.
class ProducerMove {
 public:
  ProducerMove(const Program& program, const Move& move) : program_(program), move_(move) {
    for (const Access& access : all_)
      if (instance_of(access, *block_)) own_order_ = access.order;
  }

  // What it writes, and who reads that.
  Status check_results() {
    for (const Access& access : all_) TRY(instance_of(access, *block_) ? check_own(access) : check_other(access));
    for (const Buffer& buffer : written_)
      if (!allocating_block(*program_.function, buffer))
        return problem(codes::region, fmt::format("'{}' is an output of the function", buffer->name));
    return support::success();
  }

  // What it reads must not change between its old place and its new one.
  Status check_operands() {
    for (const Buffer& buffer : buffers_read(move_.path.back())) {
      if (is_written(buffer) || !program_.proves) continue;
      for (const Access& write : all_) {
        if (!write.writes || write.buffer != buffer || is_over(write)) continue;
        if (write.order <= own_order_ || !others_go_on(move_.path, move_.target, all_, buffer))
          return problem(codes::dependence, fmt::format("'{}', which it reads, is written again{}", buffer->name,
                                                        write.block ? " by " + name_of(*write.block) : ""));
        continued_.push_back(buffer);
      }
    }
    return support::success();
  }

  // The part of its domain that it ran over so far, where that counts.
  Status find_domains() {
    for (size_t i = 0; i < block_->iter_vars.size(); ++i) {
      const IterVar& iter = block_->iter_vars[i];
      domains_.push_back({iter->dom.min, Linear(linear(iter->dom.min + iter->dom.extent - 1)).expr()});
      // A reduction runs over the part of its axes that its loops ran over; so does what others write the rest of.
      if (shares_ && !is_int(realized_.predicate, 1))
        return problem(codes::region, "it has a predicate, and others write a part of what it writes");
      if ((iter->type == IterType::spatial && !shares_) || !is_int(realized_.predicate, 1)) continue;
      domains_.back() = TRY(values_so_far(i));
    }
    return support::success();
  }

  // The part of its domain that one iteration of the loop needs.
  Status narrow() {
    parts_ = domains_;
    std::vector<bool> narrowed(parts_.size());
    Narrowing narrowing(*block_, program_, move_.target);
    bool exact = true;  // the part is what an iteration touches and nothing else
    for (const Access& write : accesses(block_->body)) {
      if (!write.writes) continue;
      const Region region = TRY(needed_of(write.buffer));
      exact = exact && region.exact;
      narrowing.narrow(write, region.dimensions, domains_, parts_, narrowed);
    }
    if (program_.proves && !exact) TRY(check_box());
    // A variable by which the result is not indexed takes the values that it had: that of a block around, for one.
    for (size_t i = 0; i < parts_.size(); ++i)
      if (!narrowed[i] && block_->iter_vars[i]->type == IterType::spatial) parts_[i] = TRY(values_so_far(i));
    for (size_t i = 0; i < parts_.size(); ++i)
      if (support::flip(compute_at_shrinks_region) && narrowed[i]) parts_[i].low = parts_[i].low + 1;
    return support::success();
  }

  Result<Edit> run(bool keep_unit_loops, int64_t index) const {
    const Path &path = move_.path, &target = move_.target;
    Id next = program_.next;
    const Stmt nest = nest_over(block_, parts_, domains_, target, keep_unit_loops, next);
    const Function after = moved_to(program_, move_, nest, TRY(place_in(items(loop_.body), nest, index)));
    if (auto refused = refuse_parallel_above(program_, after, target, "compute a block")) return *std::move(refused);
    const Path moved = path_to(after->body, loop_.id);
    for (const Buffer& buffer : continued_)
      if (!stays_in_iterations(path, moved, buffer, program_.proofs))
        return problem(codes::dependence,
                       fmt::format("other blocks go on writing '{}', and different iterations may meet in an element",
                                   buffer->name));
    return edited(program_, after, next);
  }

 private:
  Diagnostic problem(const support::Code& code, const std::string& why) const { return move_.problem(code, why); }

  bool is_written(const Buffer& buffer) const {
    return std::find(written_.begin(), written_.end(), buffer) != written_.end();
  }

  // What goes on from what others left may do so once for each element, wherever that is.
  Status check_own(const Access& access) {
    if (!access.writes && is_written(access.buffer) && !reduces_ && !reads_own_sum(access, move_.path)) {
      if (!updates_own_element(*block_) || block_->init)
        return problem(codes::dependence, fmt::format("it reads '{}', which it writes", access.buffer->name));
      continued_.push_back(access.buffer);
    }
    if (access.opaque) return problem(codes::dependence, "it takes the address of a buffer");
    return support::success();
  }

  // Others may read inside the loop what it writes, and write other parts of it, or go on from what it leaves.
  Status check_other(const Access& access) {
    const Buffer& buffer = access.buffer;
    if (!is_written(buffer)) return support::success();
    const std::string who = access.block ? name_of(*access.block) : "a statement outside blocks";
    if (!access.writes) {
      const bool found = std::any_of(inside_.begin(), inside_.end(), [&](const Access& other) {
        return other.block == access.block && other.buffer == buffer;
      });
      if (found) return support::success();
      return problem(codes::region, fmt::format("{}, which reads '{}', is not inside the loop", who, buffer->name));
    }
    if (!program_.proves) return support::success();
    // Only what the block does not write itself.
    const Conflict conflict = find_conflict(accesses_of(all_, buffer, *block_), {&access}, {}, {}, any_pair);
    shares_ = shares_ || !conflict;
    if (!conflict) return support::success();
    if (others_go_on(move_.path, move_.target, all_, buffer)) {
      continued_.push_back(buffer);
      return support::success();
    }
    Diagnostic refused = problem(codes::dependence, fmt::format("'{}' is also written by {}", buffer->name, who));
    conflict.explain(refused);
    return refused;
  }

  // Whether an operand is written before the block, and stays as it is then for the iterations around both.
  bool is_over(const Access& write) const {
    if (write.order >= own_order_) return false;
    return std::all_of(own_loops_.begin(), own_loops_.end(), [&](const For* around) {
      return std::find(write.loops.begin(), write.loops.end(), around) == write.loops.end() ||
             disjoint_across(*around, write.buffer, program_.proofs) || is_steady_in(*around, write.buffer);
    });
  }

  bool is_steady_in(const For& around, const Buffer& buffer) const {
    Steadiness steadiness(program_, around, all_);
    return std::all_of(all_.begin(), all_.end(), [&](const Access& read) {
      return read.writes || read.buffer != buffer || !instance_of(read, *block_) || !steadiness.of_read(read);
    });
  }

  // The values that its own loops give a variable.
  Result<Interval> values_so_far(size_t i) const {
    bool exact = true;
    const auto part = interval(realized_.iter_values[i], domains_of(own_loops_), &exact);
    if (!part || (!exact && program_.proves))
      return problem(codes::region, "its own loops do not run over an interval");
    return *part;
  }

  // What an iteration of the loop touches of the buffer.
  Result<Region> needed_of(const Buffer& buffer) const {
    auto region = touched(inside_, [&](const Access& access) { return access.buffer == buffer; });
    if (region && buffer->scope.rfind("shared", 0) == 0) region = of_all_threads(*std::move(region), move_.target);
    if (!region)
      return problem(codes::region,
                     fmt::format("which part of '{}' an iteration needs could not be told", buffer->name));
    return *std::move(region);
  }

  // Where the block leaves out a part of its domain, the box around what an iteration touches may have instances that
  // did not run before, whose operands nobody has written.
  Status check_box() const {
    const std::vector<Buffer> operands = buffers_read(move_.path.back());
    const auto is_scratch = [&](const Buffer& buffer) {
      return !is_written(buffer) && allocating_block(*program_.function, buffer);
    };
    if (!runs_whole_domain(realized_, own_loops_) && std::any_of(operands.begin(), operands.end(), is_scratch))
      return problem(codes::region, "an iteration would run instances that did not run before");
    return support::success();
  }

  // Before the first statement of the loop's body that reads the result, or goes on from what it has read, and behind
  // those that write what it reads.
  Result<size_t> place_in(const std::vector<Stmt>& statements, const Stmt& nest, int64_t index) const {
    const auto last = std::find_if(statements.begin(), statements.end(), [&](const Stmt& s) {
      const std::vector<Access> touches = accesses(s);
      return std::any_of(touches.begin(), touches.end(), [&](const Access& access) {
        return is_written(access.buffer) ||
               (access.writes && std::find(continued_.begin(), continued_.end(), access.buffer) != continued_.end());
      });
    });
    if (last == statements.end()) return problem(codes::region, "nothing in the loop reads what it writes");
    const size_t first = behind_all({statements.begin(), last}, nest);
    const auto place = place_of(index, first, static_cast<size_t>(last - statements.begin()));
    if (!place.ok()) return problem(codes::bad_argument, place.diagnostics()[0].message);
    return *place;
  }

  const Program& program_;
  const Move& move_;
  const BlockRealize& realized_ = move_.realize();
  const Ref<Block>& block_ = realized_.block;
  const For& loop_ = move_.loop();
  const std::vector<const For*> own_loops_ = loops_above(move_.path);
  const std::vector<Access> all_ = accesses(program_.function->body), inside_ = accesses(loop_.body);
  const std::vector<Buffer> written_ = buffers_written(move_.path.back());
  const bool reduces_ = updates_own_element(*block_) && block_->init && runs_init(realized_, own_loops_) == true;
  size_t own_order_ = 0;
  bool shares_ = false;            // others write other parts of what it writes
  std::vector<Buffer> continued_;  // others go on from what it leaves in these, or write what it has read
  std::vector<Interval> domains_, parts_;
};

}  // namespace

Result<Edit> compute_at(const Program& program, Id block_id, Id loop_id, bool keep_unit_loops, int64_t index) {
  const Move under = TRY(move_under(program, block_id, loop_id));
  if (auto refused = instances_meet(program, under)) return *std::move(refused);
  ProducerMove move(program, under);
  TRY(move.check_results());
  TRY(move.check_operands());
  TRY(move.find_domains());
  TRY(move.narrow());
  return move.run(keep_unit_loops, index);
}

}  // namespace lathe::schedule::primitives
