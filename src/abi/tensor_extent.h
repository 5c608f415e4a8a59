// What the runtime and compiled programs have to see alike in a tensor: how much it takes, and what can be read of it
// as a shape scalar.
#pragma once

#include <cstdint>

#include "dlpack.h"

namespace lathe::abi {

// Elements and bytes of a compact tensor. False on a negative size or past 2^62 bits.
inline bool tensor_extent(DLDataType dtype, int32_t rank, const int64_t* shape, int64_t* elements, uint64_t* bytes) {
  // Sizes are multiplied before zeros are looked at, so that [0, 2^62, 2^62] is refused too: strides must fit.
  uint64_t product = 1;
  bool is_empty = false;
  for (int32_t i = 0; i < rank; ++i) {
    if (shape[i] < 0) return false;
    if (shape[i] == 0) {
      is_empty = true;
      continue;
    }
    if (product > (uint64_t{1} << 60) / static_cast<uint64_t>(shape[i])) return false;
    product *= static_cast<uint64_t>(shape[i]);
  }
  const uint64_t bits = static_cast<uint64_t>(dtype.bits) * dtype.lanes;
  if (bits != 0 && product > (uint64_t{1} << 62) / bits) return false;
  *elements = is_empty ? 0 : static_cast<int64_t>(product);
  *bytes = is_empty ? 0 : (product * bits + 7) / 8;
  return true;
}

// Whether elements are integers or bools of whole bytes.
inline bool holds_scalars(DLDataType dtype) {
  const bool is_integer = dtype.code == kDLInt || dtype.code == kDLUInt || dtype.code == kDLBool;
  const bool is_whole = dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
  return is_integer && is_whole && dtype.lanes == 1;
}

}  // namespace lathe::abi
