#include "schedule/analysis/dependence.h"

#include "arith/analyzer.h"
#include "ir/conditions.h"
#include "schedule/analysis/digits.h"
#include "schedule/analysis/tree.h"
#include "support/mutation.h"

namespace lathe::schedule {

LATHE_FAULT(dependence_width, "schedule_test", "neighbouring iterations that share one element count as independent");

// Two iterations l and l' of the loop are told apart by an element's indices when the indices determine l. In each
// dimension the index is a sum; what does not depend on the iteration or on inner loops must agree between all
// accesses, inner loops widen the index to an interval, and a term c * l is recovered from it where |c| exceeds that
// width. A loop made by fusion appears in digits (l // n in one dimension, l % n in another): then l is known when all
// digits of one number system are.

namespace {

// A term of one access's index in one dimension that varies with the loop: its base as c * l + outer + [low, high].
struct VaryingTerm {
  int64_t coefficient = 0;
  DigitSteps steps;
  int64_t base_coefficient = 0;
  Linear base_outer;
  int64_t base_low = 0, base_high = 0;
};

struct Dimension {
  std::vector<VaryingTerm> terms;
  Linear outer;
  int64_t low = 0, high = 0;  // of the inner part, constant included
};

// The largest value that the conjuncts of a predicate leave `sum`: a conjunct `e < c` whose e differs from it by a
// constant. The tail of a split in a flattened index is cut off that way.
std::optional<int64_t> largest_where(const Expr& predicate, const Linear& sum) {
  std::optional<int64_t> largest;
  for (const Expr& part : conjuncts(predicate)) {
    const auto* less = part.as<LT>();
    if (!less) continue;
    Linear bound = linear(less->b - less->a);  // at least one
    bound.add(sum);
    if (bound.is_constant()) largest = std::min(largest.value_or(bound.constant), bound.constant - 1);
  }
  return largest;
}

class Tester {
 public:
  Tester(const For& loop, Proofs* proofs, Ranges around = {})
      : loop_(loop), proofs_(proofs), around_(std::move(around)), written_(buffers_written(loop.body)) {}

  // Whether no iteration writes what another touches; all accesses are to one buffer.
  bool independent(const std::vector<const Access*>& list) const {
    // What the memory holds that an index reads, the question does not say.
    const bool whole = std::none_of(list.begin(), list.end(), [](const Access* access) {
      return std::any_of(access->region.begin(), access->region.end(),
                         [](const Range& range) { return reads_memory(range.min); });
    });
    auto question = proofs_ && whole ? question_of(loop_, list, around_) : std::nullopt;
    if (!question) return decided(list);
    if (const auto known = proofs_->find(*question)) return *known;
    const bool answer = decided(list);
    proofs_->keep(*std::move(question), answer);
    return answer;
  }

  // The third tier; `counts` narrows the pairs of instances further.
  Conflict conflict(const std::vector<const Access*>& list) const { return conflict(list, any_pair); }
  Conflict conflict(const std::vector<const Access*>& list, PairCondition counts) const {
    if (const auto extent = as_int(loop_.extent); extent && *extent <= 1) return {};
    return find_conflict(list, list, {&loop_}, around_,
                         [&](const Access& a, const VarMap& first, const Access& b, const VarMap& second) {
                           // The pair is asked in both orders.
                           return logical_and(first.at(loop_.loop_var) < second.at(loop_.loop_var),
                                              counts(a, first, b, second));
                         });
  }

 private:
  bool decided(const std::vector<const Access*>& list) const {
    if (proved(list) || lie_in_strips(list)) return true;
    for (const Access* access : list)
      if (access->writes && !moves(*access)) return false;
    return !conflict(list);
  }

  // Whether which element is touched, and whether it is, depends on the loop's iteration at all.
  bool moves(const Access& access) const {
    const auto uses = [&](const Expr& e) { return e && uses_var(e, loop_.loop_var); };
    return uses(access.predicate) || uses(access.guard) ||
           std::any_of(access.region.begin(), access.region.end(),
                       [&](const Range& range) { return uses(range.min) || uses(range.extent); }) ||
           std::any_of(access.loops.begin(), access.loops.end(),
                       [&](const For* loop) { return uses(loop->min) || uses(loop->extent); });
  }

