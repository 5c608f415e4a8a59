// Elementwise blocks that read across the order in which they write: transposes.
#pragma once

#include "schedule/rules/nest/work.h"

namespace lathe::schedule {

// The loop along which everything that the innermost loop of `work` walks in steps lies side by side: a transpose's
// other axis. The position among its loops; nothing where there is no such loop, or one of the two is shorter than
// four.
std::optional<size_t> crossing_loop(const PrimFunc& function, const Work& work, int64_t lanes);

// Squares of `lanes` by `lanes` elements along the innermost loop and loop number `crossing`: a square is read by rows
// into registers, and written by columns from there. Squares narrower than a cache line come as many beside one another
// as fill it, where they divide the columns. What is left over is cut into smaller squares, and the last of it runs one
// by one.
Status tile_crossing(Schedule& schedule, const RuleContext& context, BlockRV block, size_t crossing, int64_t lanes,
                     bool parallel);

}  // namespace lathe::schedule
