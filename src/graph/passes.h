// The passes over relax, one function each, acting on every graph function of a module. Their order is data:
// driver/pipeline.cpp.
#pragma once

#include "ir/pass.h"
#include "target/target.h"

namespace lathe::graph {

using ir::IRModule;
using ir::PassContext;
using support::Result;

// Algebraic canonicalisation: identities that hold for IEEE floats and wrapping integers alike, chains of views and
// permutations merged, operators that do nothing removed.
Result<IRModule> simplify_algebra(IRModule module, const PassContext& context);

// Batch normalisation in inference is a scale and a shift per channel: folded into the weights and bias of the
// convolution before it where nobody else uses that convolution's value and its weights are constant; elsewhere it
// becomes a multiplication and an addition whose operands constant folding computes.
Result<IRModule> fold_batch_norm(IRModule module, const PassContext& context);

// Replaces operators that mean other operators by what they mean.
Result<IRModule> expand_composites(IRModule module, const PassContext& context);

// Adds the checks of shapes that only the run can make: an extent that a type rule took to be equal to another, or to
// broadcast, is compared before any kernel reads by it. Without them a wrong input would be read past its end.
Result<IRModule> check_shapes(IRModule module, const PassContext& context);

// Computes what depends on constants only, through the evaluator of the context, all of a function in one call. A value
// is folded when it is not larger by more than `largest_growth_bytes` than what it is computed from (or than twice the
// constants it comes from, where only smaller values are made of it), and when it, and all results together, are not
// larger by more than `largest_folded_bytes` than the module's constants. What the
// evaluator declines as too much (ir::codes::evaluation_limit) is found by halves. All this is left for the run, and a
// remark says so; a function where something was left has the attribute "folding_reached_limit", and the next row that
// folds adds nothing to it that its weights do not tell.
Result<IRModule> fold_constants(IRModule module, const PassContext& context);
// The same, but for kernels of convolutions that are only scaled (as fold_batch_norm leaves them): they wait until they
// are packed as well (constant_weights.h). Where Winograd's convolutions are wanted, which look into kernels, all.
Result<IRModule> fold_all_but_scaled_kernels(IRModule module, const PassContext& context);
inline constexpr int64_t largest_growth_bytes = 1 << 20;
inline constexpr int64_t largest_folded_bytes = 32 << 20;

// Zeros put around what a convolution or an average reads become padding of its own, so the padded tensor is never
// stored: exporters write strided convolutions with "same" padding so.
Result<IRModule> merge_padding(IRModule module, const PassContext& context);

// A sum of convolutions of one tensor, one of them inside the window of the other, is one convolution whose kernel is
// the sum of theirs. So is what adds or subtracts the tensor itself, and what multiplies any of it by a factor for each
// channel; constants of each channel are one bias. Networks that are trained by branches (RepVGG: Ding et al. 2021;
// MobileOne and FastViT: Vasu et al. 2023) are often exported with them. The kernels must be constants, and nobody else
// use their results. Rounds as folding batch normalisation does; where the tensor is infinite there may be NaNs
// instead.
Result<IRModule> merge_branches(IRModule module, const PassContext& context);

// Convolutions with channels last learn how many zeros lie around what they read, be they their own padding or what a
// pad puts there, where their kernel is a constant without infinities and NaNs: its products with zeros are zeros.
Result<IRModule> mark_zero_borders(IRModule module, const PassContext& context);

// Computes equal values once: the second of two equal pure calls becomes the first's variable.
Result<IRModule> eliminate_common_subexpressions(IRModule module, const PassContext& context);

// A convolution of a few large groups becomes one for each, of a part of the channels, with its part of the weights:
// convolutions of one group have loops that run at the processor's speed, and the parts are moved once.
Result<IRModule> split_groups(IRModule module, const target::Target& target, const PassContext& context);

// Activations of convolutions, and of what lies between them, with the channels last: vectors run along channels, which
// weights, biases and depthwise kernels share, and a pixel's channels lie in one cache line. A pointwise convolution
// becomes a product of [batch, pixels, channels] with a matrix. Whatever else reads such a value, or the result, gets
// it back in the model's order; inputs are converted where they are first needed.
Result<IRModule> convert_layout(IRModule module, const target::Target& target, const PassContext& context);

// Convolutions of 3x3 with stride one, whose weights are constant and channels last, become three steps: tiles of their
// input are transformed (ops/winograd.h), each of 16 or 36 points is a product of matrices, and the products are
// transformed back. It multiplies 2.25 or 4 times less, and rounds more: only where `winograd_wanted` is set in the
// context's config (a bool). The choice of the tile is the model's (winograd_model.h), or the config's by the name
// `winograd_tile`, or by that behind the name of the model's node (else of the variable) and a colon: 2, 4, or 0 for
// none. The module's attributes then tell how many there are, and the largest error of one, with that of the direct
// convolution (`WinogradError`).
Result<IRModule> winograd(IRModule module, const target::Target& target, const PassContext& context);
inline constexpr const char* winograd_wanted = "winograd";
inline constexpr const char* winograd_tile = "winograd.tile";
inline constexpr const char* winograd_count = "winograd.convolutions";
inline constexpr const char* winograd_worst_error = "winograd.error";
inline constexpr const char* winograd_direct_error = "winograd.direct_error";

// Constant weights of convolutions and matrix products take the layout that the loops want: columns (output channels)
// in panels of a few vectors, zero-padded. The packing is an ordinary operator, which constant folding evaluates.
Result<IRModule> pack_weights(IRModule module, const target::Target& target, const PassContext& context);

// Drops bindings whose value nobody uses. Pure values only: impure calls stay.
Result<IRModule> eliminate_dead_code(IRModule module, const PassContext& context);

// Groups what becomes one kernel of attention, as fuse_ops groups others: a matrix product, elementwise operators of
// its shape (a scale, a mask), softmax along the last axis, and a second product that alone reads it, with the
// permutations of their operands and of the result. The scores then never leave the cache. Declined, with a remark,
// where an intermediate value is used elsewhere, an operand is broadcast, or how long one query or value is is not
// known.
Result<IRModule> fuse_attention(IRModule module, const PassContext& context);

// A permutation of axes that no neighbour is fused with is one of fewer axes: those that stay together are one, those
// of extent 1 none. The loops over what is left are longer, and squares of vectors fill them better. A reduction over
// several axes whose extents are not all known is one over their product. The rest is views.
Result<IRModule> merge_axes(IRModule module, const PassContext& context);

// Groups operators that become one kernel: private functions with the attribute "primitive", called from where the
// operators stood.
//
// Two neighbouring groups merge when every use of the first's value is in the second and their kinds fit: elementwise,
// broadcasting and cheap injective operators with each other; the same before a reduction; elementwise operators of the
// same shape after a matrix product, convolution or reduction. One such anchor a group; at most `max_group` operators.
// A group whose only use is another group can never close a cycle with it.
Result<IRModule> fuse_ops(IRModule module, const PassContext& context);

// A product of rows that lie along several axes, not all of known extents, with one matrix has one axis of rows, also
// in a kernel with what is elementwise around it: tiles are cut of all rows, however many each axis has. The rest is
// views.
Result<IRModule> join_rows(IRModule module, const PassContext& context);
inline constexpr size_t max_group = 64;

// Reverse-mode differentiation. Adds a function "<name>_adjoint" of the same parameters, whose value is the function's
// own, and a tuple of the gradients of one result, a scalar, by parameters. An operator with a rule of its own
// (`relax::Operator::gradient`) goes by that; any other by the adjoint of what it means as a tensor program
// (tir/differentiate). Only on request: no row of the pipeline.
struct GradientRequest {
  std::string function = "main";
  std::optional<std::vector<std::string>> parameters;  // nothing: all that are tensors of floats
  int64_t target = 0;                                  // which item, where the result is a tuple
  bool replaces = false;  // the function itself, all results in one flat tuple, instead of a function beside it
};
Result<IRModule> gradient(IRModule module, const GradientRequest& request, const PassContext& context);

}  // namespace lathe::graph