  // Whether iteration l touches, along one dimension, only what lies from c * l to c * l + c - 1: a strip of its own,
  // of which the inner loops touch parts whose lengths depend on l (the last strip is a shorter one).
  bool lie_in_strips(const std::vector<const Access*>& list) const {
    const size_t rank = list[0]->region.size();
    arith::Analyzer known;
    for (const auto& [v, range] : around_) known.bind(v, range);
    known.bind(loop_.loop_var, Range{loop_.min, loop_.extent});
    for (size_t d = 0; d < rank; ++d) {
      const Linear first = linear(list[0]->region[d].min);
      const auto own = std::find_if(first.terms.begin(), first.terms.end(),
                                    [&](const Linear::Term& term) { return term.atom == Expr(loop_.loop_var); });
      if (own == first.terms.end() || own->coefficient < 2) continue;
      const Expr start = Expr(loop_.loop_var) * own->coefficient;
      const Expr end = start + (own->coefficient + (support::flip(dependence_width) ? 1 : 0));
      if (std::all_of(list.begin(), list.end(), [&](const Access* access) {
            if (access->opaque || access->region.size() != rank || changes(access->region[d].min)) return false;
            const Range& range = access->region[d];
            const Domains inner = domains_of(access->loops);
            const auto low = interval(range.min, inner);
            const auto high = interval(Linear(linear(range.min + range.extent)).expr(), inner);
            return low && high && known.can_prove(low->low >= start) && known.can_prove(high->high <= end);
          }))
        return true;
    }
    return false;
  }

  // Whether it depends on memory that the loop writes: it is not the same twice.
  bool changes(const Expr& e) const {
    bool found = false;
    pre_order(e, [&](const NodeRef& n) {
      const auto* load = n.as<BufferLoad>();
      found = found || (load && std::find(written_.begin(), written_.end(), load->buffer) != written_.end());
      return !found;
    });
    return found;
  }

  // The index of one dimension in parts; nothing where it is not of this form.
  std::optional<Dimension> parts(const Range& range, const Domains& inner, const Expr& predicate) const {
    const auto extent = as_int(range.extent);
    if (!extent || changes(range.min)) return std::nullopt;
    Dimension result;
    Linear sum = linear(range.min);
    const Linear varying = sum.extract([&](const Expr& atom) { return uses_var(atom, loop_.loop_var); });
    Linear moving = sum.extract([&](const Expr& atom) { return mentions(atom, inner); });
    moving.constant = sum.constant;
    sum.constant = 0;
    result.outer = sum;
    const auto width = constant_interval(moving, inner);
    if (!width) return std::nullopt;
    result.low = width->first;
    result.high = std::min(width->second, largest_where(predicate, moving).value_or(width->second)) + *extent - 1;
    for (const Linear::Term& term : varying.terms) {
      const Digit digit = digit_of(term.atom);
      for (const auto& [operation, divisor] : digit.steps)
        if (mentions(divisor, inner) || uses_var(divisor, loop_.loop_var)) return std::nullopt;
      VaryingTerm part{term.coefficient, digit.steps, 0, {}, 0, 0};
      Linear base = linear(digit.base);
      Linear own = base.extract([&](const Expr& atom) { return uses_var(atom, loop_.loop_var); });
      if (own.terms.size() != 1 || !(own.terms[0].atom == Expr(loop_.loop_var))) return std::nullopt;
      part.base_coefficient = own.terms[0].coefficient;
      Linear inside = base.extract([&](const Expr& atom) { return mentions(atom, inner); });
      inside.constant = base.constant;
      base.constant = 0;
      part.base_outer = base;
      const auto reach = constant_interval(inside, inner);
      if (!reach) return std::nullopt;
      part.base_low = reach->first;
      part.base_high = reach->second;
      result.terms.push_back(std::move(part));
    }
    return result;
  }

  // Widens `merged` by another access's parts; false where they do not agree.
  static bool merge(Dimension& merged, const Dimension& other) {
    if (!(merged.outer == other.outer) || merged.terms.size() != other.terms.size()) return false;
    merged.low = std::min(merged.low, other.low);
    merged.high = std::max(merged.high, other.high);
    for (size_t i = 0; i < merged.terms.size(); ++i) {
      VaryingTerm& a = merged.terms[i];
      const VaryingTerm& b = other.terms[i];
      if (a.coefficient != b.coefficient || a.base_coefficient != b.base_coefficient || !same_steps(a.steps, b.steps) ||
          !(a.base_outer == b.base_outer))
        return false;
      a.base_low = std::min(a.base_low, b.base_low);
      a.base_high = std::max(a.base_high, b.base_high);
    }
    return true;
  }

