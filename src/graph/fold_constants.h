// Computes what depends on constants only, through the evaluator of the context, all of it in one call.
#pragma once

#include "ir/pass.h"

namespace lathe::graph {

// Results are folded when they are not larger by more than this than what they are computed from.
inline constexpr int64_t largest_growth_bytes = 1 << 20;

support::Result<ir::IRModule> fold_constants(ir::IRModule module, const ir::PassContext& context);
}  // namespace lathe::graph
