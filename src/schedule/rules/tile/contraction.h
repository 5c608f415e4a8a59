// Contractions: sums of products of two tensors, as gemm and conv schedule them.
#pragma once

#include "schedule/rules/tile/tile.h"

namespace lathe::schedule {

// A block that sums products of two tensors' elements, in variables of its loops, of which each is one of the block's;
// these by position, but for the `outer` outermost. A reason when it is none.
struct SumOfProducts {
  Access first, second;
  std::vector<size_t> spatial, reduce;
};
Result<SumOfProducts> sum_of_products(const PrimFunc& function, const Work& work, size_t outer = 0);

// Windows that touch the zeros around the first tensor (tir/analysis/zero_border.h), along one loop.
struct Touching {
  std::optional<size_t> window;     // the number among the reduce loops of the one that moves the window
  int64_t first = 0, last = 0;      // so many of the loop's first and last iterations touch zeros
  int64_t products = 0, zeros = 0;  // of iterations and steps of the window: all, and those of zeros
};

// What the loops of a contraction block do, by position among its loops.
struct Contraction {
  std::string block;
  size_t lane = 0;               // spatial: walks the second tensor (weights) with stride 1, not in the first
  std::optional<size_t> row;     // spatial: in the first tensor only
  std::vector<size_t> batch;     // spatial, in both, or the outermost of all
  size_t interleaved = 0;        // so many last ones of `batch` lie inside the rows of the first tensor, as groups do
  int64_t group_stride = 0;      // elements of the first tensor from one to the next along the innermost of these
  std::vector<size_t> between;   // spatial, the others of the first tensor, and of the second
  bool shares_weights = false;   // the innermost of `between` walks the first tensor alone
  std::vector<size_t> reduce;    // in the order of the second tensor's memory
  std::vector<int64_t> strides;  // elements of the first tensor from step to step of each of these; 0: not known
  Buffer first, weights;         // the first tensor, and the second
  int64_t packed = 0;            // the weights' innermost dimension holds this many lanes; 0: plain
  int64_t row_stride = 0;        // elements of the first tensor from row to row; 0: not known
  bool windows = false;          // the first tensor is read at sums of variables
  bool updates = false;          // adds to what its output holds: where it starts is written by another block
  Touching rows, between_rows;   // windows that touch zeros along the row loop, and along the innermost of `between`
};

// The contraction that the block is; a reason when it is none. The `outer` outermost loops only repeat all of it.
Result<Contraction> contraction(const PrimFunc& function, const Work& work, size_t outer = 0);

// Lanes, vectors and rows of its register tile, from the target's registers. `within_thread`: what is around it has
// been shared among threads, all of this is one's.
Result<TilePlan> plan_tile(Schedule& schedule, const RuleContext& context, std::string_view rule,
                           const Contraction& found, bool within_thread = false);

}  // namespace lathe::schedule
