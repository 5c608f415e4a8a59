// How operators are tested: small arrays of doubles, run through the graph oracle in a dtype, with constant and with
// symbolic extents, and compared with a reference that the test computes by plain loops.
#pragma once

#include <gtest/gtest.h>

#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::ops::testing {

using ir::DType;
using Extents = std::vector<int64_t>;

// Values of any dtype as doubles (int64 tests stay within 2^53).
struct Array {
  DType dtype;
  Extents shape;
  std::vector<double> values;

  int64_t elements() const;
  double& at(const Extents& index) { return values[static_cast<size_t>(offset(index))]; }
  double at(const Extents& index) const { return values[static_cast<size_t>(offset(index))]; }
  int64_t offset(const Extents& index) const;
};
Array zeros(DType dtype, Extents shape);
Array array(DType dtype, Extents shape, std::vector<double> values);
// Uniform in [low, high], rounded to the dtype; the same for the same seed.
Array random_array(DType dtype, Extents shape, uint64_t seed, double low = -4, double high = 4);
ir::TensorData to_data(const Array& a);
Array from_data(const ir::TensorData& data);

// Calls `f` with every index of the shape, in row-major order.
void for_each_index(const Extents& shape, const std::function<void(const Extents&)>& f);
// The index into `shape` that broadcasts to `index`.
Extents broadcast_index(const Extents& shape, const Extents& index);
// `f` of the inputs' elements, broadcast to `shape`.
Array map(DType dtype, const Extents& shape, const std::vector<Array>& inputs,
          const std::function<double(const std::vector<double>&)>& f);

// An argument: a tensor, a shape, or an absent optional one.
using Argument = std::variant<std::monostate, Array, Extents>;
struct RunOptions {
  bool symbolic = true;  // run again with every extent from 2 on a symbol
};
// The operator's outputs; constant and symbolic runs must agree to the bit.
std::vector<Array> run(const Operator& op, const std::vector<Argument>& args, relax::AttributesRef attributes = {},
                       const RunOptions& options = {});
// The diagnostics of the type rule; empty when it accepts.
support::Diagnostics refusal(const Operator& op, const std::vector<Argument>& args,
                             relax::AttributesRef attributes = {});

// Equal shapes and dtypes; integers equal; floats within `units` units in the last place of the dtype, measured at the
// larger of the value and `scale`; NaN with NaN.
::testing::AssertionResult close(const Array& actual, const Array& expected, double units = 4, double scale = 1);
// The value as the dtype holds it.
double rounded(DType dtype, double value);

inline const std::vector<DType> floats{DType::float32(), DType::float_(64), DType::float_(16), DType::bfloat16()};
inline const std::vector<DType> integers{DType::int_(8), DType::int_(16), DType::int_(32), DType::int_(64),
                                         DType::uint(8), DType::uint(16), DType::uint(32), DType::uint(64)};

}  // namespace lathe::ops::testing
