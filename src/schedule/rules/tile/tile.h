// A register tile: a reduction whose accumulators are rows of vectors that stay in registers while the reduce loops
// run.
#pragma once

#include "schedule/rules/nest/work.h"

namespace lathe::schedule {

// Which loops of a reduction block play which part, by position among the block's loops.
struct TilePlan {
  std::string block;                  // its name
  std::vector<size_t> batch;          // outermost
  size_t lane = 0;                    // cut into vectors
  std::vector<size_t> between;        // run inside the lane loop, outside the rows
  std::optional<size_t> row;          // cut into rows of the tile
  std::vector<size_t> reduce;         // outermost first
  int64_t lanes = 1;                  // of a vector
  int64_t vectors = 1;                // a row
  int64_t rows = 1;                   // a tile
  int64_t rest = 0;                   // of an unknown number of rows: what tiles leave comes by so many, then by half
  int64_t tall = 1;                   // rows of rows: so many of the innermost loop of `between` share a tile
  bool rows_first = false;            // the loops of rows are outside the lane loop
  std::optional<size_t> shared = {};  // the loop of rows or of `between` that can be cut into pieces for threads
  int64_t share = 1;                  // so many pieces, outside the lanes
  size_t groups_inside = 0;           // and outside so many of the last ones of `batch`
  bool grid = false;                  // threads share the tiles of all cuts, not the cuts of the lanes alone
  int64_t steps = 1;                  // of the innermost sum that are written out
  bool window = false;                // all of the sum is written out, so that the rows of a tile share what they read
  bool slides = false;                // the innermost sum is, for the same reason
  int64_t chains = 1;                 // a tile of fewer vectors of sums takes its terms in several parts at once,
  int64_t registers = 16;             // as many as so many vectors leave room for
  bool updates = false;               // the sums start from what the output holds
  Buffer weights = {};                // what the lanes walk; null: nothing in particular
  int64_t prefetch = 0;     // 1: the weights of the next cut of the lanes are asked for ahead; 2: the next step's too
  Buffer first = {};        // the tensor of which the next tile of rows is asked for ahead; null: of none
  std::string panels = {};  // the block that copies the weights into panels as wide as a tile, or empty
  // Zeros around the first tensor: the number among `reduce` of the loop that moves the window along the rows, whose
  // steps get bodies of their own, each without the products that add nothing; and how many of the tall axis' first and
  // last rows have windows that touch zeros, and stand alone.
  std::optional<size_t> own_bodies = {};
  int64_t first_alone = 0, last_alone = 0;
  // A copy of the first tensor, by the block that writes it, whose planes along the axis are set apart.
  struct Apart {
    std::string block;
    size_t axis = 0;
  };
  std::optional<Apart> apart = {};
  int64_t chain = 256;         // the most terms summed one after the other; longer sums are summed in parts
  size_t outer = 0;            // so many loops around all of these stay as they are
  bool within_thread = false;  // none of these loops is shared among threads
  // Where lanes * vectors or rows do not divide, what is left over gets bodies of its own.

  bool has_rows_alone() const { return first_alone + last_alone > 0; }
  // A step of the sums keeps the fewer of the two in registers, elements of its rows or vectors of weights, and goes
  // over the others one by one.
  bool waits_by_rows() const { return !window && rows * tall < vectors; }
};

// Splits, reorders and caches as the plan says; `epilogue` (a block that alone reads what this one writes, or empty)
// runs on the tile before it leaves the registers, and by itself where it cannot be cut like the reduction.
Status register_tile(Schedule& schedule, const RuleContext& context, const TilePlan& plan, const std::string& epilogue);

// Whether threads share a reduction of so many terms that gives so many elements. A window that slides takes longer for
// each term, and elements of a few terms wait for memory.
bool enough_for_threads(std::optional<int64_t> terms, std::optional<int64_t> elements, const TilePlan& plan);
bool enough_for_threads(const Work& work, const TilePlan& plan);

// The largest divisor of `extent` up to `limit`.
int64_t largest_divisor(int64_t extent, int64_t limit);

// How many vectors of a row sums down columns take side by side: at least so many, which hide the latency of an
// addition, and at most as many as four cache lines have, if registers hold them. The next row that is added may lie a
// page or more away, and memory gives four lines of that nearly as soon as one.
constexpr int64_t least_down_columns = 4;
int64_t most_down_columns(int64_t vector_bits, const target::Target& target);
// As many as divide `count`, `fit` at most: whole cache lines where they are more than the least.
int64_t vectors_down_columns(int64_t count, int64_t vector_bits, const target::Target& target,
                             int64_t fit = std::numeric_limits<int64_t>::max());

// Inlines what can be inlined around the reduction: producers into it (except those `keep` names), the chain of
// elementwise consumers into one block. What stays by itself is named, in program order.
struct Surroundings {
  std::string epilogue;             // the one block behind the reduction, or empty
  std::vector<std::string> before;  // producers left as blocks of their own
  std::vector<std::string> behind;  // consumers, where they are several
};
Result<Surroundings> inline_around(Schedule& schedule, const std::string& reduction,
                                   support::function_ref<bool(const Work&)> keep);

// What a sum of products reads many times, and is not inlined for that: padding, and what takes tens of cycles.
bool is_read_often(const Work& work);

// The one reduction of a function whose other blocks are elementwise, where it computes anything; null, with the
// reason, otherwise.
const Work* only_reduction(const std::vector<Work>& list, std::string& why);

}  // namespace lathe::schedule
