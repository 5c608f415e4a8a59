// Whose instructions stay in the order in which the kernel has them. A processor looks ahead by some sixty operations
// on vectors; a long chain, a function of each element, fills that with its own, unless several vectors take each step
// of it side by side, as kernels have it that compute several registers' vectors at once. A scheduler that counts
// registers puts one vector behind the other again, for which exp, log and erf take up to half as long again.
#pragma once

#include "codegen/emit/kernel.h"

namespace lathe::codegen {

// Whether the kernel has such chains and no sums of products, whose loads a scheduler moves to better places. False
// for targets with more than 16 vector registers, where order and registers do not conflict.
bool keeps_order(const Kernel& kernel, const target::Target& target);

}  // namespace lathe::codegen
