#include "schedule/rules/nest/work.h"

#include <bit>

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "schedule/codes.h"
#include "schedule/rules/nest/transposed.h"

namespace lathe::schedule {

std::vector<Work> works(const PrimFunc& function) {
  std::vector<Work> list;
  const BlockRealize* root = root_of(function);
  if (!root) return list;
  for (const Ref<BlockRealize>& realize : outer_blocks(root->block->body)) {
    Work work{realize, loops_above(path_to(function.body, realize->block->id)), false, Ref<PrimFunc>(&function)};
    for (const Buffer& buffer : buffers_written(realize)) {
      const auto& inner = root->block->alloc_buffers;
      if (std::find(inner.begin(), inner.end(), buffer) == inner.end()) work.is_output = true;
    }
    list.push_back(std::move(work));
  }
  return list;
}

const Work* find(const std::vector<Work>& list, const std::string& block) {
  for (const Work& work : list)
    if (work.block().name == block) return &work;
  return nullptr;
}

Outcome no_plain_reductions(const std::vector<Work>& list) {
  bool any = false;
  for (const Work& work : list) {
    if (has_effects(work.block())) return Outcome(fmt::format("block '{}' has effects", work.block().name));
    any = any || work.reduces();
    if (constant_product(work.loops) == 0) return Outcome("there is nothing to compute");
    if (work.reduces() && !is_reduction(work.block()))
      return Outcome(fmt::format("block '{}' is not a plain reduction", work.block().name));
  }
  return any ? Outcome() : Outcome("no block is a reduction");
}

namespace {

// The most turns of loops inside each other in the statement, `parallel_work` at most, which one of unknown length
// counts as.
int64_t turns_of(const NodeRef& statement) {
  int64_t most = 1;
  pre_order(statement, [&](const NodeRef& n) {
    const auto* loop = n.as<For>();
    if (!loop) return true;
    const int64_t turns = std::min(as_int(loop->extent).value_or(parallel_work), parallel_work);
    most = std::max(most, std::min(turns * turns_of(loop->body), parallel_work));
    return false;
  });
  return most;
}

}  // namespace

bool are_enough(std::optional<int64_t> count, int64_t work) {
  return !count || *count >= parallel_work || *count * work >= parallel_work;
}

int64_t work_of_instance(const Block& block) { return turns_of(block.body) * (is_costly(block) ? 8 : 1); }

int64_t work_for_threads(const std::vector<Work>& list) {
  int64_t total = 0;
  for (const Work& work : list) {
    const auto own = constant_product(work.loops);
    total += own ? std::min(*own, parallel_work) * work_of_instance(work.block()) : 8 * parallel_work;
  }
  return total;
}

Outcome computed_again(const std::vector<Work>& before, const std::vector<Work>& now) {
  double once = 0, times = 0;
  std::pair<double, std::string> most;
  for (const Work& work : before) {
    const Work* moved = find(now, work.block().name);
    const auto own = constant_product(work.loops), then = moved ? constant_product(moved->loops) : std::nullopt;
    if (!own || !then) continue;
    once += static_cast<double>(*own);
    times += static_cast<double>(*then);
    most = std::max(most,
                    {static_cast<double>(*then) / static_cast<double>(std::max<int64_t>(*own, 1)), work.block().name});
  }
  // Tails may be computed with what is beside them, a few small blocks for each row.
  if (times <= 2 * once) return Outcome();
  return Outcome(fmt::format("block '{}' would be computed {:.0f} times", most.second, most.first));
}

std::vector<Buffer> operands_of(const Block& block) {
  std::vector<Buffer> read = buffers_read(block.body);
  for (const Buffer& own : buffers_written(block.body)) std::erase(read, own);
  return read;
}

Result<BlockRV> handle(Schedule& schedule, const Work& work) { return schedule.get_block(work.block().name); }

std::optional<int64_t> constant_product(const std::vector<const For*>& loops) {
  int64_t product = 1;
  for (const For* loop : loops) {
    const auto extent = as_int(loop->extent);
    if (!extent) return std::nullopt;
    if (*extent != 0 && product > (int64_t{1} << 50) / *extent) return int64_t{1} << 50;
    product *= *extent;
  }
  return product;
}

namespace {

// The same where indices are digits of the loop's variable, which may be joined in memory: A[i // 16, i % 16] of rows
// of 16 walks one element after the other.
std::optional<int64_t> stride_of_digits(const Access& access, const For& loop) {
  Expr offset = int64(0);
  int64_t step = 1;
  bool known = true;
  for (size_t d = access.region.size(); d-- > 0;) {
    if (uses_var(access.region[d].min, loop.loop_var)) {
      if (!known) return std::nullopt;
      offset = offset + access.region[d].min * step;
    }
    const auto extent = as_int(access.buffer->shape[d]);
    known = known && extent && *extent < (int64_t{1} << 31) && step < (int64_t{1} << 31);
    if (known) step *= std::max<int64_t>(*extent, 1);
  }
  arith::Analyzer analyzer;
  for (const For* around : access.loops) analyzer.bind(around->loop_var, Range{around->min, around->extent});
  Linear joined = linear(analyzer.simplify(offset));
  const Linear moving = joined.extract([&](const Expr& atom) { return uses_var(atom, loop.loop_var); });
  if (moving.terms.size() != 1 || !(moving.terms[0].atom == Expr(loop.loop_var))) return std::nullopt;
  return moving.terms[0].coefficient;
}

}  // namespace

std::optional<int64_t> stride_of(const Access& access, const For& loop) {
  int64_t stride = 0, step = 1;
  bool known = true;
  const std::vector<Expr>& strides = access.buffer->strides;
  for (size_t d = access.region.size(); d-- > 0;) {
    if (!strides.empty()) {
      known = as_int(strides[d]).has_value();
      step = as_int(strides[d]).value_or(1);
    }
    Linear index = linear(access.region[d].min);
    const Linear moving = index.extract([&](const Expr& atom) { return uses_var(atom, loop.loop_var); });
    for (const Linear::Term& term : moving.terms) {
      if (!known) return std::nullopt;
      if (!(term.atom == Expr(loop.loop_var)))
        return strides.empty() ? stride_of_digits(access, loop) : std::optional<int64_t>();
      stride += term.coefficient * step;
    }
    const auto extent = as_int(access.buffer->shape[d]);
    if (extent && *extent < (int64_t{1} << 31) && step < (int64_t{1} << 31))
      step *= std::max<int64_t>(*extent, 1);
    else
      known = false;
  }
  return stride;
}

bool moves_with(const Access& access, const For& loop) {
  return std::any_of(access.region.begin(), access.region.end(),
                     [&](const Range& range) { return uses_var(range.min, loop.loop_var); });
}

int widest_bits(const Block& block) {
  int bits = 8;
  for (const Access& access : accesses(block.body))
    bits = std::max<int>(bits, static_cast<int>(access.buffer->dtype.storage_bits()));
  post_order(block.body, [&](const NodeRef& n) {
    if (const auto* cast = n.as<Cast>()) bits = std::max<int>(bits, cast->dtype.bits);
  });
  return bits;
}

int widest_bits(const Work& work, const For& loop) {
  std::vector<Var> moving;
  for (size_t i = 0; i < work.realize->iter_values.size(); ++i)
    if (uses_var(work.realize->iter_values[i], loop.loop_var)) moving.push_back(work.block().iter_vars[i]->var);
  const auto moves = [&](const Expr& value) {
    return std::any_of(moving.begin(), moving.end(), [&](const Var& var) { return uses_var(value, var); });
  };
  int bits = 8;
  const auto widen = [&](int to) { bits = std::max(bits, to); };
  pre_order(work.block().body, [&](const NodeRef& n) {
    if (const auto* store = n.as<BufferStore>()) widen(store->buffer->dtype.storage_bits());
    const auto* cast = n.as<Cast>();
    if (cast && moves(cast->value)) widen(cast->dtype.bits);
    const auto* load = n.as<BufferLoad>();
    if (load && std::any_of(load->indices.begin(), load->indices.end(), moves))
      widen(load->buffer->dtype.storage_bits());
    return true;
  });
  return bits;
}

int widest_bits(const Work& work) {
  return work.loops.empty() ? widest_bits(work.block()) : widest_bits(work, *work.loops.back());
}

namespace {

bool calls_one_of(const Block& block, std::initializer_list<const Intrinsic*> ops) {
  bool found = false;
  post_order(block.body, [&](const NodeRef& n) {
    const auto* call = n.as<Call>();
    found = found || (call && std::find(ops.begin(), ops.end(), call->op) != ops.end());
  });
  return found;
}

}  // namespace

bool is_costly(const Block& block) {
  return vectors_together(block) > 1 ||
         calls_one_of(block, {&intrinsic::pow, &intrinsic::sin, &intrinsic::cos, &intrinsic::tan});
}

int64_t vectors_together(const Block& block) {
  const bool chain = calls_one_of(
      block, {&intrinsic::exp, &intrinsic::exp_nonpositive, &intrinsic::exp2, &intrinsic::erf, &intrinsic::tanh,
              &intrinsic::log, &intrinsic::log1p, &intrinsic::sigmoid, &intrinsic::expm1, &intrinsic::atan});
  return chain ? 4 : 1;
}

bool gathers(const Work& work) {
  if (work.loops.empty()) return false;
  bool found = false;
  for (const Access& access : accesses(work.function->body))
    if (access.block == &work.block() && !access.writes)
      for (const Range& range : access.region)
        if (uses_var(range.min, work.loops.back()->loop_var))
          post_order(range.min, [&](const NodeRef& n) { found = found || n.is<BufferLoad>(); });
  return found;
}

const Call* choice_of(const Block& block) {
  const auto* store = block.body.as<BufferStore>();
  const auto* call = store ? store->value.as<Call>() : nullptr;
  return call && call->op == &intrinsic::if_then_else ? call : nullptr;
}

bool has_effects(const Block& block) {
  bool found = false;
  post_order(block.body, [&](const NodeRef& n) {
    if (const auto* call = n.as<Call>()) found = found || call->op->effect != Effect::pure;
  });
  return found;
}

namespace {

// Inlining multiplies what is computed where a consumer, or several, load the producer more than once: y = x + x,
// repeated, doubles each time. Past this many nodes in a consumer the value goes through memory.
constexpr int64_t largest_duplicate = 300;

// The nodes of a block's body, counted each time they occur, and its loads of `buffer`; counting ends past `most`.
struct Extent {
  int64_t nodes = 0, loads = 0;
};
Extent extent_of(const Block& block, const Buffer& buffer, int64_t most) {
  Extent extent;
  pre_order(block.body, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    extent.loads += load && load->buffer == buffer;
    return ++extent.nodes <= most;
  });
  return extent;
}

// Whether the producer's value is wanted several times, and inlining it would make a consumer too large.
bool duplicates_too_much(const std::vector<Work>& list, const Work& producer) {
  const std::vector<Buffer> written = buffers_written(producer.realize);
  if (written.size() != 1) return false;
  const int64_t size = extent_of(producer.block(), written[0], largest_duplicate).nodes;
  int64_t loads = 0, largest = 0;
  for (const Work& other : list) {
    if (&other == &producer) continue;
    const Extent extent = extent_of(other.block(), written[0], largest_duplicate);
    loads += extent.loads;
    if (extent.loads > 0) largest = std::max(largest, extent.nodes + extent.loads * size);
  }
  return loads > 1 && largest > largest_duplicate;
}

}  // namespace

