// stencil: elementwise blocks that read windows of what is before them, as resampling does: several elements for each
// of their own, or elements at a fraction of their place. What is read in windows is kept, a row (or a plane) of it at
// a time beside the row that reads it; rows run in vectors whose lanes read at constant distances from one element.
#include <map>
#include <numeric>

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "schedule/rules/nest/work.h"

namespace lathe::schedule {

namespace {

// A loop is written out for up to so many vectors until its lanes read at the same distances again.
constexpr int64_t most_vectors = 8;

// The indices of the block's accesses, in loop variables.
std::vector<Access> accesses_of(const PrimFunc& function, const Block& block) {
  std::vector<Access> mine;
  for (Access& access : accesses(function.body))
    if (access.block == &block) mine.push_back(std::move(access));
  return mine;
}

// How one row of a block walks memory.
struct Row {
  int64_t period = 1;          // after so many iterations every index has moved by a constant
  int64_t begin = 0, end = 0;  // iterations between which no index is held back at an edge; 0, 0: not known
  bool divides = false;        // whether some index is a fraction of the iteration
  bool gathers = false;        // whether some index comes from memory
};

bool uses(const Expr& e, const For& loop) { return uses_var(e, loop.loop_var); }

// The index without the bounds that hold it inside.
Expr unbounded(const Expr& e, const For& loop) {
  if (const auto* n = e.as<Min>()) return unbounded(uses(n->a, loop) ? n->a : n->b, loop);
  if (const auto* n = e.as<Max>()) return unbounded(uses(n->a, loop) ? n->a : n->b, loop);
  return e;
}

std::optional<int64_t> value_at(const Expr& e, const For& loop, int64_t at) {
  arith::Analyzer analyzer;
  return as_int(analyzer.simplify(substitute(e, {{loop.loop_var, int64(at)}})));
}

// Nothing where the loop walks memory in some other way, or is held back at an edge that only the run knows.
std::optional<Row> row_of(const std::vector<Access>& mine, const For& loop) {
  if (!is_int(loop.min, 0)) return std::nullopt;
  const auto extent = as_int(loop.extent);
  Row row;
  row.end = extent.value_or(0);
  for (const Access& access : mine)
    for (size_t d = 0; d < access.region.size(); ++d) {
      const Expr& index = access.region[d].min;
      if (!uses(index, loop)) continue;
      if (d + 1 != access.region.size() || !access.buffer->strides.empty() || !is_int(access.region[d].extent, 1))
        return std::nullopt;
      if (access.writes && !(index == Expr(loop.loop_var))) return std::nullopt;
      if (reads_memory(index)) {
        row.gathers = true;
        continue;
      }
      // What is between the bounds has a period, and the bounds let it pass from some iteration to some other.
      const Expr inside = unbounded(index, loop);
      int64_t period = 1;
      bool known = true;
      post_order(inside, [&](const NodeRef& n) {
        const auto* division = n.as<FloorDiv>();
        const auto* remainder = n.as<FloorMod>();
        if (n.is<Min>() || n.is<Max>()) known = false;
        if (!division && !remainder) return;
        const Expr& divisor = division ? division->b : remainder->b;
        const auto by = as_int(divisor);
        if (by && *by > 0 && *by <= 64) period = std::lcm(period, *by);
        known = known && by && *by > 0 && *by <= 64;
      });
      arith::Analyzer analyzer;
      const Expr moved = substitute(inside, {{loop.loop_var, Expr(loop.loop_var) + period}});
      const auto step = known ? as_int(analyzer.simplify(moved - inside)) : std::nullopt;
      if (!step || *step < 0 || *step > 4 * period) return std::nullopt;
      row.divides = row.divides || period > 1 || *step > 1;
      row.period = std::lcm(row.period, period);
      if (inside == index) continue;
      if (!extent) return std::nullopt;
      const auto passes = [&](int64_t at) {
        const auto a = value_at(index, loop, at), b = value_at(inside, loop, at);
        return a && b && *a == *b;
      };
      while (row.begin < row.end && !passes(row.begin)) ++row.begin;
      while (row.end > row.begin && !passes(row.end - 1)) --row.end;
    }
  return row;
}

// Whether `consumer` reads more than one element of the buffer for each of its own, or other than the one at its place.
// `axis` is the first dimension in which it does.
std::optional<size_t> window_axis(const std::vector<Access>& mine, const Buffer& buffer) {
  const Access* first = nullptr;
  std::optional<size_t> axis;
  for (const Access& access : mine) {
    if (access.writes || access.buffer != buffer) continue;
    for (size_t d = 0; d < access.region.size(); ++d) {
      const Expr& index = access.region[d].min;
      const bool moves = first && !same(index, first->region[d].min);
      const bool plain = index.is<VarNode>() || std::none_of(access.loops.begin(), access.loops.end(),
                                                             [&](const For* loop) { return uses(index, *loop); });
      if ((moves || !plain) && (!axis || d < *axis)) axis = d;
    }
    if (!first) first = &access;
  }
  return axis;
}

bool same_place(const Access& a, const Access& b) {
  return std::equal(a.region.begin(), a.region.end(), b.region.begin(), b.region.end(),
                    [](const Range& x, const Range& y) { return same(x.min, y.min); });
}

// Whether a block but `writer` reads several elements of the buffer, or of any where it is null, for each of its own.
bool is_read_in_windows(const std::vector<Access>& all, const Buffer& buffer, const Block* writer) {
  std::map<std::pair<const Block*, const Node*>, const Access*> first;
  for (const Access& access : all) {
    if (access.writes || access.block == writer || (buffer && access.buffer != buffer)) continue;
    const auto [at, fresh] = first.try_emplace({access.block, access.buffer.get()}, &access);
    if (!fresh && !same_place(*at->second, access)) return true;
  }
  return false;
}

// Whether every element is at the place of variables: then no block reads windows or fractions, whatever is inlined.
bool is_all_in_place(const std::vector<Access>& all) {
  for (const Access& access : all)
    for (const Range& range : access.region)
      if (!as_int(range.min) && !range.min.is<VarNode>()) return false;
  return !is_read_in_windows(all, {}, nullptr);
}

// The loop in vectors; those left over are one vector of fewer lanes.
Status in_vectors(Schedule& schedule, LoopRV loop, int64_t lanes, int64_t period) {
  const int64_t chunk = std::lcm(lanes, period);
  const std::vector<LoopRV> parts = TRY(schedule.peel(loop, chunk));
  for (const LoopRV& part : parts) {
    const auto known = as_int(TRY(schedule.get(part))->extent);
    if (!known && !(part == parts[0])) continue;  // a rest of unknown length comes one by one
    const int64_t extent = known.value_or(chunk);
    if (extent >= chunk) {
      const std::vector<LoopRV> cut = TRY(schedule.split(part, {Factor(), Factor(chunk / lanes), Factor(lanes)}));
      TRY(schedule.unroll(cut[1]));
      TRY(schedule.vectorize(cut[2]));
      continue;
    }
    const std::vector<LoopRV> rest = TRY(schedule.peel(part, lanes));
    if (extent >= lanes) {
      const std::vector<LoopRV> cut = TRY(schedule.split(rest[0], {Factor(), Factor(lanes)}));
      TRY(schedule.unroll(cut[0]));
      TRY(schedule.vectorize(cut[1]));
    }
    if (extent % lanes > 1) TRY(schedule.vectorize(rest.back()));
  }
  return support::success();
}

// The innermost loop of the block in vectors, apart from the iterations that are held back at an edge.
Status vectorize_row(Schedule& schedule, const RuleContext& context, const std::string& name) {
  const std::vector<Work> list = works(schedule.function());
  const Work& work = *find(list, name);
  if (work.loops.empty()) return support::success();
  const std::vector<Access> mine = accesses_of(schedule.function(), work.block());
  const int64_t lanes = context.target.lanes(widest_bits(work));
  const auto row = row_of(mine, *work.loops.back());
  if (!row || lanes < 2) {
    if (walks_rows(schedule.function(), work)) return vectorize_innermost(schedule, context, work);
    return support::success();
  }
  if (std::lcm(lanes, row->period) > most_vectors * lanes) return support::success();
  const int64_t extent = as_int(work.loops.back()->extent).value_or(0);
  if (as_int(work.loops.back()->extent) && row->end - row->begin < lanes / 2) return support::success();
  LoopRV inside = TRY(schedule.get_loops(TRY(handle(schedule, work)))).back();
  if (row->begin > 0 || row->end < extent) {
    std::vector<Factor> parts;
    for (const int64_t part : {row->begin, row->end - row->begin, extent - row->end})
      if (part > 0) parts.emplace_back(part);
    inside = TRY(schedule.loop_partition(inside, parts))[row->begin > 0 ? 1 : 0];
  }
  return in_vectors(schedule, inside, lanes, row->period);
}

}  // namespace

Result<Outcome> stencil(Schedule& schedule, const RuleContext& context) {
  const std::vector<Work> before = works(schedule.function());
  if (before.empty()) return Outcome("the function has no blocks");
  size_t outputs = 0;
  for (const Work& work : before) {
    const std::string& name = work.block().name;
    if (work.reduces()) return Outcome(fmt::format("block '{}' is a reduction", name));
    if (has_effects(work.block())) return Outcome(fmt::format("block '{}' has effects", name));
    for (const IterVar& iter : work.block().iter_vars)
      if (iter->type != IterType::spatial)
        return Outcome(fmt::format("axis '{}' of block '{}' is not spatial", iter->var->name, name));
    outputs += work.is_output;
  }
  if (outputs != 1) return Outcome("the function has several results");
  constexpr const char* no_windows = "no block reads windows of another";
  // Most functions end here, before anything is inlined.
  if (is_all_in_place(accesses(schedule.function().body))) return Outcome(no_windows);
  TRY(inline_producers(schedule, [&](const Work& work) {
    const std::vector<Buffer> written = buffers_written(work.realize);
    return written.size() == 1 && is_read_in_windows(accesses(schedule.function().body), written[0], &work.block());
  }));
  const std::vector<Work> list = works(schedule.function());
  std::vector<std::string> chain;
  for (const Work& work : list) chain.push_back(work.block().name);
  const Work& last = list.back();
  if (!last.is_output || last.loops.empty()) return Outcome("the result is not computed last");
  if (constant_product(last.loops) == 0) return Outcome("there is nothing to compute");
  const auto row = row_of(accesses_of(schedule.function(), last.block()), *last.loops.back());
  if (chain.size() == 1 && !(row && !row->gathers && row->divides)) return Outcome(no_windows);
  if (chain.size() == 1 && has_other_ends(last)) return Outcome("rows have other elements at their ends");

  // Each block goes where the rows that read it are computed; nothing else reads it.
  const auto total = constant_product(last.loops);
  const bool enough = !total || *total >= parallel_work;  // for threads
  size_t shared = last.loops.size() - 1;  // loops of the result whose iterations are independent of each other
  for (size_t i = chain.size() - 1; i-- > 0;) {
    const std::vector<Work> now = works(schedule.function());
    const Work &producer = *find(now, chain[i]), &consumer = *find(now, chain[i + 1]);
    const std::vector<Buffer> written = buffers_written(producer.realize);
    if (written.size() != 1) return Outcome(fmt::format("block '{}' writes several tensors", chain[i]));
    const std::vector<Access> mine = accesses_of(schedule.function(), consumer.block());
    const auto axis = window_axis(mine, written[0]);
    if (!axis) return Outcome(fmt::format("block '{}' reads no window of '{}'", chain[i + 1], chain[i]));
    size_t at = consumer.loops.size();
    for (const Access& access : mine)
      for (size_t d = *axis; access.buffer == written[0] && d < access.region.size(); ++d)
        for (size_t l = 0; l < at; ++l)
          if (uses(access.region[d].min, *consumer.loops[l])) at = l;
    if (at == 0 || at == consumer.loops.size()) break;
    // A few planes are too few for threads: they share the rows of all planes, one block after the other.
    const auto turns = constant_product({consumer.loops.begin(), consumer.loops.begin() + static_cast<ptrdiff_t>(at)});
    if (context.target.cores > 1 && turns && *turns < 4 * context.target.cores && enough) break;
    const LoopRV loop = TRY(schedule.get_loops(TRY(schedule.get_block(chain[i + 1]))))[at - 1];
    Schedule attempt = schedule;
    if (!attempt.compute_at(TRY(attempt.get_block(chain[i])), loop)) break;
    schedule = std::move(attempt);
    shared = std::min(shared, at);
  }
  const std::vector<LoopRV> outer = TRY(schedule.get_loops(TRY(schedule.get_block(chain.back()))));
  for (const std::string& name : chain) {
    Schedule attempt = schedule;
    if (vectorize_row(attempt, context, name)) schedule = std::move(attempt);
  }
  if (enough) {
    // What is not computed inside the result's loops has its own.
    for (const std::string& name : chain) {
      const BlockRV block = TRY(schedule.get_block(name));
      const LoopRV first = TRY(schedule.get_loops(block)).front();
      if (name != chain.back() && TRY(schedule.get(first))->id != TRY(schedule.get(outer.front()))->id) {
        const auto own = constant_product(find(list, name)->loops);
        Schedule attempt = schedule;
        if ((!own || *own >= parallel_work) && parallelize_outer(attempt, block, parallel_work))
          schedule = std::move(attempt);
      }
    }
    // As many loops as can be one: where extents are not known, those may be fewer.
    for (size_t count = shared; count > 0; --count)
      if (try_parallel(schedule, {outer.begin(), outer.begin() + static_cast<ptrdiff_t>(count)})) break;
  }
  return Outcome();
}

}  // namespace lathe::schedule
