// The passes that turn block-level tir into kernel tir, one function each, acting on every tensor function of a
// module. Which node kinds are legal after which is tir/stages.h; their order is data: driver/pipeline.cpp.
#pragma once

#include "ir/pass.h"
#include "tir/stmt.h"

namespace lathe::tir {

using support::Result;

// A call of a function of the module becomes that function's statements, over the memory that the call gives it: a
// kernel calls nobody.
Result<IRModule> inline_calls(IRModule module, const PassContext& context);
// Values between that an output takes the place of lie in the output: one buffer less to go through where rows are
// longer than the nearest cache.
Result<IRModule> reuse_outputs(IRModule module, const PassContext& context);
// Moves each intermediate buffer to the innermost loop that holds all its uses and needs nothing from other
// iterations, and shrinks it to the part used there.
Result<IRModule> compact_buffers(IRModule module, const PassContext& context);
// A loop that T.break_loop or T.continue_loop leaves notes it in memory and asks: what follows sees the loops run as
// they are written.
Result<IRModule> lower_loop_exits(IRModule module, const PassContext& context);
// Products with the zeros around a tensor (tir/analysis/zero_border.h) are left out of sums where the condition is
// asked once for many of them or decided when loops are written out. A sum that starts from 0 stays the same, bit by
// bit.
Result<IRModule> skip_zeros(IRModule module, const PassContext& context);
// A block's init becomes a guarded statement before its body: where every reduce variable is at its minimum.
Result<IRModule> lower_init(IRModule module, const PassContext& context);
// Blocks become plain statements: variables replaced by their values, predicates by ifs, buffers by allocations.
Result<IRModule> convert_blocks(IRModule module, const PassContext& context);
// Every buffer gets one dimension for each group of its axes (one in all, where no separators divide them), its
// accesses one flat int64 index a group. Symbols bound by shapes alone become scalar parameters (see `shape_scalars`).
Result<IRModule> flatten_buffers(IRModule module, const PassContext& context);
// Groups of axes become one: the memory of the target is addressed in one dimension.
Result<IRModule> join_axis_groups(IRModule module, const PassContext& context);
// Arithmetic, comparisons and control flow that are decided by what is known of loop variables.
Result<IRModule> simplify(IRModule module, const PassContext& context);
// Loops are split at the ends of their guards, so that the main part runs without them.
Result<IRModule> partition_loops(IRModule module, const PassContext& context);
// Vectorized loops become vector expressions.
Result<IRModule> vectorize_loops(IRModule module, const PassContext& context);
// Unrolled loops of constant extent are written out.
Result<IRModule> unroll_loops(IRModule module, const PassContext& context);
// Buffers in scope "register" are checked to have constant indices; small "local" ones that have them are promoted.
Result<IRModule> legalize_registers(IRModule module, const PassContext& context);
// float16 and bfloat16 arithmetic through float32, rounded after each operation.
Result<IRModule> legalize_dtypes(IRModule module, const PassContext& context);
// Intrinsics that only help reasoning are replaced by plain arithmetic.
Result<IRModule> lower_intrinsics(IRModule module, const PassContext& context);
// A parallel loop inside a parallel loop runs serially.
Result<IRModule> nest_parallel(IRModule module, const PassContext& context);

// Passes that the pipeline does without, for pipelines of the user's own.
// Blocks lose their variables: the values bound to them stand in their place. Inits are to be lowered before.
Result<IRModule> convert_blocks_to_opaque(IRModule module, const PassContext& context);
// Statements that do nothing: empty loops and branches, values that nothing uses, elements stored where they are.
Result<IRModule> remove_no_op(IRModule module, const PassContext& context);
// Moves each intermediate buffer as compact_buffers does, and leaves it as large as it is.
Result<IRModule> place_allocations(IRModule module, const PassContext& context);
// Views inside blocks go: their accesses become accesses of the memory that they name.
Result<IRModule> lower_match_buffer(IRModule module, const PassContext& context);
// Each variable is defined in one place: programs put together from parts that share nodes may define one in several.
Result<IRModule> convert_ssa(IRModule module, const PassContext& context);
// An if that is all of a loop's body, and decided the same in every iteration, goes around the loop.
Result<IRModule> hoist_branches(IRModule module, const PassContext& context);
// What several statements compute gets a name, where the first of them surely computes it; by config "equivalent_terms"
// also where only arithmetic shows that it is the same.
Result<IRModule> share_expressions(IRModule module, const PassContext& context);
// Allocations that are not used at the same time share memory, as the tensors of a graph do.
Result<IRModule> share_storage(IRModule module, const PassContext& context);
// Loop variables, subscripts and comparisons of int64 that are shown to fit become int32.
Result<IRModule> narrow_dtypes(IRModule module, const PassContext& context);

// The symbols of a function that only the shapes of its buffer parameters bind, in order of first use:
// flatten_buffers appends them to the scalar parameters.
std::vector<Var> shape_scalars(const Function& function);

}  // namespace lathe::tir