Status inline_producers(Schedule& schedule, support::function_ref<bool(const Work&)> keep) {
  // Each pass may make the next possible; the number of blocks bounds them.
  std::set<std::string> kept;
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<Work> list = works(schedule.function());
    for (const Work& work : list) {
      const std::string& name = work.block().name;
      if (work.is_output || work.reduces() || kept.count(name) || keep(work)) continue;
      if (duplicates_too_much(list, work)) {
        kept.insert(name);
        continue;
      }
      const BlockRV block = TRY(handle(schedule, work));
      Schedule attempt = schedule;
      const auto consumers = TRY(attempt.get_consumers(block));
      if (consumers.empty() || (is_costly(work.block()) && consumers.size() > 1) || !attempt.compute_inline(block)) {
        kept.insert(name);
        continue;
      }
      schedule = std::move(attempt);
      changed = true;
      break;
    }
  }
  return support::success();
}

Result<std::optional<std::vector<std::string>>> split_filled_sides(Schedule& schedule, BlockRV block) {
  Schedule attempt = schedule;
  const auto sides = attempt.split_padding(block);
  std::optional<std::vector<std::string>> names;
  if (!sides) return names;
  names.emplace();
  for (const BlockRV& side : *sides) {
    const Ref<Block> node = TRY(attempt.get(side));
    if (!buffers_read(node->body).empty()) return std::optional<std::vector<std::string>>();
    names->push_back(node->name);
  }
  schedule = std::move(attempt);
  return names;
}

