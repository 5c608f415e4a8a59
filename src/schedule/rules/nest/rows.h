// Blocks that work on rows: reductions of a row in vectors of partial results, and what is computed element by element.
#pragma once

#include "schedule/rules/nest/work.h"

namespace lathe::schedule {

// The blocks, in program order, inside the `outer` loops that rows are made of, each in vectors as far as it can be: a
// reduction keeps partial results in registers, whose lanes are combined at the end, and shares the loop of what is
// computed right before it. One that refuses stays as it is. Where the next loop inside goes over several rows
// `together`, these take each step of a reduction side by side, and a block that cannot is a refusal.
Status schedule_rows(Schedule& schedule, const RuleContext& context, const std::vector<std::string>& names,
                     size_t outer, int64_t together = 1);

// Lets a block that sums over a vector of so many lanes, its innermost loop, add halves of it in registers, and halves
// of these, to the last. Gives the blocks that do.
Result<std::vector<BlockRV>> add_lanes(Schedule& schedule, BlockRV block, int64_t lanes);

// Whether each access of the block moves by one element at most with the loop.
Result<bool> walks_a_row(Schedule& schedule, BlockRV block, LoopRV loop);

// The loops that variables of this type are made of.
std::vector<const For*> loops_of(const Work& work, IterType type);

}  // namespace lathe::schedule
