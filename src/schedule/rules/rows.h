// Blocks that work on one row: reductions of it in vectors of partial results, and what is computed element by element.
#pragma once

#include "schedule/rules/work.h"

namespace lathe::schedule {

// The innermost loop of an elementwise block in vectors, unless it is one of the `outer` that rows are made of.
Status vectorize_row(Schedule& schedule, const RuleContext& context, BlockRV block, size_t outer);

// One reduction over its innermost loop, in vectors: partial results in registers, whose lanes are combined at the end.
Status reduce_row(Schedule& schedule, const RuleContext& context, BlockRV block);

// The loops that variables of this type are made of.
std::vector<const For*> loops_of(const Work& work, IterType type);

}  // namespace lathe::schedule
