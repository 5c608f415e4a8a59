// Whether a block computes what the description of a tensor intrinsic says, and on which part of which buffers.
#pragma once

#include "ir/visit.h"
#include "schedule/program.h"
#include "tir/intrinsics/context.h"

namespace lathe::schedule {

// The part of the program's buffer that one buffer of the intrinsic is: the last dimensions of the region are those of
// the intrinsic's buffer, the ones before are single elements.
struct MatchedBuffer {
  Buffer buffer;
  std::vector<Range> region;
};

struct IntrinMatch {
  std::vector<MatchedBuffer> buffers;  // by parameter
  VarMap symbols;                      // the sizes that the description leaves open
};

// Compares up to names, the order of the operands of sums and products, loops of one iteration, and where in the
// program's buffers the intrinsic's lie. Indices are compared by what they are equal to, everything else by form.
// `around` are the loops around the block. The diagnostic shows where the two differ.
Result<IntrinMatch> match_intrin(const std::string& name, const TensorIntrin& intrin, const BlockRealize& realize,
                                 const std::vector<const For*>& around);

}  // namespace lathe::schedule
