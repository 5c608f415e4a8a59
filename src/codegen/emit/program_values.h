// What code generation may keep out of the runtime's hands in a function of the register program.
//
// Shape scalars are machine integers. A tensor register is *lent* when everything that writes it makes a tensor of one
// rank in memory that outlives the run: planned storages, storages of dynamic size, constants, and views or moves of
// such tensors. It is an address and sizes then, and no object of the runtime's.
#pragma once

#include "abi/program.h"
#include "support/std.h"

namespace lathe::codegen {

struct LentTensor {
  uint32_t rank = 0;
  bool is_constant = false;                  // must not be written to
  std::optional<std::vector<int64_t>> dims;  // where they are the same whatever wrote it
};

struct ProgramValues {
  std::vector<std::optional<LentTensor>> lent;  // one a register of the function
  std::vector<bool> has_one_writer;             // one a register: an instruction before all readers, and no other
  std::vector<bool> is_label;                   // one an instruction: others jump to it
  std::vector<bool> is_reached;                 // one an instruction
};

// None where the function has to be interpreted: a register might be read before it has a value, or a device is asked
// that is not the host. For a program that the runtime's verifier would accept.
std::optional<ProgramValues> analyse_function(const abi::ProgramView& program, const abi::FunctionRecord& function);

// The extent of a tensor of fixed dims; none where there is no such tensor.
std::optional<uint64_t> tensor_bytes(DLDataType dtype, std::span<const int64_t> dims);

// Whether the instruction reads, and whether it writes, the operand with that letter of abi/instructions.def.
bool reads_operand(abi::Opcode opcode, char letter);
bool writes_operand(char letter);
// Whether the word of an operand with that letter is a register.
bool is_register(char letter, uint32_t word);

}  // namespace lathe::codegen
