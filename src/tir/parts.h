// Tensor programs that put tensors behind one another along an axis or take one apart, and programs that read and write
// such parts where they lie in the whole.
#pragma once

#include <optional>

#include "tir/stmt.h"

namespace lathe::tir {

// One part by the number of its parameter, and where it begins along the axis: in numbers and the function's scalars.
struct Part {
  size_t param;
  Expr begin;
};

// A concatenation or a split.
struct Parts {
  size_t axis = 0;
  std::vector<Part> parts;  // in order of their copies; of a concatenation this is the order along the axis
};

// A nest of one block that copies all of `from` into `to`, `begin` elements along `axis` behind its first.
Stmt copy_into_part(const std::string& block, const Buffer& from, const Buffer& to, size_t axis, const Expr& begin);

// What `function` does when it is nothing but copies that fill its last tensor with all others, each read once, along
// one axis.
std::optional<Parts> as_concatenation(const PrimFunc& function);
// What it does when it is nothing but copies that fill each parameter behind the first with a part of that, along one
// axis.
std::optional<Parts> as_split(const PrimFunc& function);

// `function` with the copies of some parts of a concatenation alone, and without the tensors of the others.
Function with_parts(const PrimFunc& function, const Parts& concatenation, const std::vector<bool>& kept);

// Whether every use of parameter number `param` is a load, a store or a region, of a compact tensor.
bool has_plain_uses(const PrimFunc& function, size_t param);
// Whether that is so in a function that has no versions, whose scalars are behind its tensors.
bool can_be_part(const PrimFunc& function, size_t param);

// `function` whose parameter number `param` is a part of a tensor that has `extent` elements along `axis`: the first
// ones, or where `at_start` is false from an index on that becomes its last scalar parameter, so that parts in many
// places have one kernel. What adds up a result in place gets memory of its own and copies it there, which schedules
// fuse.
Function with_part_of_whole(const PrimFunc& function, size_t param, size_t axis, int64_t extent, bool at_start);

}  // namespace lathe::tir
