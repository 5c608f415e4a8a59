// Kernels for sizes that turn out to be equal.
#pragma once

#include "ir/pass.h"

namespace lathe::lower {

// Where tensors of sizes n and m are broadcast against each other, each of the two is one or the other: a kernel for
// any size asks for every element which it is. Such a kernel gets a second one beside it, for sizes that are equal, in
// which nothing is left to ask; versions.h tells when it is called.
support::Result<ir::IRModule> equal_sizes(ir::IRModule module, const ir::PassContext& context);

}  // namespace lathe::lower
