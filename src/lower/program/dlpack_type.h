// A DType as DLPack encodes it.
#pragma once

#include "abi/dlpack.h"
#include "ir/dtype.h"

namespace lathe::lower {

DLDataType dlpack_type(ir::DType dtype);
// The other way; void for what Lathe has no type for.
ir::DType dtype_of(DLDataType type);

}  // namespace lathe::lower
