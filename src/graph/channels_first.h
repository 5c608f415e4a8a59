// Which permutations a convolution makes itself, as it writes its result.
#pragma once

#include "graph/rewrite_bindings.h"

namespace lathe::graph {

// Whether `call` puts the channels of images, which lie last, before their rows, and the images are so large that they
// leave the nearer caches between a kernel that computes them and one that permutes them: row by row they do not.
bool puts_channels_first(const relax::Call& call);

}  // namespace lathe::graph
