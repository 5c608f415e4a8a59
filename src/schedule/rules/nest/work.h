// What the rules look at: the blocks of a function, what they compute, how they walk memory, how much there is to do.
#pragma once

#include "schedule/analysis/access.h"
#include "schedule/analysis/dependence.h"
#include "schedule/analysis/tree.h"
#include "schedule/rules/nest/context.h"

namespace lathe::schedule {

// A block under the root, and the loops around it.
struct Work {
  Ref<BlockRealize> realize;
  std::vector<const For*> loops;
  bool is_output = false;  // writes a parameter
  Ref<PrimFunc> function;  // keeps the loops alive while a schedule changes its own program
  const Block& block() const { return *realize->block; }
  bool reduces() const { return has_reduce_iters(block()); }
};

// The blocks directly under the root block, in program order.
std::vector<Work> works(const PrimFunc& function);
const Work* find(const std::vector<Work>& list, const std::string& block);

// Why the blocks are no group of plain reductions with what is computed beside them, if they are none.
Outcome no_plain_reductions(const std::vector<Work>& list);
// What one instance of the block computes by loops of its own and by functions, in elements that cost little.
int64_t work_of_instance(const Block& block);
// Whether so many instances of so much work are enough for threads; those of unknown number are.
bool are_enough(std::optional<int64_t> count, int64_t work);
// What all of them compute, in elements that cost little: those of unknown number are enough for threads.
int64_t work_for_threads(const std::vector<Work>& list);
// What is computed several times where the blocks are `now`, and was once `before`, if anything is.
Outcome computed_again(const std::vector<Work>& before, const std::vector<Work>& now);

// What the block reads and does not write, in the order in which primitives count it.
std::vector<Buffer> operands_of(const Block& block);

// The handle of a block that these functions found.
Result<BlockRV> handle(Schedule& schedule, const Work& work);

// The product of the extents; nothing where one is not a constant.
std::optional<int64_t> constant_product(const std::vector<const For*>& loops);

// Elements that the access moves by when the loop's variable does: 0, 1, another constant, or nothing (not affine, or a
// distance that is not known).
std::optional<int64_t> stride_of(const Access& access, const For& loop);

// Whether where the access lies depends on the loop's variable.
bool moves_with(const Access& access, const For& loop);

// The bits of the widest element that the block touches.
int widest_bits(const Block& block);
// The same of what moves with the loop: the vectors that it is cut into. What stays, an index that a row is gathered
// by, is read once for all of them.
int widest_bits(const Work& work, const For& loop);
// Along its innermost loop.
int widest_bits(const Work& work);
// Whether the block calls a function that takes tens of cycles.
bool is_costly(const Block& block);
// How many vectors of the block go through its functions side by side, as one. Most functions are one chain of
// operations that wait for each other, longer than a processor looks ahead; sines, cosines and powers hold too many
// registers.
int64_t vectors_together(const Block& block);
// Whether the block reads by numbers that it reads, other ones for each turn of its innermost loop: elements come one
// by one.
bool gathers(const Work& work);
// The if_then_else that the block's value is, as where it pads; null where it is something else.
const Call* choice_of(const Block& block);
// Whether the block holds calls whose effects are not pure.
bool has_effects(const Block& block);

// Inlines every producer that is elementwise into its consumers, and keeps those whose value is costly and wanted by
// several blocks, or for which `keep` is true.
Status inline_producers(Schedule& schedule, support::function_ref<bool(const Work&)> keep);

// Splits off the padding around a block's value where nothing is read for it; the names of the blocks that fill its
// sides, or nothing where it is no such padding.
Result<std::optional<std::vector<std::string>>> split_filled_sides(Schedule& schedule, BlockRV block);

// Asks the decider for a number from `candidates` (the closest to `preferred` when it is not one).
Result<ExprRV> decide(Schedule& schedule, const RuleContext& context, std::string_view rule, std::string_view name,
                      std::vector<int64_t> candidates, int64_t preferred);

// Total work below which threads cost more than they give, in elements.
inline constexpr int64_t parallel_work = 32 * 1024;

// The loop in vectors of `together` lanes where it is long enough, and what these leave in vectors of `lanes` and a
// shorter one; single elements where it is not half as long as one.
Status vectorize_by(Schedule& schedule, LoopRV loop, int64_t together, int64_t lanes);

// Spatial loops only: fuses what is contiguous, vectorises it, and runs the outermost in parallel where there is
// enough and `threads` are for it: not where the block shares loops with others, which have them.
Status vectorize_elementwise(Schedule& schedule, const RuleContext& context, BlockRV block, bool threads = true);

// Whether every access of the block moves by at most one element with its innermost loop, and its store by one; and
// that loop in vectors, where it is long enough.
bool walks_rows(const PrimFunc& function, const Work& work);
Status vectorize_innermost(Schedule& schedule, const RuleContext& context, const Work& work);
// Whether a row is another tensor's with something else of it at its ends, as with reflection, that is not walked as a
// row.
bool has_other_ends(const Work& work);

// Runs the loops in parallel, as one where they are several; leaves them as they are, and says so, where that is
// refused.
bool try_parallel(Schedule& schedule, const std::vector<LoopRV>& loops);

// Runs the outermost data-parallel loops of the block in parallel where there is enough work.
Status parallelize_outer(Schedule& schedule, BlockRV block, int64_t work_an_instance = 1);

}  // namespace lathe::schedule
