// Scalars of kernels that every call knows.
#pragma once

#include "ir/pass.h"

namespace lathe::lower {

// A scalar that all calls of a kernel give the same value, which is no symbol, becomes that value in the kernel, and
// the calls give it no longer: where parts begin (parts_in_place) is a number to the schedule rules then, by which an
// index lies in its buffer.
support::Result<ir::IRModule> fold_scalars(ir::IRModule module, const ir::PassContext& context);

}  // namespace lathe::lower
