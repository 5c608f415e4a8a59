// The name a user probably meant.
#pragma once

#include <span>
#include <string>

namespace lathe::target {

// The candidate nearest to `name` by edit distance, or "" when none is near.
std::string nearest(const std::string& name, std::span<const std::string> candidates);

}  // namespace lathe::target