Result<ExprRV> decide(Schedule& schedule, const RuleContext& context, std::string_view rule, std::string_view name,
                      std::vector<int64_t> candidates, int64_t preferred) {
  DecisionPoint point{std::string(rule), std::string(name), schedule.func_working_on(), std::move(candidates),
                      preferred};
  std::sort(point.candidates.begin(), point.candidates.end());
  int64_t closest = point.candidates.front();
  for (const int64_t candidate : point.candidates)
    if (std::abs(candidate - preferred) < std::abs(closest - preferred)) closest = candidate;
  point.preferred = closest;
  return schedule.decide(context.decider, point);
}

namespace {

// Whether the block computes with where it is along the loop: a mask by the numbers of rows and columns.
bool computes_with(const Work& work, const For& loop) {
  std::vector<Var> moving;
  for (size_t i = 0; i < work.realize->iter_values.size(); ++i)
    if (uses_var(work.realize->iter_values[i], loop.loop_var)) moving.push_back(work.block().iter_vars[i]->var);
  const auto* store = work.block().body.as<BufferStore>();
  if (!store) return false;
  bool found = false;
  pre_order(store->value, [&](const NodeRef& n) {
    if (n.is<BufferLoad>()) return false;
    for (const Var& var : moving) found = found || n.get() == var.get();
    return !found;
  });
  return found;
}

// How many of the innermost loops walk every buffer as one row: each access either does not move with them, or moves
// through its last dimensions whole.
size_t contiguous_suffix(const PrimFunc& function, const Work& work) {
  constexpr int64_t shortest_row = 16;
  const size_t count = work.loops.size();
  std::vector<const Access*> mine;
  const std::vector<Access> all = accesses(function.body);
  for (const Access& access : all)
    if (access.block == &work.block()) mine.push_back(&access);
  size_t suffix = 1;
  for (; suffix < count; ++suffix) {
    // May loop `outer` join those inside it? Its stride must be theirs times their extents.
    const For& outer = *work.loops[count - suffix - 1];
    const For& inner = *work.loops[count - suffix];
    if (outer.body.get() != &inner) break;
    // Of rows as one their numbers are quotients and remainders.
    const auto row = constant_product({work.loops.end() - static_cast<ptrdiff_t>(suffix), work.loops.end()});
    if (row.value_or(shortest_row) >= shortest_row && (computes_with(work, outer) || computes_with(work, inner))) break;
    bool joins = true;
    for (const Access* access : mine) {
      bool still_inner = true, still_outer = true;
      for (const Range& range : access->region) {
        still_inner = still_inner && !uses_var(range.min, inner.loop_var);
        still_outer = still_outer && !uses_var(range.min, outer.loop_var);
      }
      if (still_inner && still_outer) continue;
      // The outer loop's dimension comes right before the inner's, and the inner's is walked whole.
      bool row = false;
      for (size_t d = 0; d + 1 < access->region.size(); ++d)
        row = row ||
              (access->region[d].min == Expr(outer.loop_var) && access->region[d + 1].min == Expr(inner.loop_var) &&
               same(access->buffer->shape[d + 1], inner.extent));
      bool once = true;
      for (const Range& range : access->region)
        if (!(range.min == Expr(outer.loop_var)) && !(range.min == Expr(inner.loop_var)))
          once = once && !uses_var(range.min, outer.loop_var) && !uses_var(range.min, inner.loop_var);
      joins = joins && row && once && access->buffer->strides.empty();
    }
    if (!joins) break;
  }
  return suffix;
}

}  // namespace

