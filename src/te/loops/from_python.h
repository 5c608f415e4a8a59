// Plain Python functions of loops over arrays, as tensor functions: `for … in range`, subscripts, `+=`, `max`.
#pragma once

#include "script/scope.h"
#include "support/result.h"
#include "tir/stmt.h"

namespace lathe::te {

// What a parameter of the Python function is: an array, or, without a shape, a number.
struct ParameterSpec {
  std::string name;
  std::optional<std::vector<std::variant<int64_t, std::string>>> shape;  // a string names a symbolic dimension
  ir::DType dtype = ir::DType::float32();
};

// The one function in `text` as a module of one tensor function of its name, its parameters in the function's order.
// Blocks are inferred: one for each assignment, its loops spatial where they choose the element that is written,
// reduce where they accumulate into it, else in order (opaque). A local variable becomes an array over the loops around
// it, so that no two iterations share it. Refuses with line and column what it cannot say as a tensor function.
support::Result<ir::IRModule> from_python(support::SourceText text, const std::vector<ParameterSpec>& parameters,
                                          const script::ParseOptions& options = {});

}  // namespace lathe::te
