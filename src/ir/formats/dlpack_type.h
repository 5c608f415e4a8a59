// A DType as DLPack encodes it.
#pragma once

#include "abi/dlpack.h"
#include "ir/dtype.h"

namespace lathe::ir {

DLDataType dlpack_type(DType dtype);
// The other way; void for what Lathe has no type for.
DType dtype_of(DLDataType type);

}  // namespace lathe::ir
