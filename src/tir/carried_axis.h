// Tensor programs that carry an axis through, as resampling does the channels: what they compute of one index comes of
// that index alone.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// `function` with an axis moved to the end: its tensors of `rank` axes, parameters among them, have axis `axis` behind
// the others, and so have the loops that compute them. Tensors of other ranks stay. Null where some element comes of
// another index of the axis, or the body is no sequence of plain loops around blocks.
Function with_axis_last(const PrimFunc& function, size_t rank, size_t axis);

}  // namespace lathe::tir
