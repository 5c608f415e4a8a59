// Loops and assignments without blocks, as blocks.
#pragma once

#include "arith/analyzer.h"
#include "arith/int_set.h"
#include "tir/stmt.h"

namespace lathe::te {

// `body` with every assignment in a block of its own. An axis of a block is spatial where each of its values writes an
// element of its own, reduce where its iterations accumulate into one element, else opaque: its iterations keep their
// order. An assignment of the start value right before the loops that accumulate becomes the block's init, where these
// loops surely run.
tir::Stmt infer_blocks(const tir::Stmt& body);

// The values that the variable of loop `at` takes, whatever those of the loops before it are. A DiagnosticError where
// that cannot be bounded.
ir::Range range_of_loop(const arith::Domain& loops, size_t at, arith::Analyzer& analyzer);

}  // namespace lathe::te
