// The instructions of a trace: one row a public primitive of Schedule, with how to run it from a trace.
#pragma once

#include "schedule/schedule.h"

namespace lathe::schedule {

struct InstructionKind {
  std::string_view name;  // of the method
  // Runs the instruction on `schedule`; the handles in it are those of `schedule`. Returns the handles it made.
  Result<std::vector<Argument>> (*run)(Schedule& schedule, const Instruction& instruction);
  bool returns_list = false;  // of handles; else one handle or none
};

// Where in the program an instruction is refused: the lines around the loops and blocks that it is given, and around
// the blocks that the refusal names. Empty where there are none.
std::string excerpt_of_refusal(const Schedule& schedule, const Instruction& instruction,
                               const support::Diagnostics& refusal);

const std::vector<InstructionKind>& instruction_kinds();
// The row with that name, or null.
const InstructionKind* find_instruction_kind(std::string_view name);

}  // namespace lathe::schedule
