// A value of the graph while it is imported: a tensor, or integers that are known (constants, or expressions over
// symbolic dimensions), or both. Integers that only shapes need never become tensors.
#pragma once

#include "relax/infer.h"

namespace lathe::onnx {

using Integers = std::vector<ir::Expr>;  // int64, row-major

struct GraphValue {
  relax::Expr tensor;  // null while only its integers are known
  std::optional<Integers> integers;
  std::vector<int64_t> dims;      // of the integers
  ir::DType dtype;                // of the integers: int32, int64 or bool
  std::string given_by;           // for notes: "the output of 'MatMul_3'", "the initializer 'w'"
  bool failed = false;            // its node was refused; what depends on it is skipped
  bool is_computed_once = false;  // from constants alone, so that folding computes it
  bool is_fixed() const { return is_computed_once || tensor.is<relax::Constant>(); }
};

// Integers of more elements are not tracked.
inline constexpr int64_t most_integers = 4096;

// The integers of a constant tensor of int32, int64 or bool of few elements, or nothing.
std::optional<Integers> integers_of(const ir::TensorDataNode& data);
// The tensor of integers that are all constants, or null.
ir::TensorData tensor_of(const GraphValue& value);
// The constants among the integers, or nothing when one is not.
std::optional<std::vector<int64_t>> constants_of(const Integers& integers);

}  // namespace lathe::onnx
