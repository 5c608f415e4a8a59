// Which grouped convolutions are computed in groups, with the channels last.
#pragma once

#include "graph/rewrite_bindings.h"

namespace lathe::graph {

// Whether the channels of one group fill vectors, and are not so many, nor their weights so large, that each group is
// better a convolution of its own: a loop over the groups then runs around the tiles. Its weights are packed in one
// panel a group.
bool has_group_loops(const relax::Call& conv, int64_t lanes);

}  // namespace lathe::graph