Status vectorize_by(Schedule& schedule, LoopRV loop, int64_t together, int64_t lanes) {
  const auto extent = as_int(TRY(schedule.get(loop))->extent);
  if (extent && *extent < lanes) {
    if (2 * *extent < lanes) return support::success();
    // A vector that fills no register is read and written under a mask, or in two pieces where these need none: what is
    // written under a mask waits where the next row is read behind it.
    const int64_t half = lanes / 2, rest = *extent - half;
    if (rest == 0 || !std::has_single_bit(static_cast<uint64_t>(rest))) return schedule.vectorize(loop);
    const std::vector<LoopRV> pieces = TRY(schedule.peel(loop, half));
    TRY(schedule.vectorize(pieces[0]));
    return rest > 1 ? schedule.vectorize(pieces[1]) : support::success();
  }
  if (extent && *extent < together) together = lanes;
  const std::vector<LoopRV> parts = TRY(schedule.peel(loop, together));
  TRY(schedule.vectorize(TRY(schedule.split(parts[0], {Factor(), together}))[1]));
  if (parts.size() == 1 || (together == lanes && !extent)) return support::success();
  if (extent && *extent % together < lanes)
    return *extent % together > 1 ? schedule.vectorize(parts[1]) : support::success();
  return vectorize_by(schedule, parts[1], lanes, lanes);
}

