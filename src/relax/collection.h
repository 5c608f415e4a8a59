// Sequences and optionals of tensors: operators whose rows lowering and the interpreter know. All are pure; a sequence
// that is inserted into stays as it was.
//
//   s = R.make_sequence(x, y, sinfo_args=[R.Tensor(ndim=2, dtype="float32")])
//   t = R.sequence_insert(s, z, position, sinfo_args=[…])    u = R.sequence_erase(t, position)
//   x = R.sequence_at(u, position)                           n = R.sequence_length(u)
//   y = R.join_sequence(u, new_axis=False)                   s = R.split_sequence(y, sizes, keep_axis=True)
//   o = R.make_optional(x, sinfo_args=[…])                   b = R.optional_has(o)    x = R.optional_get(o)
//
// Positions are scalars of int32 or int64, counted from the end where they are negative; without one an element is
// inserted or erased at the end. `sinfo_args` says what all elements are. An element of unknown rank is none: such a
// sequence is empty. Elements that may be of several ranks are R.Object(): such a sequence is handed on, changed and
// counted, but nothing of it is read.
#pragma once

#include "relax/operator.h"

namespace lathe::relax {

extern const Operator make_sequence_operator;
extern const Operator sequence_insert_operator;
extern const Operator sequence_erase_operator;
extern const Operator sequence_at_operator;
extern const Operator sequence_length_operator;  // a scalar of int64
extern const Operator make_optional_operator;
extern const Operator optional_has_operator;  // a scalar of bool
extern const Operator optional_get_operator;

// The elements one after the other along their first axis, or, with `new_axis`, along a new one. Of one rank at least;
// at run time there is an element at least.
struct JoinSequenceAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "JoinSequenceAttributes";
  bool new_axis = false;
  static constexpr auto fields() { return std::tuple{field("new_axis", &JoinSequenceAttributes::new_axis)}; }
};
extern const Operator join_sequence_operator;

// Parts of a tensor along its first axis. `sizes` is a vector with their extents, which add up to the axis's, or a
// scalar: parts of that extent, the last one maybe smaller. Without `keep_axis` parts have an extent of 1, and lose it.
struct SplitSequenceAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "SplitSequenceAttributes";
  bool keep_axis = true;
  static constexpr auto fields() { return std::tuple{field("keep_axis", &SplitSequenceAttributes::keep_axis)}; }
};
extern const Operator split_sequence_operator;

// What is known of a value that may be of either type; null where there is no such type.
StructInfo joined(const StructInfo& a, const StructInfo& b);
// The same of elements of one sequence, whose ranks may differ.
StructInfo joined_elements(const StructInfo& a, const StructInfo& b);
// The type without extents that are no constants: what an element of a sequence is said to be.
StructInfo element_info(const StructInfo& info);

}  // namespace lathe::relax
