// Values [batch, groups, elements of a group] that are images [batch, channels, spatial…] whose channels are taken
// together in equal groups, computed on the image's rows [batch, pixels, channels].
#pragma once

#include "graph/rewrite_bindings.h"

namespace lathe::graph {

// Each group of a batch element with mean 0 and variance 1, as layer normalisation over its elements gives: sums of
// each channel first, so that vectors run along the channels.
Result<Expr> normalized_groups(Emitter& emitter, const Expr& rows, int64_t groups, double epsilon);

// A tensor that broadcasts to [batch, groups, 1] as one for each channel: [batch or 1, 1, channels].
Result<Expr> for_each_channel(Emitter& emitter, const Expr& operand, int64_t groups, int64_t channels);

}  // namespace lathe::graph