bool try_parallel(Schedule& schedule, const std::vector<LoopRV>& loops) {
  if (loops.empty()) return false;
  Schedule attempt = schedule;
  const Result<LoopRV> fused = loops.size() > 1 ? attempt.fuse(loops) : Result<LoopRV>(loops[0]);
  if (!fused.ok() || !attempt.parallel(*fused)) return false;
  schedule = std::move(attempt);
  return true;
}

namespace {

// The extent of the innermost loop, where that is short and the block puts rows into each other: it writes one row by
// the two innermost loops, and reads as many. Rows are read whole and shuffled (codegen/llvm/memory). 1 where it does
// not.
int64_t interleaved_rows(const PrimFunc& function, const Work& work) {
  constexpr int64_t most = 4;
  if (work.loops.size() < 2) return 1;
  const For &last = *work.loops.back(), &next = *work.loops[work.loops.size() - 2];
  const auto rows = as_int(last.extent);
  if (!rows || *rows < 2 || *rows > most || next.body.get() != &last) return 1;
  for (const Access& access : accesses(function.body)) {
    if (access.block != &work.block()) continue;
    const auto across = stride_of(access, last), along = stride_of(access, next);
    if (!along) return 1;
    const bool is_one_row = across == 1 && *along == *rows, is_same = across == 0 && *along == 0;
    if (access.writes ? !is_one_row : !(is_one_row || is_same || *along == 1)) return 1;
  }
  return *rows;
}

// Rows of a length that is not known, put into each other: whole vectors of each together, then what is left.
Status interleave_unknown(Schedule& schedule, const std::vector<LoopRV>& loops, int64_t lanes, bool enough) {
  const size_t along = loops.size() - 2;
  const std::vector<LoopRV> parts = TRY(schedule.peel(loops[along], lanes));
  const std::vector<LoopRV> cut = TRY(schedule.split(parts[0], {Factor(), lanes}));
  TRY(schedule.vectorize(TRY(schedule.fuse({cut[1], loops.back()}))));
  const std::vector<LoopRV> outer(loops.begin(), loops.begin() + static_cast<ptrdiff_t>(along));
  if (enough && !outer.empty() && !try_parallel(schedule, outer)) try_parallel(schedule, {outer[0]});
  return support::success();
}

}  // namespace

