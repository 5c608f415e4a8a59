// Runs a function of a verified register program on a context. Verified means that indices and kinds are right; what
// depends on values is checked here. Functions that are there as machine code run as that (compiled_functions.h),
// except in runs that are profiled or whose steps are counted.
#pragma once

#include "runtime/core/context.h"

namespace lathe::runtime {

// One function under way.
struct Frame {
  LatheContext& context;
  const abi::ProgramView& program;
  const abi::FunctionRecord& function;
  Slot* slots;                       // of this function
  const abi::InstructionRecord* at;  // the instruction being executed

  const char* node() const { return program.text(at->node); }
  const abi::RegisterRecord& reg(uint32_t index) const {
    return program.registers[function.first_register + uint64_t{index}];
  }
};

// The parameters are set already. The results are put into context.results, retained.
int32_t run_function(LatheContext& context, uint32_t function);

// ---- shared by the files of the interpreter ----

// The value of a register of any kind but scalar; null, with the error said, when it has none.
LatheValue* read_object(const Frame& frame, uint32_t reg);
// A register or an immediate.
bool read_scalar(const Frame& frame, uint32_t word, int64_t* scalar);
// Puts a value (a reference that is given up) into a register, if it is of the declared kind, dtype and rank.
int32_t write_object(const Frame& frame, uint32_t reg, LatheValue* value);
void write_scalar(const Frame& frame, uint32_t reg, int64_t scalar);
// A value of any kind as an object: a new reference. Scalars are boxed.
LatheValue* box(const Frame& frame, uint32_t reg);
int32_t unbox(const Frame& frame, uint32_t reg, LatheValue* value);
int32_t failed(const Frame& frame, int32_t code, const char* format, ...) __attribute__((format(printf, 3, 4), cold));

// The register's value becomes a tensor of its dtype in memory of somebody else's.
int32_t lend_tensor(const Frame& frame, uint32_t reg, void* data, const int64_t* dims, int32_t rank, bool is_constant);
// One instruction, but for those that choose the next one.
int32_t execute(const Frame& frame, const uint32_t* words);

// ---- one function an instruction; `words` are its operands ----

int32_t alloc_tensor(const Frame& frame, const uint32_t* words);
int32_t reserve_storage(const Frame& frame, const uint32_t* words);
int32_t load_constant(const Frame& frame, const uint32_t* words);
int32_t view(const Frame& frame, const uint32_t* words);
int32_t copy(const Frame& frame, const uint32_t* words);
int32_t match_shape(const Frame& frame, const uint32_t* words);
int32_t call_kernel(const Frame& frame, const uint32_t* words);
int32_t read_dim(const Frame& frame, const uint32_t* words);
int32_t read_rank(const Frame& frame, const uint32_t* words);
int32_t load_scalar(const Frame& frame, const uint32_t* words);
int32_t store_scalar(const Frame& frame, const uint32_t* words);

int32_t call_runtime_kernel(const Frame& frame, const uint32_t* words);
int32_t alloc_strings(const Frame& frame, const uint32_t* words);
int32_t copy_strings(const Frame& frame, const uint32_t* words);
int32_t make_tuple(const Frame& frame, const uint32_t* words);
int32_t tuple_get(const Frame& frame, const uint32_t* words);
int32_t make_sequence(const Frame& frame, const uint32_t* words);
int32_t sequence_insert(const Frame& frame, const uint32_t* words);
int32_t sequence_erase(const Frame& frame, const uint32_t* words);
int32_t sequence_at(const Frame& frame, const uint32_t* words);
int32_t sequence_length(const Frame& frame, const uint32_t* words);
int32_t make_optional(const Frame& frame, const uint32_t* words);
int32_t optional_has(const Frame& frame, const uint32_t* words);
int32_t optional_get(const Frame& frame, const uint32_t* words);
int32_t take_strings(const Frame& frame, const uint32_t* words);
int32_t give_strings(const Frame& frame, const uint32_t* words);

}  // namespace lathe::runtime
