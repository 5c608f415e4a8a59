#include "schedule/rules/tile/apart.h"

#include "schedule/rules/tile/tile_model.h"

namespace lathe::schedule {

namespace {

constexpr int64_t line = target::cache_line_bytes;

// The most lines of `buffer` in one set of the nearest cache that the sums of one element walk; 0 where that is not
// known, or takes long to count.
int64_t meeting_lines(const PrimFunc& function, const Contraction& found, const std::string& buffer) {
  constexpr int64_t most_terms = 1 << 16;
  const std::vector<Work> list = works(function);
  const Work& work = *find(list, found.block);
  const std::vector<Access> all = accesses(function.body);
  const Access* read = nullptr;
  for (const Access& access : all)
    if (access.block == &work.block() && !access.writes && access.buffer->name == buffer) read = &access;
  if (!read) return 0;
  std::vector<int64_t> offsets{0};
  for (const size_t loop : found.reduce) {
    const auto extent = as_int(work.loops[loop]->extent), stride = stride_of(*read, *work.loops[loop]);
    if (!extent || !stride || *extent * static_cast<int64_t>(offsets.size()) > most_terms) return 0;
    const size_t count = offsets.size();
    for (int64_t i = 1; i < *extent; ++i)
      for (size_t k = 0; k < count; ++k) offsets.push_back(offsets[k] + i * *stride);
  }
  std::set<int64_t> lines;
  for (const int64_t offset : offsets) lines.insert(offset * read->buffer->dtype.storage_bits() / 8 / line);
  std::map<int64_t, int64_t> sets;
  int64_t most = 0;
  for (const int64_t each : lines) most = std::max(most, ++sets[each % (way_bytes / line)]);
  return most;
}

}  // namespace

Status set_planes_apart(Schedule& schedule, const TilePlan::Apart& apart) {
  const BlockRV block = TRY(schedule.get_block(apart.block));
  const Ref<Block> node = TRY(schedule.get(block));
  const int64_t elements = line * 8 / buffers_written(node->body).at(0)->dtype.storage_bits();
  return schedule.storage_align(block, 0, static_cast<int64_t>(apart.axis), 2 * elements, elements);
}

std::optional<TilePlan::Apart> planes_to_set_apart(const Schedule& schedule, const Contraction& found,
                                                   const target::Target& target) {
  const std::vector<Work> list = works(schedule.function());
  const auto copy = std::find_if(list.begin(), list.end(), [&](const Work& work) {
    const std::vector<Buffer> written = buffers_written(work.block().body);
    return !work.is_output && work.block().name != found.block && written.size() == 1 && written[0] == found.first;
  });
  if (copy == list.end()) return std::nullopt;
  const int64_t now = meeting_lines(schedule.function(), found, found.first->name);
  if (now <= nearest_ways(target)) return std::nullopt;
  for (size_t axis = 0; axis + 1 < found.first->shape.size(); ++axis) {
    Schedule attempt = schedule;
    const TilePlan::Apart apart{copy->block().name, axis};
    if (!set_planes_apart(attempt, apart)) continue;
    // The outermost axis adds least. Half as many lines at least, or it is for nothing.
    const int64_t lines = meeting_lines(attempt.function(), found, found.first->name);
    if (lines > 0 && 2 * lines <= now) return apart;
  }
  return std::nullopt;
}

}  // namespace lathe::schedule
