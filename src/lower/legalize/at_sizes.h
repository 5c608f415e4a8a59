// A fused group with some of its symbolic dimensions fixed.
#pragma once

#include "ir/visit.h"
#include "lower/legalize/group.h"

namespace lathe::lower {

// The group over new variables, in which each symbol of `sizes` is its size and extents are simplified: what the group
// would be had the model been read with these sizes.
Group at_sizes(const Group& group, const ir::VarMap& sizes);

}  // namespace lathe::lower
