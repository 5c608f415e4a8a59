#include "schedule/rules/transposed.h"

namespace lathe::schedule {

std::optional<size_t> crossing_loop(const PrimFunc& function, const Work& work, int64_t lanes) {
  if (lanes < 4 || work.loops.size() < 2) return std::nullopt;
  const For& last = *work.loops.back();
  // An extent that is not known may be long; where it is not, all of it is rest.
  const auto is_short = [&](const For& loop) { return as_int(loop.extent).value_or(lanes) < lanes; };
  if (is_short(last)) return std::nullopt;
  const std::vector<Access> all = accesses(function.body);
  for (size_t l = work.loops.size() - 1; l-- > 0;) {
    const For& loop = *work.loops[l];
    if (is_short(loop)) continue;
    bool crosses = false, fits = true;
    for (const Access& access : all) {
      if (access.block != &work.block()) continue;
      const auto inner = stride_of(access, last);
      fits = fits && inner && (!access.writes || *inner == 1);
      if (!fits) break;
      if (*inner == 0 || *inner == 1) continue;
      crosses = true;
      fits = stride_of(access, loop) == 1;
    }
    if (fits && crosses) return l;
  }
  return std::nullopt;
}

Status tile_crossing(Schedule& schedule, BlockRV block, size_t crossing, int64_t lanes, bool parallel) {
  // …, what lies between, columns, rows: so that what is left over of each is a nest of its own.
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  std::vector<LoopRV> order(loops.begin() + static_cast<ptrdiff_t>(crossing) + 1, loops.end());
  order.push_back(loops[crossing]);
  TRY(schedule.reorder(order));
  const LoopRV columns = TRY(schedule.peel(loops.back(), lanes))[0];
  const std::vector<LoopRV> across = TRY(schedule.split(columns, {Factor(), Factor(lanes)}));
  const LoopRV rows = TRY(schedule.get_loops(block)).back();
  TRY(schedule.reorder({rows, across[1]}));
  const LoopRV whole = TRY(schedule.peel(rows, lanes))[0];
  const std::vector<LoopRV> down = TRY(schedule.split(whole, {Factor(), Factor(lanes)}));
  TRY(schedule.vectorize(across[1]));
  TRY(schedule.unroll(down[1]));
  if (!parallel) return support::success();
  // The loops around the squares, or the squares themselves.
  const std::vector<LoopRV> now = TRY(schedule.get_loops(block));
  try_parallel(schedule, {now.begin(), now.begin() + static_cast<ptrdiff_t>(std::max<size_t>(loops.size() - 2, 1))});
  return support::success();
}

}  // namespace lathe::schedule
