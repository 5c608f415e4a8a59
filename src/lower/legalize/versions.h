// Kernels for sizes that are told to be likely, or to be equal, beside the kernel for any size. The kernel's attribute
// says when which of them does its work:
//
//   T.func_attr({"versions": [{"function": "relu_at_8", "sizes": [[0, 8]], "scalars": []},
//                             {"function": "relu_equal", "sizes": [], "equal": [[1, 2]], "scalars": [0, 1]}]})
//
// where scalar 0 of the call is 8, `relu_at_8` is called with the same tensors and with none of its scalars; else,
// where scalars 1 and 2 are the same, `relu_equal` with two of them.
#pragma once

#include "ir/function.h"
#include "tir/stmt.h"

namespace lathe::lower {

struct Version {
  std::string function;
  std::vector<std::pair<int64_t, int64_t>> sizes;  // scalars of the call by position, and their values
  std::vector<std::pair<int64_t, int64_t>> equal;  // scalars that are the same, by position
  std::vector<int64_t> scalars;                    // those that the version is given, by position
};

ir::Value to_value(const std::vector<Version>& versions);
// Empty where the attribute is not there; what holds something else is left out.
std::vector<Version> versions_of(const tir::PrimFunc& function);
// The functions that are versions of kernels of the module.
std::set<std::string> versions_in(const ir::IRModule& module);

}  // namespace lathe::lower
