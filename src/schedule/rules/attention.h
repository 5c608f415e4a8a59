// How many rows of scores attention keeps in the cache.
#pragma once

#include <optional>

#include "target/target.h"

namespace lathe::schedule {

// Rows of a block: its scores, and what softmax makes of them, stay in the second cache between the two products.
// Nothing where no number of rows does: the keys are too many, or no fitting number divides the rows.
std::optional<int64_t> attention_rows(int64_t rows, int64_t keys, const target::Target& target);

}  // namespace lathe::schedule
