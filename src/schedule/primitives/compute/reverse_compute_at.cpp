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

// A block on its way into a loop that comes before it, and that writes what it reads.
class ReverseMove {
 public:
  ReverseMove(const Program& program, const Move& move) : program_(program), move_(move) {
    for (const For* around : loops_above(move.target))
      (std::find(own_loops_.begin(), own_loops_.end(), around) != own_loops_.end() ? shared_ : moved_under_)
          .push_back(around);
    moved_under_.push_back(&loop_);
    const BlockRealize* scope = scope_of(move.path);
    all_ = accesses(scope ? scope->block->body : program.function->body);
    doubt_ = instances_meet(program, move);
    meets_itself_ = doubt_.has_value();
  }

  // Where the block and the nest come among the accesses, the nest first.
  Status find_order() {
    nest_order_ = all_.size();
    for (const Access& access : all_) {
      if (of_block(access)) own_order_ = access.order;
      if (is_in(access, *moved_under_.front())) nest_order_ = std::min(nest_order_, access.order);
    }
    if (nest_order_ > own_order_) return problem(codes::dependence, "the loop runs after the block");
    if (const auto why = program_.proves ? undecided_above(move_.target) : std::nullopt)
      doubted(codes::region, "the loop is " + *why);
    return support::success();
  }

  // What the loop writes and the block reads.
  Status find_produced() {
    const std::vector<Buffer> written = buffers_written(move_.path.back());
    const bool reduces =
        updates_own_element(*block_) && block_->init && runs_init(realized_, loops_above(move_.path)) == true;
    for (const Access& mine : all_) {
      if (!of_block(mine)) continue;
      const Block* allocates = allocating_block(*program_.function, mine.buffer);
      if (allocates && is_inside(allocates, *block_)) continue;
      if (mine.opaque && program_.proves) return problem(codes::dependence, "it takes the address of a buffer");
      if (mine.writes) {
        if (program_.proves) doubt_touched_before(mine);
      } else if (std::find(written.begin(), written.end(), mine.buffer) != written.end()) {
        if (reduces || !program_.proves) continue;
        doubted(codes::dependence, fmt::format("it reads '{}', which it writes", mine.buffer->name));
        meets_itself_ = true;
      } else if (std::find(produced_.begin(), produced_.end(), mine.buffer) == produced_.end()) {
        if (takes_from_loop(mine)) produced_.push_back(mine.buffer);
      }
    }
    if (produced_.empty()) return problem(codes::region, "nothing that it reads is written in the loop");
    return support::success();
  }

  // The values must be final where the block now runs: no other iteration of the loops around it touches them.
  void doubt_unfinished() {
    for (const Buffer& buffer : produced_)
      for (const For* around : moved_under_)
        if (program_.proves && !disjoint_across(*around, buffer, program_.proofs))
          doubted(codes::dependence,
                  fmt::format("could not show that '{}' is final after one iteration: other iterations of {} touch "
                              "it too",
                              buffer->name, name_of(*around)));
  }

  // The part of its domain that it ran over so far.
  Status find_domains() {
    std::vector<const For*> own;
    for (const For* around : own_loops_)
      if (std::find(shared_.begin(), shared_.end(), around) == shared_.end()) own.push_back(around);
    arith::Analyzer known;
    for (const For* around : shared_) known.bind(around->loop_var, Range{around->min, around->extent});
    for (size_t i = 0; i < block_->iter_vars.size(); ++i) {
      bool exact = true;
      const auto ran = interval(realized_.iter_values[i], domains_of(own), &exact);
      if (!ran || (!exact && program_.proves))
        return problem(codes::region, "its own loops do not run over an interval");
      domains_.push_back(TRY(cut_off(*ran, block_->iter_vars[i]->dom, known)));
    }
    return support::success();
  }

  // The part of it that one iteration's values allow.
  Status narrow() {
    parts_ = domains_;
    narrowed_.resize(parts_.size());
    const std::vector<Access> own_accesses = accesses(block_->body);
    for (const Buffer& buffer : produced_) {
      const auto writes_it = [&](const Access& access) { return access.buffer == buffer && access.writes; };
      const auto region = touched(inside_, writes_it);
      const auto everything = touched(all_, [&](const Access& a) { return writes_it(a) && is_in(a, loop_); }, shared_);
      const auto needed = touched(all_, [&](const Access& a) { return of_block(a) && a.buffer == buffer; }, shared_);
      if (!region || !everything || !needed)
        return problem(codes::region,
                       fmt::format("which part of '{}' an iteration writes could not be told", buffer->name));
      if (program_.proves) doubt_gaps(buffer, *region, *everything, *needed);
      for (const Access& read : own_accesses) {
        if (read.buffer != buffer || read.writes) continue;
        for (size_t d = 0; d < read.region.size(); ++d)
          TRY(narrow_along(d, read, region->dimensions[d], everything->dimensions[d]));
      }
    }
    return support::success();
  }

