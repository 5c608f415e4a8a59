// Which parts of buffers a statement touches.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

struct Regions {
  std::vector<BufferRegion> reads, writes;
};

// The annotation of a block some of whose accesses the user has hidden: what it declares is believed.
inline constexpr const char* hidden_access_key = "unsafe_hidden_access";

// The annotations of a block that says itself which parts it reads or writes of some buffers: a list of their numbers
// among what it declares. Where memory is made smaller, these regions count instead of the indices in its body.
inline constexpr const char* explicit_read_region_key = "explicit_read_region";
inline constexpr const char* explicit_write_region_key = "explicit_write_region";

// What `s` reads and writes, one region a buffer, in order of first access. Variables bound inside `s` are widened to
// their whole range; an index that cannot be bounded gives the whole dimension. Nested blocks count by their declared
// regions. Buffers declared or allocated inside are left out, and so is what never runs: in
// loops of extent 0, in nested blocks without instances.
Regions access_regions(const Stmt& s);

// What an instance of a block reads and writes, for its declaration. As in the vocabulary of TensorIR, what a
// reduction's update reads of the element that its init writes is not a read. An address that is taken counts as a read
// of its element, and where a function is given it as all of the buffer; without `addresses_touch` it counts for
// nothing, for what the user says of it is believed.
Regions infer_regions(const Block& block, bool addresses_touch = true);

// What the body of a block touches in each instance, whatever its inner blocks declare: accesses under conditions and
// predicates, through views, and of blocks that are believed are left out.
Regions certain_regions(const Block& block);

// False where a variable of the block has no values at all, so that it never runs.
bool has_instances(const Block& block);

// The smallest and the largest value of `e` when each variable of `domains` runs over its range, as expressions of the
// other variables; nothing where `e` is not monotone in a way that shows.
struct Interval {
  Expr min, max;
};
using Domains = std::unordered_map<const VarNode*, Range>;
std::optional<Interval> interval_of(const Expr& e, const Domains& domains);

}  // namespace lathe::tir
