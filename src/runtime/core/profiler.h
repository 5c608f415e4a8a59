// Where the time of a context's runs goes: by instruction, and by the spans that kernels mark themselves.
#pragma once

#include <cstdint>

#include "abi/lathe.h"
#include "abi/program.h"
#include "runtime/core/vector.h"

namespace lathe::runtime {

int64_t monotonic_nanoseconds();

struct Profiler {
  struct Count {
    uint64_t calls, nanoseconds;
  };
  struct Span {
    const char* name;
    Count count;
  };

  bool is_enabled = false;
  Vector<Count> instructions;  // one each; empty until first enabled
  Vector<Span> spans;
  uint32_t spans_lock = 0;

  bool enable(const abi::ProgramView& program);  // false when there is no memory
  void reset();
  void add_instruction(uint64_t index, int64_t nanoseconds) {
    ++instructions[index].calls;
    instructions[index].nanoseconds += static_cast<uint64_t>(nanoseconds);
  }
  // From any thread, properly nested on each.
  void begin_span(const char* name);
  void end_span();

  int32_t entry_count() const;
  bool entry(const abi::ProgramView& program, int32_t index, LatheProfileEntry* entry) const;
};

// A kernel's name for instructions that call one, else the instruction's own.
const char* instruction_name(const abi::ProgramView& program, const abi::InstructionRecord& at);

}  // namespace lathe::runtime
