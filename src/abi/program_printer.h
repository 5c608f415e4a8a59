// A verified register program as text, one instruction a line, for `--emit program` and for reading in a debugger:
//
//   fn main(%0 x: float32[?, 3]) -> 1
//     0  alloc_tensor %1 storage 0 2 [4 3]             ; Add_1
#pragma once

#include <string>

#include "program.h"

namespace lathe::abi {

inline std::string dtype_name(DLDataType dtype) {
  static constexpr const char* names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  if (dtype.code == kDLBool) return "bool";
  std::string name = dtype.code <= 6 ? names[dtype.code] : "float" + std::to_string(dtype.code) + "_";
  name += std::to_string(dtype.bits);
  return dtype.lanes > 1 ? name + "x" + std::to_string(dtype.lanes) : name;
}

namespace printer {

inline std::string dims(const ProgramView& program, uint32_t first, int64_t rank) {
  if (rank < 0) return "[...]";
  std::string out = "[";
  for (int64_t i = 0; i < rank; ++i) {
    const DimRecord& dim = program.dims[first + static_cast<uint64_t>(i)];
    if (i > 0) out += ", ";
    out += dim.size >= 0 ? std::to_string(dim.size) : dim.symbol == absent ? "?" : program.text(dim.symbol);
  }
  return out + "]";
}

inline std::string port(const ProgramView& program, const PortRecord& port) {
  std::string out = std::string(program.text(port.name)) + ": ";
  if (port.kind == ValueKind::tensor) return out + dtype_name(port.dtype) + dims(program, port.first_dim, port.rank);
  return out + value_kind_names[static_cast<int>(port.kind)];
}

inline std::string scalar(const ProgramView& program, uint32_t word) {
  if (word == absent) return "_";
  if ((word & immediate_bit) != 0) return std::to_string(program.integers[word & ~immediate_bit]);
  return "%" + std::to_string(word);
}

inline std::string operand(const ProgramView& program, char letter, uint32_t word) {
  const std::string number = word == absent ? "_" : std::to_string(word);
  switch (letter) {
    case 'S':
    case 'D':
      return scalar(program, word);
    case 'c':
      return "constant " + number;
    case 'm':
      return word == absent ? "_" : "\"" + std::string(program.text(word)) + "\"";
    case 'a':
      return "attributes " + number;
    case 'k':
      return std::string("@") + program.text(program.kernels[word].name);
    case 'r':
      return std::string("@") + program.text(program.runtime_kernels[word].name);
    case 'b':
    case 'B':
      return "storage " + number;
    case 'f':
      return std::string("@") + program.text(program.functions[word].name);
    case 'l':
      return "-> " + number;
    default:
      return word == absent ? "_" : "%" + number;
  }
}

inline std::string instruction(const ProgramView& program, const InstructionRecord& at) {
  const OpcodeRow& row = opcode_rows[static_cast<uint16_t>(at.opcode)];
  std::string out = row.name;
  const uint32_t* word = program.operands.records + at.first_operand;
  for (const char* letter = row.operands; *letter != 0; ++letter) {
    if (*letter != '#') {
      out += " " + operand(program, *letter, *word++);
      continue;
    }
    const uint32_t count = *word++;
    ++letter;
    out += " (";
    for (uint32_t i = 0; i < count; ++i) out += (i > 0 ? ", " : "") + operand(program, *letter, *word++);
    out += ")";
  }
  if (at.node != absent)
    out += std::string(out.size() + 1 < 60 ? 60 - out.size() : 1, ' ') + "; " + program.text(at.node);
  return out;
}

inline std::string function(const ProgramView& program, const FunctionRecord& function) {
  std::string out = std::string("fn ") + program.text(function.name) + "(";
  for (uint32_t i = 0; i < function.register_count; ++i) {
    const RegisterRecord& at = program.registers[function.first_register + i];
    if (i == function.parameter_count) out += ") -> " + std::to_string(function.result_count) + "\n";
    out += i < function.parameter_count ? (i > 0 ? ", %" : "%") : "  let %";
    out += std::to_string(i);
    if (at.name != absent) out += std::string(" ") + program.text(at.name);
    out += std::string(": ") + value_kind_names[static_cast<int>(at.kind)];
    if (at.kind == ValueKind::tensor)
      out += " " + dtype_name(at.dtype) + (at.rank < 0 ? "" : " rank " + std::to_string(at.rank));
    if (i >= function.parameter_count) out += "\n";
  }
  if (function.register_count == function.parameter_count)
    out += ") -> " + std::to_string(function.result_count) + "\n";
  for (uint32_t i = 0; i < function.instruction_count; ++i) {
    const std::string number = std::to_string(i);
    out += std::string(number.size() < 5 ? 5 - number.size() : 0, ' ') + number + "  ";
    out += instruction(program, program.instructions[function.first_instruction + i]) + "\n";
  }
  return out;
}

}  // namespace printer

inline std::string print_program(const ProgramView& program) {
  std::string out = "program version " + std::to_string(program_version) + "\n";
  for (const PortRecord& port : program.inputs) out += "input " + printer::port(program, port) + "\n";
  for (const PortRecord& port : program.outputs) out += "output " + printer::port(program, port) + "\n";
  for (uint64_t i = 0; i < program.states.count; ++i) {
    const StateRecord& at = program.states[i];
    out += std::string("state ") + program.text(program.inputs[program.given_inputs() + i].name);
    if (at.output != absent)
      out += std::string(" becomes ") + program.text(program.outputs[at.output].name) + "\n";
    else
      out += std::string(" is written in place: ") +
             program.text(program.inputs[program.given_inputs() + at.length].name) + " elements along axis " +
             std::to_string(at.axis) + "\n";
  }
  for (uint64_t i = 0; i < program.constants.count; ++i) {
    const ConstantRecord& at = program.constants[i];
    out += "constant " + std::to_string(i) + " " + program.text(at.name) + ": ";
    out += at.kind == ValueKind::strings ? "strings" : dtype_name(at.dtype);
    out += printer::dims(program, at.first_dim, at.rank);
    out += at.section == ConstantSection::weights ? " at weights + " : " at data + ";
    out += std::to_string(at.offset) + ", " + std::to_string(at.bytes) + " bytes\n";
  }
  for (uint64_t i = 0; i < program.arenas.count; ++i) {
    const ArenaRecord& at = program.arenas[i];
    out += "arena " + std::to_string(i) + " on " + backend_names[static_cast<int>(at.device)] + ": " +
           std::to_string(at.bytes) + " bytes\n";
  }
  for (uint64_t i = 0; i < program.storages.count; ++i) {
    static constexpr const char* kinds[] = {" in arena ", " of dynamic size ", " of output "};
    const StorageRecord& at = program.storages[i];
    out += "storage " + std::to_string(i) + kinds[static_cast<int>(at.kind)] + std::to_string(at.index) + " + " +
           std::to_string(at.offset) + ", " + std::to_string(at.bytes) + " bytes\n";
  }
  for (const FunctionRecord& function : program.functions) out += "\n" + printer::function(program, function);
  return out;
}

}  // namespace lathe::abi
