// Accesses that are certainly outside of their buffers, found before the program runs.
#pragma once

#include "ir/function.h"
#include "support/diagnostic.h"

namespace lathe::schedule {

// One diagnostic (tir-access-out-of-bounds) for each load and store of a tensor function of the module that is shown to
// have, in some iteration, an index below zero or not below the buffer's extent: with the buffer, the index, the values
// it takes, the extent, and one iteration that does so. Extents of loops, lanes of vectors, the values bound to blocks'
// variables, predicates, conditions, lets, assertions and assumptions count. Where parameters and symbolic extents
// decide, an access is reported if it is out of bounds for all their values for which it happens at all.
//
// What is not shown passes: indices, extents or conditions that hold loads, calls, products of variables, truncating
// divisions or narrow arithmetic that may wrap; accesses with masks, in a `while`, in loops that are left early, and
// after a return or what may stop the program; proofs beyond their budget. Addresses that are only taken are no access,
// and an access to a view counts as one to what it is a view of.
support::Diagnostics find_out_of_bounds(const ir::IRModule& module);

}  // namespace lathe::schedule
