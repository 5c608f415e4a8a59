// Whether the iterations of a loop depend on one another.
#pragma once

#include "schedule/analysis/conflicts.h"
#include "schedule/analysis/tree.h"

namespace lathe::schedule {

// Why iterations of a loop are not independent.
struct Carried {
  Buffer buffer;
  const Block* block = nullptr;  // of the reduction, when it is one
  std::string reason;            // "iterations of loop 'k' accumulate into the same element of 'C' …"
  Conflict conflict;             // two of the iterations, where some were found; what stands in the way of a proof else
  bool is_reduction() const { return block != nullptr; }
};

// The dependences between different iterations of `loop` that could not be excluded; empty: every order, and any
// number at once, gives the same result. A buffer whose values live inside one iteration does not count: `function`
// says who else touches it. What is already in `proofs` is not proved again.
std::vector<Carried> carried_by(const For& loop, const PrimFunc& function, Proofs* proofs);

// Two of its iterations that touch one element of the buffer, updates of one sum too, where some are found.
Conflict iterations_that_meet(const For& loop, const PrimFunc& function, const Buffer& buffer);

// Whether the loops around a reduction start at the minimum of its reduce axes, so that its init runs there; nothing
// where that cannot be told.
std::optional<bool> runs_init(const BlockRealize& realize, const std::vector<const For*>& loops);

// The accesses among `all` to the buffer by the block (or by others than it).
AccessList accesses_of(const std::vector<Access>& all, const Buffer& buffer, const Block& block);
AccessList accesses_of_others(const std::vector<Access>& all, const Buffer& buffer, const Block& block);

// Two instances of the block at the path's end, in one iteration of the loops above `inside` (a loop of the path, or
// null: of none), that write one element and have different spatial variables: then it matters in which order they
// come.
Conflict instances_that_meet(const PrimFunc& function, const Path& path, const For* inside = nullptr);

// Whether no iteration of `loop` writes an element of `buffer` that another touches.
bool disjoint_across(const For& loop, const Buffer& buffer, Proofs* proofs);

// Two instances in the nest `chain` (outermost first, each the only statement of the one above) that touch one element,
// the first before the second, where now the second comes first: `reversed` is the condition for that, over the values
// of the chain's variables in the first and the second. Updates of one reduction do not count, nor does a buffer whose
// values live inside one iteration of the innermost loop.
Conflict reordered_by(const std::vector<const For*>& chain, const PrimFunc& function,
                      support::function_ref<Expr(const VarMap& first, const VarMap& second)> reversed);

// Whether `buffer` is allocated by the function, touched only inside `loop`, and each iteration reads only what it
// wrote before.
bool private_to_iteration(const For& loop, const Buffer& buffer, const PrimFunc& function);

}  // namespace lathe::schedule
