// Random tensors and the comparison of two: what `verify` measures with.
#pragma once

#include "ir/tensor_data.h"
#include "support/std.h"

namespace lathe::driver {

// Values that depend on the seed alone: floats normally distributed, integers small, booleans even.
ir::TensorData random_tensor(ir::DType dtype, std::vector<int64_t> shape, uint64_t seed);

struct Difference {
  int64_t compared = 0;      // elements
  double largest_error = 0;  // of any element
  double largest_value = 0;  // of what is expected
  int64_t wrong = 0;         // elements beyond the tolerance; NaN and infinities must agree
  std::string complaint;     // shapes or dtypes that differ

  // The largest error over the largest value.
  double relative() const { return largest_error / std::max(largest_value, 1e-30); }
  bool agrees() const { return complaint.empty() && wrong == 0; }
};

// How far results of this dtype may be apart, relative to the largest value: sums are taken in another order.
double tolerance_of(ir::DType dtype);

// Compares the elements at `positions` (row-major), or all where there are none given.
Difference compare(const ir::TensorDataNode& got, const ir::TensorDataNode& expected,
                   std::span<const int64_t> positions = {});

}  // namespace lathe::driver
