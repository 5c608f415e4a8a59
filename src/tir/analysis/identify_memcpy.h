// Loop nests that copy one piece of memory to another, so that one call of memcpy would do.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

struct Memcpy {
  BufferRegion source, destination;
};

// The outermost nests under `s` that are copies, in order. The iterations of such a nest together load each element of
// one contiguous region once and store it, as it is, to the element at the same distance from the start of another
// contiguous region. The loops may come in any order, and be fused or split.
// Left out is what is no copy, and what is not shown to be one: bodies of more than one store; conditions that are not
// shown to hold; indices that are not affine, count down, hold a load, or are of another dtype than int64; regions that
// are not one range a dimension; regions of the same memory that may overlap.
std::vector<Memcpy> identify_memcpy(const Stmt& s);

}  // namespace lathe::tir
