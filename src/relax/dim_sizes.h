// What is told of the sizes that a symbolic dimension takes: a function's attributes hold it by the symbol's name.
//
//   R.func_attr({"tir_var_lower_bound": {"batch": 1}, "tir_var_upper_bound": {"batch": 64},
//                "tir_var_likely": {"batch": [8]}})
#pragma once

#include "relax/assert_op.h"

namespace lathe::relax {

struct DimSizes {
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
  int64_t least = 0, most = unlimited;
  std::vector<int64_t> likely;  // sizes in these bounds for which kernels are made besides those for any size

  DimSizes() = default;
  DimSizes(int64_t fixed) : least(fixed), most(fixed) {}  // NOLINT: a number is a dimension's only size
  DimSizes(int64_t least, int64_t most, std::vector<int64_t> likely)
      : least(least), most(most), likely(std::move(likely)) {}
  bool operator==(const DimSizes&) const = default;

  std::optional<int64_t> fixed() const { return least == most ? std::optional(least) : std::nullopt; }
  bool allows(int64_t size) const { return least <= size && size <= most; }
};
using DimSizesByName = std::map<std::string, DimSizes>;

// "8", "1..64", "1..64:8", "1..64:1,8", "1..": as the option --dim has it. Diagnostic: relax-wrong-sizes.
Result<DimSizes> parse_dim_sizes(const std::string& name, std::string_view text);
std::string to_string(const DimSizes& sizes);

void tell_sizes(ir::Attributes& attributes, const std::string& symbol, const DimSizes& sizes);
// Diagnostic: relax-wrong-sizes, where an attribute of these names holds something else.
Result<DimSizesByName> told_sizes(const FunctionNode& function);
// What must hold of the sizes that the function's parameters bring; each message names the parameter and its dimension.
Result<std::vector<Assert>> size_checks(const FunctionNode& function);

}  // namespace lathe::relax
