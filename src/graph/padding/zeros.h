// What a padding operator puts around a tensor.
#pragma once

#include "relax/expr.h"

namespace lathe::graph {

// Whether nn.pad adds zeros, as no pad value at all does; -0.0 is another value.
bool pads_zeros(const relax::Call& pad);

}  // namespace lathe::graph
