// What `split_batch` and `row_strips` leave in a legalized function: a strided_slice is a part of a tensor along its
// rows (its first axis, or the first behind axes of extent one), whose memory it lies in, and a concat is what parts
// along the rows come to, which were computed where they belong.
#pragma once

#include "relax/operator.h"

namespace lathe::lower {

// rows [begin, end) of args[0].
bool is_batch_part(const relax::Expr& e);
// args, one behind another along the rows, all of known sizes; of one: a copy of a part, in memory of its own.
bool is_joined_batch(const relax::Expr& e);

relax::Expr batch_part(const relax::Expr& whole, int64_t begin, int64_t end, size_t axis = 0);
relax::Expr joined_batch(const std::vector<relax::Expr>& parts, size_t axis = 0);

// Of a part: elements of the whole in front of it.
int64_t first_element(const relax::Call& part);

}  // namespace lathe::lower
