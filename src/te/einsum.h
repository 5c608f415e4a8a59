// Einstein's summation: "bij,bjk->bik".
#pragma once

#include "te/tensor.h"

namespace lathe::te {

// The sum over every index that the output does not have of the product of the operands. Letters are indices; "..." are
// those that are not named, aligned at the last, broadcast, and first in an output that is not given; a letter twice in
// one operand is its diagonal. A dimension of extent 1 meets any. Without "->" the output has the letters that occur
// once, in alphabetical order. More than two operands are multiplied pair by pair in the order that multiplies least
// (all orders are looked at for up to eight operands; unknown extents count as 64).
// Diagnostics: te-einsum.
Tensor einsum(const std::string& subscripts, const std::vector<Tensor>& operands);

}  // namespace lathe::te
