// The places of constant tensors.
#pragma once

#include "support/function_ref.h"
#include "support/std.h"

namespace lathe::ops::build {

// Calls `visit` with each place of a row-major tensor and its coordinates, while it returns true; false where it did
// not.
inline bool each_place(const std::vector<int64_t>& shape,
                       support::function_ref<bool(int64_t place, const std::vector<int64_t>& at)> visit) {
  std::vector<int64_t> at(shape.size(), 0);
  const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  for (int64_t place = 0; place < count; ++place) {
    if (!visit(place, at)) return false;
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return true;
}

}  // namespace lathe::ops::build
