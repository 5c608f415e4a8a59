// rolling_buffer: of what a loop's iterations need of an intermediate, much was computed for the one before. Only what
// is new is computed, into memory that goes round: as long as one iteration needs, the oldest part overwritten.
//
// The loops r … m around the block and its readers (m the innermost) may each shift one dimension of the part that an
// iteration needs: dimension d(j) is [low(j), low(j) + width(j) - 1], low growing by step(j). The outermost loop with
// width > step is rolled: dimension d(r) is kept modulo its width. An element is new where, for every j with
// width > step, the loop is in its first iteration or the element is in the last `step` of its dimension.
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "schedule/primitives/compute/steady.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(rolling_buffer_skips_new, "schedule_test", "rolling_buffer: one element that is new is not computed");
LATHE_FAULT(rolling_buffer_turns_early, "schedule_test", "rolling_buffer: the memory is one element too short");

namespace {

// A dimension that the loop shifts.
struct Rolled {
  const For* loop;
  size_t dimension;
  int64_t width, step;
};

bool mentions_loop(const Expr& e, const For& loop) { return uses_var(e, loop.loop_var); }

// The dimensions that the loops shift, that of the first loop first; nothing where they do not do it one by one, or the
// first does not leave a part of it for its next iteration.
std::optional<std::vector<Rolled>> rolled_by(std::span<const For* const> loops, const Region& region) {
  std::vector<Rolled> result;
  std::vector<bool> taken(loops.size());
  for (size_t d = 0; d < region.dimensions.size(); ++d) {
    const Interval& part = region.dimensions[d];
    std::optional<size_t> by;
    for (size_t j = 0; j < loops.size(); ++j) {
      if (!mentions_loop(part.low, *loops[j]) && !mentions_loop(part.high, *loops[j])) continue;
      if (by || taken[j]) return std::nullopt;
      by = j;
    }
    if (!by) continue;
    taken[*by] = true;
    const auto gap = difference(part.high, part.low);
    Linear low = linear(part.low);
    const Linear moving = low.extract([&](const Expr& atom) { return atom == Expr(loops[*by]->loop_var); });
    if (!gap || moving.terms.size() != 1 || moving.terms[0].coefficient <= 0 || mentions_loop(low.expr(), *loops[*by]))
      return std::nullopt;
    result.push_back({loops[*by], d, *gap + 1, moving.terms[0].coefficient});
  }
  std::sort(result.begin(), result.end(), [&](const Rolled& a, const Rolled& b) {
    return std::find(loops.begin(), loops.end(), a.loop) < std::find(loops.begin(), loops.end(), b.loop);
  });
  if (result.empty() || result[0].loop != loops[0] || result[0].width <= result[0].step) return std::nullopt;
  std::erase_if(result, [](const Rolled& one) { return one.width <= one.step; });
  return result;
}

AccessList written_by(const std::vector<Access>& all, const Buffer& buffer, const Block& block) {
  AccessList list;
  for (const Access& access : all)
    if (access.writes && access.buffer == buffer && is_inside(access.block, block)) list.push_back(&access);
  return list;
}

}  // namespace

