// The name that somebody may have meant.
#pragma once

#include <span>
#include <string_view>

namespace lathe::support {

// The one of `known` that takes the fewest changes of a letter to come to, the first of several; capitals count as half
// a change. Empty where none is known.
std::string_view nearest(std::string_view name, std::span<const std::string_view> known);

}  // namespace lathe::support
