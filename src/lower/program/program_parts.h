// What the functions of one program share while it is written: tables, memory, and each other.
#pragma once

#include "abi/program_writer.h"
#include "lower/program/write_program.h"

namespace lathe::lower {

// A graph function of the program.
struct PlannedFunction {
  relax::Function function;
  MemoryPlan plan;
  int64_t first_byte = 0;  // of its part of the arena; what calls it has the parts before
  bool is_main = false;
};

struct ProgramParts {
  const ir::IRModule& module;
  abi::ProgramWriter writer;
  Program result;
  uint32_t arena = 0;
  std::map<std::string, PlannedFunction> functions;
  std::map<std::string, abi::FunctionWriter> writers;  // of the same functions
  std::unordered_map<support::Hash128, uint32_t> constants;
  std::unordered_map<const ir::Node*, uint32_t> known_constants;  // the same by node: a weight of many uses
  std::map<std::string, uint32_t> kernels, runtime_kernels;

  uint32_t constant(const ir::TensorData& data);
  uint32_t kernel(const std::string& name, uint32_t buffers, uint32_t scalars);
  uint32_t runtime_kernel(std::string_view name);
};

// Writes the instructions of the function of that name; the main one's ports as well.
support::Status write_function(ProgramParts& parts, const std::string& name);

}  // namespace lathe::lower