  // Where the values do not say which iteration an instance belongs to, every iteration would run it.
  void doubt_repeated() {
    for (const For* around : moved_under_) {
      if (is_int(around->extent, 1) || !program_.proves || doubt_) continue;
      bool told = false;
      for (size_t i = 0; i < parts_.size(); ++i)
        told = told || (narrowed_[i] && uses_var(parts_[i].low, around->loop_var));
      if (!told)
        doubted(codes::region, fmt::format("every iteration of {} would run the same instances", name_of(*around)));
    }
  }

  Result<Edit> run(bool keep_unit_loops, int64_t index) {
    if (support::flip(reverse_compute_at_drops_predicate))
      for (size_t i = 0; i < parts_.size(); ++i)
        if (narrowed_[i]) domains_[i] = parts_[i];
    const Path& target = move_.target;
    Id next = program_.next;
    const Stmt nested = nest_over(block_, parts_, domains_, target, keep_unit_loops, next);
    // All that the loop does came before it.
    const std::vector<Stmt> statements = items(loop_.body);
    const auto at = place_of(index, behind_all(statements, nested), statements.size());
    if (!at.ok()) return problem(codes::bad_argument, at.diagnostics()[0].message);
    const Function after = moved_to(program_, move_, nested, *at);
    if (doubt_ && !is_dispelled(*after)) return *std::move(doubt_);
    if (auto refused = refuse_parallel_above(program_, after, target, "compute a block")) return *std::move(refused);
    return edited(program_, after, next);
  }

 private:
  Diagnostic problem(const support::Code& code, const std::string& why) const { return move_.problem(code, why); }

  void doubted(const support::Code& code, const std::string& why) {
    if (!doubt_) doubt_ = problem(code, why);
  }

  static bool is_in(const Access& access, const For& loop) {
    return std::find(access.loops.begin(), access.loops.end(), &loop) != access.loops.end();
  }

  bool of_block(const Access& access) const { return instance_of(access, *block_) != nullptr; }

  // From the nest's beginning to the block, others should not touch what the block writes there.
  void doubt_touched_before(const Access& mine) {
    for (const Access& other : all_) {
      if (of_block(other) || other.buffer != mine.buffer || other.order < nest_order_ || other.order >= own_order_)
        continue;
      const auto theirs = touched(all_, [&](const Access& a) { return a.order == other.order; }, shared_);
      const auto ours = touched(all_, [&](const Access& a) { return a.order == mine.order; }, shared_);
      if (!theirs || !ours || !apart(*theirs, *ours))
        doubted(codes::dependence, fmt::format("'{}', which it writes, is touched before by {}", mine.buffer->name,
                                               other.block ? name_of(*other.block) : "a statement"));
    }
  }

  // Whether the loop writes what the block reads there; nobody else should.
  bool takes_from_loop(const Access& mine) {
    bool here = false;
    for (const Access& write : all_) {
      if (!write.writes || write.buffer != mine.buffer || write.order < nest_order_) continue;
      if (is_in(write, loop_)) {
        here = true;
        continue;
      }
      if (!program_.proves) continue;
      const auto theirs = touched(all_, [&](const Access& a) { return a.order == write.order; }, shared_);
      const auto ours = touched(all_, [&](const Access& a) { return of_block(a) && a.buffer == mine.buffer; }, shared_);
      if (!theirs || !ours || !apart(*theirs, *ours))
        doubted(codes::dependence, fmt::format("'{}', which it reads, is also written outside the loop{}",
                                               mine.buffer->name, write.block ? " by " + name_of(*write.block) : ""));
    }
    return here;
  }

  // What is left of the values that its loops run over: the predicate cuts at the ends of the domain only.
  Result<Interval> cut_off(const Interval& ran, const Range& dom, arith::Analyzer& known) const {
    if (is_int(realized_.predicate, 1)) return ran;
    Interval domain{dom.min, Linear(linear(dom.min + dom.extent - 1)).expr()};
    const auto before = difference(ran.low, domain.low), beyond = difference(ran.high, domain.high);
    if (beyond ? *beyond < 0 : known.can_prove(ran.high <= domain.high)) {
      domain.high = ran.high;
    } else if (!beyond && !known.can_prove(ran.high >= domain.high)) {
      return problem(codes::region, "where its predicate ends its own loops could not be told");
    }
    if (before ? *before > 0 : known.can_prove(ran.low >= domain.low)) {
      domain.low = ran.low;
    } else if (!before && !known.can_prove(ran.low <= domain.low)) {
      return problem(codes::region, "where its predicate begins its own loops could not be told");
    }
    return domain;
  }

