// Whether a block that was moved to another place of its scope does there what it did, asked of its instances one by
// one (the third tier), where regions do not tell.
#pragma once

#include "schedule/analysis/conflicts.h"
#include "schedule/primitives/compute/place.h"

namespace lathe::schedule {

// A block before and after it was moved into the loops of another statement's nest, before which all that it needs had
// come.
struct Moved {
  const PrimFunc& before;
  const PrimFunc& after;
  const Block& block;
  Id nest;  // the outermost loop that it was moved into
  // What of its scope came from the nest's beginning to the block: accesses by their order before, the first and how
  // many of others than the block.
  size_t from = 0, count = 0;
  std::vector<const For*> shared;  // the loops that it is in before and after
};

// Something that came before an instance and now comes after it, and touches what it touches.
Conflict too_early(const Moved& moved);

// Two of its own instances that touch one element, whose order is turned round. Terms of one sum do not count.
Conflict turned_round(const Moved& moved);

// Whether it certainly runs the instances that it ran, and no others; and each no more than once in an iteration of the
// loops that it has been in.
bool runs_the_same(const Moved& moved);

}  // namespace lathe::schedule
