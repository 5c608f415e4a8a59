// What the primitives that make or move a nest share: which part of a buffer is touched, and a nest over a part of a
// block's domain.
#pragma once

#include "schedule/analysis/dependence.h"
#include "schedule/primitives/rewrite.h"

namespace lathe::schedule {

// One interval a dimension, in terms of variables outside of what was looked at.
struct Region {
  std::vector<Interval> dimensions;
  bool exact = true;  // every element in it is touched
};

// What accesses for which `chosen` holds touch, over all loops in their lists that `fixed` does not contain. Nothing
// where no interval can be given, or none is chosen.
std::optional<Region> touched(const std::vector<Access>& list, support::function_ref<bool(const Access&)> chosen,
                              const std::vector<const For*>& fixed = {});

// Whether no element is in both regions, and whether `outer` holds all of `inner` in every iteration of the loops;
// false where it cannot be told.
bool apart(const Region& a, const Region& b);
bool holds(const Region& outer, const Region& inner, const std::vector<const For*>& loops = {});

// Whether the instances of the block at the path's end are exactly those of its domain's intervals: the predicate cuts
// off only what lies outside of the variables' domains.
bool predicate_is_domain(const Path& path);

// Whether the loops (all that its values depend on in its scope) run every instance of the block's domain, each once.
bool runs_whole_domain(const BlockRealize& realize, const std::vector<const For*>& loops);

// The block run for the values of its variables in `parts` (one interval a variable), in loops named after its
// variables; instances outside `domains` (one a variable) are cut off by a predicate where they cannot be excluded.
// Spatial loops come first. Loops of one iteration are left out unless `keep_unit_loops`.
Stmt nest_over(const Ref<Block>& block, const std::vector<Interval>& parts, const std::vector<Interval>& domains,
               const Path& where, bool keep_unit_loops, Id& next);

// A block, and the loop that it is to be computed under.
struct Move {
  Path path, target;  // to the block, and to the loop
  const BlockRealize& realize() const { return *path.back().as<BlockRealize>(); }
  const For& loop() const { return *target.back().as<For>(); }
  Diagnostic problem(const support::Code& code, const std::string& why) const;
};
// Refuses what no block could do, whichever way it goes.
Result<Move> move_under(const Program& program, Id block, Id loop);
// Why its instances may not come in another order: two with other variables may write one element.
std::optional<Diagnostic> instances_meet(const Program& program, const Move& move);

// The function with the nest as statement `at` of the loop's body, and without the block where it was.
Function moved_to(const Program& program, const Move& move, const Stmt& nest, size_t at);

// The number of the statement before which something comes, as `index` says: one from `first` to `last`, or one of the
// two places that stand for these.
Result<size_t> place_of(int64_t index, size_t first, size_t last);
// The least such number for something that comes behind whatever of `statements` touches what it writes, or writes what
// it reads.
size_t behind_all(const std::vector<Stmt>& statements, const Stmt& something);

// All of the buffer.
std::vector<Interval> whole(const Buffer& buffer);
// What the block at the path's end can touch of the buffer, each time that path[at] runs, one interval a dimension:
// where its predicate cuts instances off, a dimension that a variable indexes ends with the variable's domain. Nothing
// where that cannot be told, or where the predicate may leave out all of them.
std::optional<std::vector<Interval>> bounds_of(const Path& path, size_t at, const Buffer& buffer);

// A block that copies `from` to `to` (same shape) over the region, clipped to `bounds`.
Stmt copy_nest(const std::string& name, const Buffer& from, const Buffer& to, const Region& region,
               const std::vector<Interval>& bounds, const Path& where, Id& next, Id& block_id);

// Why a loop on the path that runs at once no longer may, in what the program is edited to.
std::optional<Diagnostic> refuse_parallel_above(const Program& before, const Function& after, const Path& path,
                                                std::string_view verb);

}  // namespace lathe::schedule
