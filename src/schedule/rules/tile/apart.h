// Planes of a copy that would meet in a few sets of the nearest cache, and lie an odd number of lines apart instead.
#pragma once

#include "schedule/rules/tile/contraction.h"

namespace lathe::schedule {

// The block that copies the first tensor (a padding), and the axis along which planes of the copy are better set apart:
// where the sums of one element walk so many lines that meet in one set of the nearest cache that it cannot keep them
// for the element beside it, and fewer do when they are apart. Nothing where there is no copy, or no need.
std::optional<TilePlan::Apart> planes_to_set_apart(const Schedule& schedule, const Contraction& found,
                                                   const target::Target& target);

// Sets them apart.
Status set_planes_apart(Schedule& schedule, const TilePlan::Apart& apart);

}  // namespace lathe::schedule
