// Buffers without strides of their own.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// Whether the elements lie row by row, one behind another, from the first of the memory on.
inline bool is_compact(const BufferNode& buffer) {
  return buffer.strides.empty() && !buffer.elem_offset && buffer.axis_separators.empty();
}

}  // namespace lathe::tir