  // What is written for certain is all that is written: of `region` in an iteration, of `everything` in the loop. The
  // block reads `needed`.
  void doubt_gaps(const Buffer& buffer, const Region& region, const Region& everything, const Region& needed) {
    const auto writes_it = [&](const Access& access) { return access.buffer == buffer && access.writes; };
    const auto surely = touched(inside_, [&](const Access& access) { return writes_it(access) && access.certain; });
    if (!(surely && surely->exact && holds(*surely, region)))
      doubted(codes::region, fmt::format("an iteration does not write one region of '{}'", buffer->name));
    for (const Access& write : inside_)
      if (writes_it(write) && !ends_with_domain(write, loop_.body))
        doubted(codes::region,
                fmt::format("the predicate of {} leaves out parts of '{}'", name_of(*write.block), buffer->name));
    const bool elsewhere = std::any_of(everywhere_.begin(), everywhere_.end(),
                                       [&](const Access& a) { return writes_it(a) && !is_in(a, loop_); });
    if (!(everything.exact && (!elsewhere || holds(everything, needed))))
      doubted(codes::region, fmt::format("the loop does not write all that it reads of '{}'", buffer->name));
  }

  // The instances whose index into dimension `d` lies in the part that an iteration writes.
  Status narrow_along(size_t d, const Access& read, const Interval& part, const Interval& everything) {
    const std::string& name = read.buffer->name;
    const Linear index = linear(read.region[d].min);
    // Where every iteration writes all of the dimension, it tells nothing about the instances.
    if (index.is_constant() || (same(part.low, everything.low) && same(part.high, everything.high)))
      return support::success();
    size_t which = parts_.size();
    for (size_t i = 0; i < parts_.size(); ++i)
      if (index.terms.size() == 1 && index.terms[0].coefficient == 1 &&
          index.terms[0].atom == Expr(block_->iter_vars[i]->var))
        which = i;
    if (which == parts_.size())
      return problem(codes::region,
                     fmt::format("its index into dimension {} of '{}' is not one of its variables", d, name));
    const IterVarNode& iter = *block_->iter_vars[which];
    if (iter.type != IterType::spatial)
      return problem(codes::region, fmt::format("an iteration writes only a part of '{}' along its reduce axis '{}'",
                                                name, iter.var->name));
    const auto of_index = [&](const Interval& values) {
      return Interval{Linear(linear(values.low - index.constant)).expr(),
                      Linear(linear(values.high - index.constant)).expr()};
    };
    // Instances that read nothing (padding) belong to no iteration.
    if (program_.proves && !holds({{of_index(everything)}}, {{domains_[which]}}))
      doubted(codes::region,
              fmt::format("not every value of its axis '{}' reads what the loop writes", iter.var->name));
    const Interval wanted = of_index(part);
    if (narrowed_[which] && !(same(parts_[which].low, wanted.low) && same(parts_[which].high, wanted.high)))
      return problem(codes::region, fmt::format("what it reads of '{}' does not fit its other inputs", name));
    parts_[which] = wanted;
    narrowed_[which] = true;
    return support::success();
  }

  // Whether its elements show that the block does in the function `after` what it did; what they show else joins the
  // doubt.
  bool is_dispelled(const PrimFunc& after) {
    Moved moved{.before = *program_.function,
                .after = after,
                .block = *block_,
                .nest = moved_under_.front()->id,
                .from = nest_order_};
    moved.shared = shared_;
    for (const Access& access : all_)
      moved.count += !of_block(access) && access.order >= nest_order_ && access.order < own_order_;
    Conflict conflict = too_early(moved);
    if (!conflict && meets_itself_) conflict = turned_round(moved);
    conflict.explain(*doubt_);
    return !conflict && runs_the_same(moved);
  }

  const Program& program_;
  const Move& move_;
  const BlockRealize& realized_ = move_.realize();
  const Ref<Block>& block_ = realized_.block;
  const For& loop_ = move_.loop();
  const std::vector<const For*> own_loops_ = loops_above(move_.path);
  // The loops that the block shares with the target, and those that it does not, outermost first; the first of these
  // holds all that must end before the block ran so far.
  std::vector<const For*> shared_, moved_under_;
  // All of the scope, in terms of the variables of the block around, as what is inside of the loop is.
  std::vector<Access> all_;
  const std::vector<Access> everywhere_ = accesses(program_.function->body), inside_ = accesses(loop_.body);
  size_t own_order_ = 0, nest_order_ = 0;
  // What regions do not tell is asked of the elements, once it is known where the instances go.
  std::optional<Diagnostic> doubt_;
  bool meets_itself_ = false;
  std::vector<Buffer> produced_;
  // One a variable of the block: what it ran over so far, and what an iteration needs of that.
  std::vector<Interval> domains_, parts_;
  std::vector<bool> narrowed_;
};

}  // namespace

Result<Edit> reverse_compute_at(const Program& program, Id block_id, Id loop_id, bool keep_unit_loops, int64_t index) {
  const Move under = TRY(move_under(program, block_id, loop_id));
  ReverseMove move(program, under);
  TRY(move.find_order());
  TRY(move.find_produced());
  move.doubt_unfinished();
  TRY(move.find_domains());
  TRY(move.narrow());
  move.doubt_repeated();
  return move.run(keep_unit_loops, index);
}

}  // namespace lathe::schedule::primitives