Result<Edit> rolling_buffer(const Program& program, Id id, int64_t index) {
  const Path path = TRY(block_path(program, id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  const Buffer buffer = TRY(buffer_of(path, {.writes = true, .number = index}));
  if (auto refused = refuse_fixed(*program.function, buffer, "roll")) return *std::move(refused);
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot roll '{}', which {} writes: {}", buffer->name, name_of(block), why));
  };

  // One block writes it; the others read what it wrote in the same iteration of one loop.
  const std::vector<Access> all = accesses(program.function->body);
  const AccessList own = written_by(all, buffer, block), others = accesses_of_others(all, buffer, block);
  std::optional<size_t> around;
  for (const Access* access : others) {
    if (is_inside(access->block, block)) continue;
    const std::string who = access->block ? name_of(*access->block) : "a statement outside blocks";
    if (access->writes) return problem(codes::dependence, fmt::format("{} writes it too", who));
    if (access->order < own.back()->order) return problem(codes::dependence, fmt::format("{} reads it before", who));
    const size_t count = shared_loops(*own[0], *access);
    if (around && *around != count) return problem(codes::region, "its readers are in different loops");
    around = count;
  }
  if (!around) return problem(codes::region, "nothing reads it");
  std::vector<const For*> loops = loops_above(path);
  const std::vector<const For*> both(own[0]->loops.begin(), own[0]->loops.begin() + static_cast<ptrdiff_t>(*around));
  std::erase_if(loops, [&](const For* loop) { return std::find(both.begin(), both.end(), loop) == both.end(); });
  if (loops.empty()) return problem(codes::not_nested, "no loop is around it and its readers");

  // What one iteration writes, and which loop leaves a part of that for its next.
  const auto is_own = [&](const Access& a) { return a.writes && a.buffer == buffer && is_inside(a.block, block); };
  const auto is_other = [&](const Access& a) { return !a.writes && a.buffer == buffer && !is_inside(a.block, block); };
  const auto region = touched(all, is_own, both), needed = touched(all, is_other, both);
  if (!region || !needed || (program.proves && !region->exact))
    return problem(codes::region, "which part of it an iteration writes could not be told");
  std::optional<std::vector<Rolled>> rolled;
  size_t first = 0;
  for (; first < loops.size() && !rolled; ++first) rolled = rolled_by(std::span(loops).subspan(first), *region);
  if (!rolled)
    return problem(codes::region,
                   "no iteration of a loop around it and its readers needs a part of what the one before "
                   "needed, at a constant distance in one dimension");
  const For& loop = *rolled->front().loop;
  for (size_t i = first - 1; i < loops.size(); ++i)
    if (loops[i]->kind != ForKind::serial && loops[i]->kind != ForKind::unrolled)
      return problem(codes::loop_kind, fmt::format("{} is {}", name_of(*loops[i]), kind_name(loops[i]->kind)));
  for (const Access* write : own)
    for (const Rolled& one : *rolled) {
      const Expr &at = write->region[one.dimension].min, &first_at = own[0]->region[one.dimension].min;
      const std::vector<const For*> outside = loops_above(path);
      for (const For* inner : write->loops)
        if (mentions_loop(at, *inner) && std::find(outside.begin(), outside.end(), inner) == outside.end() &&
            std::find(both.begin(), both.end(), inner) == both.end())
          return problem(codes::region, "an instance of the block writes several elements along the dimension");
      if (!same(at, first_at)) return problem(codes::region, "the block writes at several places");
    }
  if (program.proves) {
    if (!holds(*region, *needed, both))
      return problem(codes::region, "more is read in an iteration than is written in it");
    if (auto why = Steadiness(program, loop, all).of_block(path, both)) return problem(codes::dependence, *why);
  }

  // Only what is new, in memory that goes round.
  Expr fresh = boolean(true);
  for (const Rolled& one : *rolled) {
    const Expr& low = region->dimensions[one.dimension].low;
    const Expr offset = Linear(linear(own[0]->region[one.dimension].min - low)).expr();
    const int64_t old = one.width - one.step + (support::flip(rolling_buffer_skips_new) ? 1 : 0);
    fresh = logical_and(fresh, logical_or(eq(one.loop->loop_var, one.loop->min), offset >= old));
  }
  const Stmt computed = with(realized, [&](BlockRealize& copy) {
    copy.predicate = is_int(copy.predicate, 1) ? fresh : logical_and(copy.predicate, fresh);
  });
  Stmt body = replace(program.function->body, path.back(), computed);
  const Rolled& turning = rolled->front();
  const auto extent = as_int(buffer->shape[turning.dimension]);
  if (!extent || *extent > turning.width) {
    const int64_t length = turning.width - (support::flip(rolling_buffer_turns_early) ? 1 : 0);
    IndexMap map;
    for (size_t d = 0; d < buffer->shape.size(); ++d) {
      map.from.push_back(var(fmt::format("i{}", d)));
      map.to.push_back(d == turning.dimension ? floormod(map.from[d], int64(length)) : Expr(map.from[d]));
    }
    const Buffer round = with(*buffer, [&](BufferNode& copy) {
      copy.shape[turning.dimension] = int64(length);
      copy.axis_separators.clear();
    });
    body = with_layout(body, buffer, round, map);
  }
  const Function after = with_body(program.function, body);
  const Path to_loop = path_to(program.function->body, loop.id);
  if (auto refused = refuse_parallel_above(program, after, to_loop, "roll a buffer")) return *std::move(refused);
  return edited(program, after, program.next);
}

}  // namespace lathe::schedule::primitives
