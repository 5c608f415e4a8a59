// The Python functions that tensor programs written back as loops over NumPy need, each written only where it is used.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::tir {

// The names that these functions and the text itself use: none of the program's own.
std::vector<std::string_view> numpy_words();

// Imports and the helpers of these names with what they need. "ml_dtypes" among the names: its import.
std::string numpy_prelude(const std::set<std::string_view>& used);

}  // namespace lathe::tir
