// How many rows of scores attention keeps in the cache.
#pragma once

#include <optional>

#include "target/target.h"

namespace lathe::schedule {

// Rows of a block: its scores, and what softmax makes of them, stay in the second cache between the two products,
// unless a few rows are more than that holds. Where no fitting number divides the rows, or their number is not known,
// it is one of whole tiles, and the last block a shorter one.
int64_t attention_rows(std::optional<int64_t> rows, std::optional<int64_t> keys, const target::Target& target);

}  // namespace lathe::schedule
