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

// How many loops two accesses share.
size_t shared(const Access& a, const Access& b) {
  size_t count = 0;
  while (count < a.loops.size() && count < b.loops.size() && a.loops[count] == b.loops[count]) ++count;
  return count;
}

AccessList written_by(const std::vector<Access>& all, const Buffer& buffer, const Block& block) {
  AccessList list;
  for (const Access& access : all)
    if (access.writes && access.buffer == buffer && is_inside(access.block, block)) list.push_back(&access);
  return list;
}

// Whether what a block computes for an element is the same in every iteration of a loop.
class Steadiness {
 public:
  Steadiness(const Program& program, const For& loop, const std::vector<Access>& all)
      : program_(program), loop_(loop), all_(all) {}

  // Why it is not, for the block at the path's end; `reader` is inside of the loops in which it has to be complete.
  std::optional<std::string> problem(const Path& path, const std::vector<const For*>& complete_in) {
    const auto& realized = *path.back().as<BlockRealize>();
    const Block& block = *realized.block;
    if (std::find(seen_.begin(), seen_.end(), &block) != seen_.end()) return std::nullopt;
    seen_.push_back(&block);
    const std::string name = name_of(block);
    if (effect_in(path.back())) return fmt::format("{} has effects", name);
    if (!predicate_is_domain(realized))
      return fmt::format("the predicate of {} does more than to bound its variables", name);
    for (const For* loop : loops_above(path))
      if (uses_var(Stmt(realized.block), loop->loop_var))
        return fmt::format("{} uses the variable of {} itself", name, name_of(*loop));
    if (instances_that_meet(*program_.function, path, &loop_))
      return fmt::format("instances of {} with other variables may write one element", name);
    const std::vector<Buffer> written = buffers_written(path.back());
    const auto is_written = [&](const Buffer& b) {
      return std::find(written.begin(), written.end(), b) != written.end();
    };
    for (size_t i = 0; i < block.iter_vars.size(); ++i)
      for (const For* loop : complete_in)
        if (block.iter_vars[i]->type != IterType::spatial && mentions_loop(realized.iter_values[i], *loop))
          return fmt::format("the reduction of {} is not complete in an iteration of {}", name, name_of(*loop));
    for (const Access& read : all_) {
      if (read.writes || !is_inside(read.block, block)) continue;
      if (read.opaque) return fmt::format("{} takes the address of a buffer", name);
      const Block* allocates = allocating_block(*program_.function, read.buffer);
      if (allocates && is_inside(allocates, block)) continue;
      if (is_written(read.buffer)) {
        if (!updates_own_element(block) || !block.init)
          return fmt::format("{} reads '{}', which it writes", name, read.buffer->name);
        continue;
      }
      if (auto why = changes(read)) return why;
    }
    return std::nullopt;
  }

 private:
  // Why the element read may have other values in other iterations.
  std::optional<std::string> changes(const Access& read) {
    const Access* inside = nullptr;
    bool several = false, outside = false;
    for (const Access& write : all_) {
      if (!write.writes || write.buffer != read.buffer) continue;
      const bool within = std::find(write.loops.begin(), write.loops.end(), &loop_) != write.loops.end();
      outside = outside || !within;
      if (within) several = several || (inside && inside->block != write.block);
      if (within) inside = &write;
    }
    if (!inside) return std::nullopt;
    const auto problem = [&](std::string_view why) {
      return fmt::format("'{}', which {} reads, {}", read.buffer->name, name_of(*read.block), why);
    };
    if (several || outside || !inside->block || inside->opaque) return problem("is written by several statements");
    const Path path = path_to(program_.function->body, inside->block->id);
    const std::vector<const For*> own = loops_above(path);
    if (std::find(own.begin(), own.end(), &loop_) == own.end()) return problem("is written in another scope");
    if (inside->order > read.order) return problem("is written after it");
    const std::vector<const For*> both(read.loops.begin(),
                                       read.loops.begin() + static_cast<ptrdiff_t>(shared(*inside, read)));
    const auto region_of_write = touched(all_, [&](const Access& a) { return &a == inside; }, both);
    const auto region_of_read = touched(all_, [&](const Access& a) { return &a == &read; }, both);
    if (!region_of_write || !region_of_read || !region_of_write->exact || !holds(*region_of_write, *region_of_read))
      return problem("was not all written in the same iteration");
    return this->problem(path, both);
  }

  const Program& program_;
  const For& loop_;
  const std::vector<Access>& all_;
  std::vector<const Block*> seen_;
};

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
    const size_t count = shared(*own[0], *access);
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
    if (!holds(*region, *needed)) return problem(codes::region, "more is read in an iteration than is written in it");
    if (auto why = Steadiness(program, loop, all).problem(path, both)) return problem(codes::dependence, *why);
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