namespace {

// How an elementwise block goes in vectors.
struct Elements {
  const Work& work;
  bool vectors = false;             // what it reads lies side by side, or is worth gathering
  bool singles = false;             // they are gathered one by one
  bool threads = false;             // there is enough for them
  int64_t lanes = 1, together = 1;  // of a vector, of those that go at once
  int64_t in_short_rows = 1;        // of those that go at once where a row is short
  int64_t own = 1;                  // work of one element
};

// A loop over one vector costs as much as a copy of it, so short rows go by this many at once; long ones, which wait
// for memory, gain nothing by it.
constexpr int64_t vectors_in_short_rows = 4;
constexpr int64_t short_row_vectors = 128;

// How many vectors of the widest elements one of the result's holds, four at most: put together from parts of one it
// takes as many instructions as from whole ones.
int64_t vectors_of_result(const Work& work) {
  const auto* store = work.block().body.as<BufferStore>();
  if (!store) return 1;
  const int64_t bits = std::max<int64_t>(store->buffer->dtype.storage_bits(), 8);
  return std::clamp<int64_t>(widest_bits(work) / bits, 1, 4);
}

bool calls_functions(const Block& block) {
  bool found = false;
  post_order(block.body, [&](const NodeRef& n) {
    const auto* call = n.as<Call>();
    found = found || (call && call->op != &intrinsic::if_then_else);
  });
  return found;
}

// A loop whose elements come one by one, four of them at a time: its own end is asked for as often as it takes to find
// one.
Status by_fours(Schedule& schedule, LoopRV loop) {
  constexpr int64_t together = 4;
  const auto extent = as_int(TRY(schedule.get(loop))->extent);
  if (extent && *extent < 2 * together) return support::success();
  const LoopRV whole = TRY(schedule.peel(loop, together))[0];
  return schedule.unroll(TRY(schedule.split(whole, {Factor(), together}))[1]);
}

// The `suffix` innermost loops as one row in vectors; threads share the loops around it, or where these are few its
// chunks. A refusal where chunks of several loops as one cannot be told apart.
Status vectorize_rows(Schedule& schedule, const RuleContext& context, BlockRV block, const Elements& elements,
                      size_t suffix) {
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const std::vector<const For*>& nodes = elements.work.loops;
  const std::vector<LoopRV> inner(loops.end() - static_cast<ptrdiff_t>(suffix), loops.end());
  std::vector<LoopRV> outer(loops.begin(), loops.end() - static_cast<ptrdiff_t>(suffix));
  LoopRV row = inner.size() > 1 ? TRY(schedule.fuse(inner)) : inner[0];
  const auto length = as_int(TRY(schedule.get(row))->extent);
  const auto rows = constant_product({nodes.begin(), nodes.end() - static_cast<ptrdiff_t>(suffix)});
  const bool split_rows = elements.threads && rows && *rows < 2 * context.target.cores;
  const bool vectors = elements.vectors && (!length || 2 * *length >= elements.lanes);
  const bool is_short = length && *length <= short_row_vectors * elements.lanes;
  const int64_t together = is_short ? elements.in_short_rows : elements.together;
  if (split_rows && !vectors && elements.own > 1) {
    outer.push_back(row);
    if (!try_parallel(schedule, outer)) try_parallel(schedule, {row});
    return support::success();
  }
  if (split_rows && (!length || *length >= 4096)) {
    const ExprRV chunk = TRY(decide(schedule, context, "elementwise", "chunk", {1024, 4096, 16384}, 4096));
    const std::vector<LoopRV> parts = TRY(schedule.peel(row, chunk));
    if (!length || *length >= TRY(schedule.get(chunk))) {
      const std::vector<LoopRV> chunks = TRY(schedule.split(parts[0], {Factor(), chunk}));
      if (!try_parallel(schedule, {chunks[0]}) && suffix > 1)
        return refuse(codes::not_inlinable, "chunks of several loops cannot be told apart");
      if (vectors) TRY(vectorize_by(schedule, chunks[1], together, elements.lanes));
      if (elements.singles) TRY(by_fours(schedule, chunks[1]));
      if (parts.size() == 1) return support::success();
      row = parts[1];
    }
  } else if (!outer.empty() && elements.threads) {
    // All the outer loops as one, or the outermost where the iterations of that cannot be told apart.
    if (!try_parallel(schedule, outer)) try_parallel(schedule, {outer[0]});
  }
  if (vectors) return vectorize_by(schedule, row, together, elements.lanes);
  return elements.singles ? by_fours(schedule, row) : support::success();
}

// How the block's accesses walk along its innermost loop.
struct Walk {
  bool in_steps = false;      // some by more than one element
  bool in_far_steps = false;  // more than a vector's elements are taken from a few whole vectors
};

Walk walk_of(const PrimFunc& function, const Work& work) {
  Walk walk;
  const int64_t near = is_conditional(work.block()) ? 1 : largest_near_stride;
  for (const Access& access : accesses(function.body)) {
    if (access.block != &work.block()) continue;
    const auto stride = stride_of(access, *work.loops.back());
    walk.in_steps = walk.in_steps || !stride || (*stride != 0 && *stride != 1);
    walk.in_far_steps = walk.in_far_steps || !stride || *stride < 0 || *stride > (access.writes ? 1 : near);
  }
  return walk;
}

// A block that reads in steps what lies side by side along another loop: rows that lie in each other, or a transpose.
// Whether it was one.
Result<bool> turn(Schedule& schedule, const RuleContext& context, BlockRV block, const Work& work, bool threads) {
  const int64_t lanes = context.target.lanes(widest_bits(work.block()));
  const auto crossing = crossing_loop(schedule.function(), work, lanes);
  const auto rows = crossing || lanes < 2 ? std::nullopt : interleaved_loop(schedule.function(), work);
  if (!crossing && !rows) return false;
  Schedule attempt = schedule;
  const Status done = crossing ? tile_crossing(attempt, context, block, *crossing, lanes, threads)
                               : pull_apart(attempt, context, block, *rows, lanes, threads);
  if (done.ok()) schedule = std::move(attempt);
  return done.ok();
}

}  // namespace

