// A DType as DLPack encodes it.
#pragma once

#include "abi/dlpack.h"
#include "ir/dtype.h"

namespace lathe::lower {

DLDataType dlpack_type(ir::DType dtype);

}  // namespace lathe::lower
