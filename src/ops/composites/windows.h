// What operators with windows share: layouts by letters, and numbers one a dimension.
#pragma once

#include "ops/composites/operands.h"

namespace lathe::ops::composites {

// "W", "HW" or "DHW".
std::string spatial_letters(size_t spatial);
// The argument, refused unless it is numeric and has `rank` dimensions.
const Value& numeric_tensor(const Expansion& e, size_t i, std::string_view name, size_t rank);
// Refused unless `given` is made of `letters` in any order.
void check_layout(const Expansion& e, std::string_view name, const std::string& given, const std::string& letters);
// The axes that bring what lies as `from` says to what `to` says.
Axes axes_between(const std::string& from, const std::string& to);
// One number a dimension: one for all, or as many as dimensions, each at least `least`.
std::vector<int64_t> one_each(const Expansion& e, std::string_view name, const std::vector<int64_t>& given,
                              size_t dimensions, int64_t least);
// Begins, then ends: from one number, one a dimension, or both.
std::vector<int64_t> begins_and_ends(const Expansion& e, const std::vector<int64_t>& given, size_t dimensions);
// A result that lies as `from` says, as `out` says; nothing given or "": as `otherwise` says.
Value laid_out(const Expansion& e, Value y, const std::string& from, const std::optional<std::string>& out,
               const std::string& otherwise);
// "[2, 3]"
std::string shape_text(const Value& x);

}  // namespace lathe::ops::composites