Status vectorize_elementwise(Schedule& schedule, const RuleContext& context, BlockRV block, bool threads) {
  const Ref<Block> node = TRY(schedule.get(block));
  const std::vector<Work> list = works(schedule.function());
  const Work* work = find(list, node->name);
  if (!work || work->loops.empty()) return support::success();
  const auto total = constant_product(work->loops);
  if (total == 0) return support::success();
  Elements elements{*work};
  elements.own = work_of_instance(*node);
  elements.threads = threads && are_enough(total, elements.own);
  const int64_t interleaved = interleaved_rows(schedule.function(), *work);
  const Walk walk = interleaved > 1 ? Walk() : walk_of(schedule.function(), *work);
  if (walk.in_steps && TRY(turn(schedule, context, block, *work, elements.threads))) return support::success();
  const int64_t lanes = context.target.lanes(interleaved > 1 ? widest_bits(*node) : widest_bits(*work));
  elements.lanes = lanes * interleaved;
  elements.together =
      elements.lanes * std::max(vectors_together(*node), interleaved > 1 ? 1 : vectors_of_result(*work));
  elements.in_short_rows =
      interleaved > 1 || calls_functions(*node) ? elements.together : elements.lanes * vectors_in_short_rows;
  // Gathering costs what it saves, unless there is much to do with what was gathered.
  elements.vectors = elements.lanes > 1 && (!walk.in_far_steps || is_costly(*node));
  elements.singles = !elements.vectors && gathers(*work);
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  if (interleaved > 1 && !as_int(work->loops[loops.size() - 2]->extent))
    return interleave_unknown(schedule, loops, lanes, elements.threads);
  size_t suffix = interleaved > 1 ? 2 : contiguous_suffix(schedule.function(), *work);
  if (interleaved == 1 && suffix > 1) {
    Schedule attempt = schedule;
    if (vectorize_rows(attempt, context, block, elements, suffix)) {
      schedule = std::move(attempt);
      return support::success();
    }
    suffix = 1;
  }
  return vectorize_rows(schedule, context, block, elements, suffix);
}

