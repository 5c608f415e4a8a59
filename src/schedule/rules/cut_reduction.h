// Reductions over several axes, or over very many elements, in two steps.
#pragma once

#include "schedule/rules/nest/work.h"

namespace lathe::schedule {

// A block that reduces several axes gets them as one row where they lie behind one another, and partial results of its
// own for each row (and each piece of a very long one) otherwise: what reads a row in vectors does one row at a time, a
// sum of many terms is more exact, and pieces can be shared by threads. Gives the block of the partial results, or
// nothing where there is one short row, or rows too short for vectors of `lanes`.
Result<std::optional<BlockRV>> cut_reduction(Schedule& schedule, BlockRV block, int64_t lanes);

}  // namespace lathe::schedule
