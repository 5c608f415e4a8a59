// The linear register program of a legalized module: what the runtime interprets between kernels (abi/program.h).
#pragma once

#include "lower/plan/plan_memory.h"
#include "support/result.h"
#include "tir/stmt.h"

namespace lathe::lower {

// A constant in the weights section.
struct Weight {
  ir::TensorData data;
  int64_t offset = 0;  // bytes; a multiple of plan_alignment
};

struct Program {
  std::vector<char> bytes;           // the encoded program
  std::vector<std::string> kernels;  // PrimFuncs in the order of the program's table of kernels
  std::vector<std::string> runtime_kernels;
  std::vector<Weight> weights;  // in order of offset; equal contents are stored once
  int64_t weight_bytes = 0;
  int64_t arena_bytes = 0;  // of all functions
  MemoryPlan plan;          // of the main one

  std::string_view view() const { return {bytes.data(), bytes.size()}; }
};

// The program that runs relax function `main`, with the functions that it calls. Its parameters' names and shapes, and
// the names in the function's attribute "output_names" where there is one, are the artifact's signature.
support::Result<Program> write_program(const ir::IRModule& module, const std::string& main = "main");

}  // namespace lathe::lower