bool walks_rows(const PrimFunc& function, const Work& work) {
  if (work.loops.empty()) return false;
  for (const Access& access : accesses(function.body)) {
    if (access.block != &work.block()) continue;
    const auto stride = stride_of(access, *work.loops.back());
    if (!stride || *stride < 0 || *stride > 1 || (access.writes && *stride != 1)) return false;
  }
  return true;
}

bool has_other_ends(const Work& work) {
  const Call* choice = choice_of(work.block());
  if (!choice || work.loops.empty()) return false;
  bool reads = false;
  post_order(choice->args[2], [&](const NodeRef& n) { reads = reads || n.is<BufferLoad>(); });
  return reads && !walks_rows(*work.function, work);
}

Status vectorize_innermost(Schedule& schedule, const RuleContext& context, const Work& work) {
  const BlockRV block = TRY(handle(schedule, work));
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const int64_t lanes = context.target.lanes(widest_bits(work));
  if (lanes < 2) return support::success();
  return vectorize_by(schedule, loops.back(), lanes * vectors_together(work.block()), lanes);
}

Status parallelize_outer(Schedule& schedule, BlockRV block, int64_t work_an_instance) {
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  std::vector<const For*> nodes;
  std::vector<Ref<For>> kept;
  for (const LoopRV& loop : loops) kept.push_back(TRY(schedule.get(loop)));
  for (const Ref<For>& loop : kept) nodes.push_back(loop.get());
  const int64_t work = work_an_instance * work_of_instance(*TRY(schedule.get(block)));
  if (!are_enough(constant_product(nodes), work)) return support::success();
  // As many loops from the outermost as are free of dependences and make one nest, until there is enough to share.
  size_t count = 0;
  int64_t iterations = 1;
  while (count < kept.size() && kept[count]->kind == ForKind::serial &&
         (count == 0 || kept[count - 1]->body.get() == kept[count].get()) &&
         carried_by(*kept[count], schedule.function(), schedule.proofs()).empty() && iterations < 64) {
    iterations *= std::max<int64_t>(as_int(kept[count]->extent).value_or(64), 1);
    ++count;
  }
  if (count == 0 || iterations < 2) return support::success();
  const std::vector<LoopRV> chosen(loops.begin(), loops.begin() + static_cast<ptrdiff_t>(count));
  return schedule.parallel(count > 1 ? TRY(schedule.fuse(chosen)) : chosen[0]);
}

}  // namespace lathe::schedule
