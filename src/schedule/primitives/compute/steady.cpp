#include "schedule/primitives/compute/steady.h"

#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"

namespace lathe::schedule {

size_t shared_loops(const Access& a, const Access& b) {
  size_t count = 0;
  while (count < a.loops.size() && count < b.loops.size() && a.loops[count] == b.loops[count]) ++count;
  return count;
}

std::optional<std::string> Steadiness::of_block(const Path& path, const std::vector<const For*>& complete_in) {
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  if (std::find(seen_.begin(), seen_.end(), &block) != seen_.end()) return std::nullopt;
  seen_.push_back(&block);
  const std::string name = name_of(block);
  if (effect_in(path.back())) return fmt::format("{} has effects", name);
  if (!predicate_is_domain(path)) return fmt::format("the predicate of {} does more than to bound its variables", name);
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
      if (block.iter_vars[i]->type != IterType::spatial && !is_int(loop->extent, 1) &&
          uses_var(realized.iter_values[i], loop->loop_var))
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
    if (auto why = of_read(read)) return why;
  }
  return std::nullopt;
}

std::optional<std::string> Steadiness::of_read(const Access& read) {
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
                                     read.loops.begin() + static_cast<ptrdiff_t>(shared_loops(*inside, read)));
  const auto region_of_write = touched(all_, [&](const Access& a) { return &a == inside; }, both);
  const auto region_of_read = touched(all_, [&](const Access& a) { return &a == &read; }, both);
  if (!region_of_write || !region_of_read || !region_of_write->exact || !holds(*region_of_write, *region_of_read, both))
    return problem("was not all written in the same iteration");
  return of_block(path, both);
}

}  // namespace lathe::schedule
