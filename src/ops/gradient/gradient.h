// Gradients by other operators, which fuse with their neighbours and have schedules of their own. A rule that does not
// fit a call (extents that only the run compares, packed operands) gives nothing: then the gradient is that of the
// tensor program (tir/differentiate). Operators without a rule have that one always.
#pragma once

#include "relax/block_builder.h"

namespace lathe::ops {

using Adjoints = relax::Result<std::vector<relax::Expr>>;
using relax::BlockBuilder;

// Of sums, differences, products and quotients of two broadcast operands.
Adjoints gradient_of_add(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);
Adjoints gradient_of_subtract(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);
Adjoints gradient_of_multiply(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);
Adjoints gradient_of_divide(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);
Adjoints gradient_of_negative(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);
// Two products with the other operand turned round.
Adjoints gradient_of_matmul(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);
// The same elements in the shape, or the order, of the operand.
Adjoints gradient_of_view(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);
Adjoints gradient_of_permute_dims(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);
// Every element that was summed gets the sum's adjoint.
Adjoints gradient_of_sum(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);
// (g - the sum of g * y) * y, and g - exp(y) * the sum of g, where y is the result.
Adjoints gradient_of_softmax(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);
Adjoints gradient_of_log_softmax(BlockBuilder& b, const relax::Call& call, const relax::Expr& g);

}  // namespace lathe::ops
