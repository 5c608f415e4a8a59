// Whether the iterations of a loop depend on one another.
#pragma once

#include "schedule/analysis/proofs.h"

namespace lathe::schedule {

// Why iterations of a loop are not independent.
struct Carried {
  Buffer buffer;
  const Block* block = nullptr;  // of the reduction, when it is one
  std::string reason;            // "iterations of loop 'k' accumulate into the same element of 'C' …"
  bool is_reduction() const { return block != nullptr; }
};

// The dependences between different iterations of `loop` that could not be excluded; empty: every order, and any
// number at once, gives the same result. A buffer whose values live inside one iteration does not count: `function`
// says who else touches it. What is already in `proofs` is not proved again.
std::vector<Carried> carried_by(const For& loop, const PrimFunc& function, Proofs* proofs);

// Whether the loops around a reduction start at the minimum of its reduce axes, so that its init runs there; nothing
// where that cannot be told.
std::optional<bool> runs_init(const BlockRealize& realize, const std::vector<const For*>& loops);

// Whether different iterations of `loop` touch different elements of `buffer`.
bool disjoint_across(const For& loop, const Buffer& buffer, Proofs* proofs);

// Whether `buffer` is allocated by the function, touched only inside `loop`, and each iteration reads only what it
// wrote before.
bool private_to_iteration(const For& loop, const Buffer& buffer, const PrimFunc& function);

}  // namespace lathe::schedule
