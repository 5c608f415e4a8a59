#include "support/nearest.h"

#include <algorithm>
#include <vector>

namespace lathe::support {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Twice the changes between two names (Wagner and Fischer, 1974).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = 2 * j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = 2 * i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : lower(a[i - 1]) == lower(b[j - 1]) ? 1 : 2;
      const size_t best = std::min({diagonal + change, row[j] + 2, row[j - 1] + 2});
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view name, std::span<const std::string_view> known) {
  const auto closer = [&](std::string_view a, std::string_view b) { return distance(name, a) < distance(name, b); };
  const auto found = std::min_element(known.begin(), known.end(), closer);
  return found == known.end() ? std::string_view() : *found;
}

}  // namespace lathe::support
