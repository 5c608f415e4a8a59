// Elementwise blocks that read across the order in which they write: transposes.
#pragma once

#include "schedule/rules/nest/work.h"

namespace lathe::schedule {

// The loop along which everything that the innermost loop of `work` walks in steps lies side by side: a transpose's
// other axis. The position among its loops; nothing where there is no such loop, or one of the two is shorter than
// four.
std::optional<size_t> crossing_loop(const PrimFunc& function, const Work& work, int64_t lanes);

// What one load takes from at most so many whole vectors, where it takes every second, third or fourth element
// (codegen/llvm/memory).
constexpr int64_t largest_near_stride = 4;

// The loop that tells rows apart which lie in each other (the channels of pixels), the innermost loop being the one
// along them: every access goes by it in steps of one, and along the rows in steps of its extent, four at most. Its
// position among the loops of `work`, or nothing.
std::optional<size_t> interleaved_loop(const PrimFunc& function, const Work& work);

// Vectors of all rows that lie in each other, side by side, so that what holds them is read once.
Status pull_apart(Schedule& schedule, const RuleContext& context, BlockRV block, size_t rows, int64_t lanes,
                  bool parallel);

// Squares of `lanes` by `lanes` elements along the innermost loop and loop number `crossing`: a square is read by rows
// into registers, and written by columns from there. Squares narrower than a cache line come as many beside one another
// as fill it, where they divide the columns. What is left over is cut into smaller squares, and the last of it runs one
// by one.
Status tile_crossing(Schedule& schedule, const RuleContext& context, BlockRV block, size_t crossing, int64_t lanes,
                     bool parallel);

}  // namespace lathe::schedule