  // The terms of a dimension that its index determines: largest coefficient free, each smaller one bounded.
  static std::vector<VaryingTerm> recovered(const Dimension& dimension) {
    std::vector<VaryingTerm> terms = dimension.terms;
    std::sort(terms.begin(), terms.end(), [](const VaryingTerm& a, const VaryingTerm& b) {
      return std::abs(a.coefficient) < std::abs(b.coefficient);
    });
    int64_t width = dimension.high - dimension.low;
    if (width > 0 && support::flip(dependence_width)) --width;
    for (size_t i = 0; i < terms.size(); ++i) {
      if (std::abs(terms[i].coefficient) <= width) return {};
      if (i + 1 == terms.size()) break;
      const auto& steps = terms[i].steps;
      const auto divisor = steps.empty() || steps.back().first != '%' ? std::nullopt : as_int(steps.back().second);
      if (!divisor || *divisor > (int64_t{1} << 30)) return {};
      width += std::abs(terms[i].coefficient) * (*divisor - 1);
    }
    return terms;
  }

  bool proved(const std::vector<const Access*>& list) const {
    if (const auto extent = as_int(loop_.extent); extent && *extent <= 1) return true;
    const size_t rank = list[0]->region.size();
    std::vector<VaryingTerm> known;
    for (size_t d = 0; d < rank; ++d) {
      std::optional<Dimension> merged;
      for (size_t i = 0; i < list.size(); ++i) {
        if (list[i]->region.size() != rank) return false;
        const auto part = parts(list[i]->region[d], domains_of(list[i]->loops), list[i]->predicate);
        if (!part || (merged && !merge(*merged, *part))) {
          merged.reset();
          break;
        }
        if (!merged) merged = part;
      }
      if (!merged) continue;
      for (VaryingTerm& term : recovered(*merged)) known.push_back(std::move(term));
    }
    // Terms of one base together: its digits give the base, and the base gives the iteration.
    for (const VaryingTerm& first : known) {
      std::vector<DigitSteps> digits;
      int64_t low = first.base_low, high = first.base_high;
      bool common = true;
      for (const VaryingTerm& term : known) {
        if (term.base_coefficient != first.base_coefficient || !(term.base_outer == first.base_outer)) continue;
        // Digits must be of one number, not of two that move apart.
        if (term.base_low != first.base_low || term.base_high != first.base_high) common = false;
        digits.push_back(term.steps);
      }
      const bool is_iteration = first.base_coefficient == 1 && first.base_outer.is_constant() && low == 0 &&
                                high == 0 && first.base_outer.constant == 0 && is_int(loop_.min, 0);
      if (common && std::abs(first.base_coefficient) > high - low &&
          determine(digits, is_iteration ? as_int(loop_.extent) : std::nullopt))
        return true;
    }
    return false;
  }

