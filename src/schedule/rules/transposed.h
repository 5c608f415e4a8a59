// Elementwise blocks that read across the order in which they write: transposes.
#pragma once

#include "schedule/rules/work.h"

namespace lathe::schedule {

// The loop along which everything that the innermost loop of `work` walks in steps lies side by side: a transpose's
// other axis. The position among its loops; nothing where there is no such loop, or one of the two is shorter than a
// vector.
std::optional<size_t> crossing_loop(const PrimFunc& function, const Work& work, int64_t lanes);

// Squares of `lanes` by `lanes` elements along the innermost loop and loop number `crossing`: what one reads of memory
// is read again by its neighbours before it is gone. Rows of what is written are vectors; what is left over runs one by
// one.
Status tile_crossing(Schedule& schedule, BlockRV block, size_t crossing, int64_t lanes, bool parallel);

}  // namespace lathe::schedule
