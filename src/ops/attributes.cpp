#include "ops/attributes.h"

#include <charconv>

namespace lathe::ops {

int64_t packed_lanes(std::string_view layout, std::string_view prefix, std::string_view suffix) {
  if (!layout.starts_with(prefix) || !layout.ends_with(suffix) || layout.size() <= prefix.size() + suffix.size())
    return 0;
  const std::string_view digits = layout.substr(prefix.size(), layout.size() - prefix.size() - suffix.size());
  int64_t lanes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), lanes);
  return error == std::errc() && end == digits.data() + digits.size() && lanes > 0 ? lanes : 0;
}

}  // namespace lathe::ops
