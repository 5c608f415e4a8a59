// What happens inside one tile: its sums stay in registers, a block takes them out.
#pragma once

#include "schedule/rules/tile/tile.h"

namespace lathe::schedule {

// The block that takes a tile out of the registers: every loop inside `tile` written out but the lanes.
Status finish_tile(Schedule& schedule, BlockRV block, LoopRV tile, size_t lane_dimension, int64_t lanes);

// A long sum of floats loses accuracy with its length: where the loops `sums` (outermost first) add up more than twice
// `chain` terms, each part of at most `chain`, or of one whole loop where that has no fitting divisor, gets a sum of
// its own. Gives the block of these sums and leaves adding them up to `block`; nothing where the sum is short, of
// integers, or one loop of an awkward length.
struct SumParts {
  BlockRV block;
  std::vector<int64_t> extents;  // of the loops, outermost first, that were fused into the one over the parts
};
Result<std::optional<SumParts>> sum_in_parts(Schedule& schedule, BlockRV block, const std::vector<LoopRV>& sums,
                                             int64_t chain);

// Some steps of the innermost of the loops `sums` that runs more than once are written out: fewer jumps, and addresses
// as offsets of one register. A short loop stays as it is. All of the innermost loop where rows slide along it.
Status write_out_steps(Schedule& schedule, std::vector<LoopRV>& sums, const TilePlan& plan);

// Inside `tile`: `total` adds up what `parts` sums apart, each part in registers, the total in the tile's memory. Gives
// the block that multiplies.
Result<BlockRV> tile_of_parts(Schedule& schedule, BlockRV total, const SumParts& parts, LoopRV tile, int64_t lanes,
                              const TilePlan& plan);

// A block whose sums are the loops inside `tile`, in registers, where they are too few to keep the additions busy: each
// waits for its last one (`TilePlan::chains`). So each is taken in several parts, whose terms alternate, and these are
// added up at the end. Gives the block that multiplies; nothing, and changes nothing, where sums are enough or their
// innermost loop has no such parts.
Result<std::optional<BlockRV>> sum_side_by_side(Schedule& schedule, BlockRV block, LoopRV tile, int64_t lanes,
                                                const TilePlan& plan);

}  // namespace lathe::schedule