  const For& loop_;
  Proofs* proofs_;
  Ranges around_;
  std::vector<Buffer> written_;
};

// The pair of accesses may be two updates of one reduction.
bool one_reduction(const Access& a, const Access& b) { return a.block && a.block == b.block && is_reduction(*a.block); }

// Whether both instances have the same spatial variables. Only then is the order of their updates free.
Expr same_result(const Block& block, const Access& a, const VarMap& first, const Access& b, const VarMap& second) {
  const BlockInstance &mine = *instance_of(a, block), &other = *instance_of(b, block);
  Expr same = boolean(true);
  for (size_t i = 0; i < mine.values.size(); ++i)
    if (block.iter_vars[i]->type == IterType::spatial)
      same = logical_and(same, eq(substitute(mine.values[i], first), substitute(other.values[i], second)));
  return same;
}

// Whether instances of a reduction with other spatial variables surely write other elements: each of the variables is
// an index of what it writes.
bool one_element_a_result(const Block& block) {
  const std::vector<Access> all = accesses(block.body);
  const auto is_index = [&](const Var& v) {
    return std::all_of(all.begin(), all.end(), [&](const Access& access) {
      return !access.writes || std::any_of(access.region.begin(), access.region.end(), [&](const Range& range) {
        return range.min == Expr(v) && is_int(range.extent, 1);
      });
    });
  };
  return std::all_of(block.iter_vars.begin(), block.iter_vars.end(), [&](const IterVar& iter) {
    return iter->type != IterType::spatial || is_int(iter->dom.extent, 1) || is_index(iter->var);
  });
}

// Pairs of instances that no reduction excuses.
constexpr auto not_one_result = [](const Access& a, const VarMap& first, const Access& b, const VarMap& second) {
  return one_reduction(a, b) ? logical_not(same_result(*a.block, a, first, b, second)) : boolean(true);
};

bool allocated_in(const Stmt& root, const Buffer& buffer) {
  bool found = false;
  each_statement(root, [&](const Stmt& s) {
    if (const auto* block = s.as<Block>())
      found = found ||
              std::find(block->alloc_buffers.begin(), block->alloc_buffers.end(), buffer) != block->alloc_buffers.end();
    if (const auto* declared = s.as<DeclBuffer>()) found = found || declared->buffer == buffer;
  });
  return found;
}

// Whether what a write touches, in one iteration of `loop` and the loops in it that both are in, certainly covers a
// read.
bool covers(const For& loop, const Access& write, const Access& read) {
  // An init runs in the first instances only.
  if (!write.certain || write.is_init || write.predicate || write.region.size() != read.region.size()) return false;
  size_t common = 0;
  while (common < write.loops.size() && common < read.loops.size() && write.loops[common] == read.loops[common])
    ++common;
  const auto own = [&](const std::vector<const For*>& loops) {
    return domains_of({loops.begin() + static_cast<ptrdiff_t>(common), loops.end()});
  };
  const Domains around_write = own(write.loops), around_read = own(read.loops);
  arith::Analyzer analyzer;
  bool bound = false;
  // What the difference of two bounds does not tell may follow from the domains of the loops that both are in.
  const auto at_least = [&](const Expr& a, const Expr& b) {
    if (const auto gap = difference(a, b)) return *gap >= 0;
    if (!bound) analyzer.bind(loop.loop_var, Range{loop.min, loop.extent});
    for (size_t k = 0; k < common && !bound; ++k)
      analyzer.bind(write.loops[k]->loop_var, Range{write.loops[k]->min, write.loops[k]->extent});
    bound = true;
    return analyzer.can_prove(a >= b);
  };
  for (size_t d = 0; d < write.region.size(); ++d) {
    bool exact = true;
    const auto from = interval(write.region[d].min, around_write, &exact);
    const auto low = interval(read.region[d].min, around_read);
    const auto high = interval(Linear(linear(read.region[d].min + read.region[d].extent)).expr(), around_read);
    if (!from || !low || !high || !exact || !is_int(write.region[d].extent, 1)) return false;
    if (!at_least(low->low, from->low) || !at_least(from->high + 1, high->high)) return false;
  }
  return true;
}

// The third tier asked whether writes in the same iteration of `loop`, earlier in the program than the read, cover it
// together.
bool covered_by_earlier(const For& loop, const std::vector<Access>& all, const Access& read, const PrimFunc& function) {
  std::vector<Var> element;
  for (size_t d = 0; d < read.region.size(); ++d) element.push_back(var(fmt::format("element{}", d)));
  const auto touched_where = [&](const Access& access) {
    Expr condition = in_range(access.loops);
    for (const Expr& known : {access.predicate, access.guard})
      if (known) condition = logical_and(condition, known);
    for (size_t d = 0; d < element.size(); ++d) {
      const Expr low = access.region[d].min, end = low + access.region[d].extent;
      condition = logical_and(condition, logical_and(element[d] >= low, element[d] < end));
    }
    return condition;
  };
  std::vector<arith::Projection> writes;
  for (const Access& write : all) {
    if (!write.writes || !write.exact || write.is_init || write.buffer != read.buffer || write.order > read.order ||
        write.block == read.block || write.region.size() != element.size())
      continue;
    // The iterations of loops that both are in are the read's own.
    std::vector<Var> hidden;
    bool apart = false;
    for (size_t i = 0; i < write.loops.size(); ++i) {
      apart = apart || i >= read.loops.size() || write.loops[i] != read.loops[i];
      if (apart) hidden.push_back(write.loops[i]->loop_var);
    }
    writes.push_back({touched_where(write), hidden});
  }
  if (writes.empty()) return false;
  Expr here = logical_and(in_range({&loop}), touched_where(read));
  for (const auto& [v, range] : ranges_around(function, loop.id))
    if (uses_var(here, v)) here = logical_and(here, logical_and(v >= range.min, v < range.min + range.extent));
  return arith::find_uncovered({here, {}}, writes).outcome == arith::PointSearch::none;
}

// Whether the block's init runs in each iteration of the loop: no reduce variable moves with it.
bool starts_in_each_iteration(const For& loop, const Block& block) {
  const Path path = path_to(loop.body, block.id);
  if (path.empty() || !block.init) return false;
  const auto& realize = *path.back().as<BlockRealize>();
  for (size_t i = 0; i < block.iter_vars.size(); ++i)
    if (block.iter_vars[i]->type != IterType::spatial && !is_int(loop.extent, 1) &&
        uses_var(realize.iter_values[i], loop.loop_var))
      return false;
  return runs_init(realize, loops_above(path)) == true;
}

}  // namespace

std::optional<bool> runs_init(const BlockRealize& realize, const std::vector<const For*>& loops) {
  VarMap starts;
  for (const For* loop : loops) starts[loop->loop_var] = loop->min;
  bool all = true;
  for (size_t i = 0; i < realize.iter_values.size(); ++i) {
    const IterVar& iter = realize.block->iter_vars[i];
    if (iter->type == IterType::spatial) continue;
    // Loop minima may mention outer loops.
    const Expr first = arith::Analyzer().simplify(substitute(substitute(realize.iter_values[i], starts), starts));
    const auto gap = difference(first, iter->dom.min);
    if (!gap) return std::nullopt;
    all = all && *gap == 0;
  }
  return all;
}

Conflict iterations_that_meet(const For& loop, const PrimFunc& function, const Buffer& buffer) {
  const std::vector<Access> all = accesses(loop.body);
  std::vector<const Access*> list;
  for (const Access& access : all)
    if (access.buffer == buffer) list.push_back(&access);
  return Tester(loop, nullptr, ranges_around(function, loop.id)).conflict(list);
}

AccessList accesses_of(const std::vector<Access>& all, const Buffer& buffer, const Block& block) {
  AccessList list;
  for (const Access& access : all)
    if (access.buffer == buffer && instance_of(access, block)) list.push_back(&access);
  return list;
}

AccessList accesses_of_others(const std::vector<Access>& all, const Buffer& buffer, const Block& block) {
  AccessList list;
  for (const Access& access : all)
    if (access.buffer == buffer && !instance_of(access, block)) list.push_back(&access);
  return list;
}

Conflict instances_that_meet(const PrimFunc& function, const Path& path, const For* inside) {
  const Block& block = *path.back().as<BlockRealize>()->block;
  if (one_element_a_result(block)) return {};
  const std::vector<const For*> loops = loops_above(path);
  const For* top = inside || loops.empty() ? inside : loops.front();
  const std::vector<Access> all = accesses(top ? Stmt(top) : path.back());
  const Ranges around = ranges_around(function, top ? top->id : block.id);
  Conflict undecided;
  for (const Buffer& buffer : buffers_written(path.back())) {
    AccessList list;
    for (const Access* access : accesses_of(all, buffer, block))
      if (access->writes) list.push_back(access);
    Conflict conflict = find_conflict(list, list, {}, around,
                                      [&](const Access& a, const VarMap& first, const Access& b, const VarMap& second) {
                                        return logical_not(same_result(block, a, first, b, second));
                                      });
    if (conflict.outcome == arith::PointSearch::found) return conflict;
    if (conflict) undecided = std::move(conflict);
  }
  return undecided;
}

Conflict reordered_by(const std::vector<const For*>& chain, const PrimFunc& function,
                      support::function_ref<Expr(const VarMap& first, const VarMap& second)> reversed) {
  const For& innermost = *chain.back();
  const std::vector<Access> all = accesses(innermost.body);
  const Ranges around = ranges_around(function, chain.front()->id);
  std::vector<Buffer> written;
  for (const Access& access : all)
    if (access.writes && std::find(written.begin(), written.end(), access.buffer) == written.end())
      written.push_back(access.buffer);
  Conflict undecided;
  for (const Buffer& buffer : written) {
    if (private_to_iteration(innermost, buffer, function)) continue;
    std::vector<const Access*> list;
    for (const Access& access : all)
      if (access.buffer == buffer) list.push_back(&access);
    Conflict conflict = find_conflict(
        list, list, chain, around, [&](const Access& a, const VarMap& first, const Access& b, const VarMap& second) {
          const Expr turned = logical_and(comes_before(chain, first, second), reversed(first, second));
          return logical_and(turned, not_one_result(a, first, b, second));
        });
    if (conflict.outcome == arith::PointSearch::found) return conflict;
    if (conflict) undecided = std::move(conflict);
  }
  return undecided;
}

bool disjoint_across(const For& loop, const Buffer& buffer, Proofs* proofs) {
  const std::vector<Access> all = accesses(loop.body);
  std::vector<const Access*> list;
  for (const Access& access : all)
    if (access.buffer == buffer) list.push_back(&access);
  return list.empty() || Tester(loop, proofs).independent(list);
}

bool private_to_iteration(const For& loop, const Buffer& buffer, const PrimFunc& function) {
  if (allocated_in(loop.body, buffer)) return true;  // anew in each
  if (!allocated_in(function.body, buffer)) return false;
  size_t everywhere = 0, inside = 0;
  for (const Access& access : accesses(function.body)) everywhere += access.buffer == buffer;
  const std::vector<Access> all = accesses(loop.body);
  for (const Access& access : all) inside += access.buffer == buffer;
  if (inside != everywhere) return false;
  for (const Access& read : all) {
    if (read.buffer != buffer || read.writes) continue;
    if (read.opaque) return false;
    // A reduction reads its own element, which its init set.
    bool covered = read.block && is_reduction(*read.block) && starts_in_each_iteration(loop, *read.block) &&
                   std::any_of(all.begin(), all.end(), [&](const Access& write) {
                     return write.is_init && write.block == read.block && write.buffer == buffer;
                   });
    for (const Access& write : all)
      covered = covered || (write.buffer == buffer && write.writes && write.order < read.order &&
                            write.block != read.block && covers(loop, write, read));
    if (!covered && !covered_by_earlier(loop, all, read, function)) return false;
  }
  return true;
}

std::vector<Carried> carried_by(const For& loop, const PrimFunc& function, Proofs* proofs) {
  std::vector<Carried> found;
  const std::vector<Access> all = accesses(loop.body);
  std::vector<Buffer> written;
  for (const Access& access : all)
    if (access.writes && std::find(written.begin(), written.end(), access.buffer) == written.end())
      written.push_back(access.buffer);
  if (const Call* call = effect_in(loop.body))
    found.push_back(
        {{},
         nullptr,
         fmt::format("{} contains a call of '{}', whose effects are not known", name_of(loop), call->op->name),
         {}});
  const Tester tester(loop, proofs, ranges_around(function, loop.id));
  for (const Buffer& buffer : written) {
    std::vector<const Access*> list;
    bool opaque = false;
    for (const Access& access : all)
      if (access.buffer == buffer) {
        list.push_back(&access);
        opaque = opaque || access.opaque;
      }
    if (!opaque && tester.independent(list)) continue;
    if (private_to_iteration(loop, buffer, function)) continue;
    Carried carried{buffer, nullptr, {}, {}};
    const Block* block = nullptr;
    for (const Access* access : list)
      if (access->block && is_reduction(*access->block)) block = access->block;
    if (block && !opaque) {
      // Its own updates of one result apart, are there others that meet?
      const bool alone = std::all_of(list.begin(), list.end(), [&](const Access* a) { return a->block == block; });
      if (!alone || !one_element_a_result(*block)) carried.conflict = tester.conflict(list, not_one_result);
      if (carried.conflict) block = nullptr;
    } else if (!opaque) {
      carried.conflict = tester.conflict(list);
    }
    if (block && !opaque) {
      carried.block = block;
      std::string axis = "?";
      for (const IterVar& iter : block->iter_vars)
        if (iter->type == IterType::reduce) axis = iter->var->name;
      carried.reason = fmt::format("iterations of {} accumulate into the same element of '{}' (reduce axis '{}' of {})",
                                   name_of(loop), buffer->name, axis, name_of(*block));
    } else {
      std::string names;
      for (const Access* access : list)
        if (access->block && names.find("'" + access->block->name + "'") == std::string::npos)
          names += (names.empty() ? "" : ", ") + ("'" + access->block->name + "'");
      carried.reason = carried.conflict.reason(name_of(loop), buffer) + (names.empty() ? "" : " (in " + names + ")");
    }
    found.push_back(std::move(carried));
  }
  return found;
}

}  // namespace lathe::schedule
