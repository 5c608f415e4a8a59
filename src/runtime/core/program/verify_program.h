// Accepts or refuses the bytes of a register program before anything is done with them: every offset, size, index and
// count is checked in 64 bits, operands against their letters in abi/instructions.def, register kinds against what the
// instructions read and write. What depends on values (shapes, sizes, positions) is checked when it runs.
#pragma once

#include "abi/program.h"

namespace lathe::runtime {

struct ProgramSurroundings {
  const void* weights;
  uint64_t weights_bytes;
  uint64_t kernel_count;
};

// Functions that call each other may nest this deep.
inline constexpr uint32_t max_call_depth = 64;

// 0 with the view filled, or LATHE_INVALID_ARTIFACT with the error said.
int32_t verify_program(const void* bytes, uint64_t size, const ProgramSurroundings& around, abi::ProgramView* view);

}  // namespace lathe::runtime
