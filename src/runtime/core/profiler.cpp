#include "runtime/core/profiler.h"

#include <sched.h>

#include <cstring>
#include <ctime>

namespace lathe::runtime {
namespace {

constexpr int max_open_spans = 16;
struct OpenSpans {
  struct {
    const char* name;
    int64_t start;
  } spans[max_open_spans];
  int depth;
};
thread_local OpenSpans open_spans;

}  // namespace

int64_t monotonic_nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

bool Profiler::enable(const abi::ProgramView& program) {
  is_enabled = instructions.resize(program.instructions.count);
  return is_enabled;
}

void Profiler::reset() {
  for (Count& count : instructions) count = {};
  spans.count = 0;
}

void Profiler::begin_span(const char* name) {
  OpenSpans& open = open_spans;
  if (open.depth < max_open_spans) open.spans[open.depth] = {name, monotonic_nanoseconds()};
  ++open.depth;
}

void Profiler::end_span() {
  OpenSpans& open = open_spans;
  if (open.depth == 0 || --open.depth >= max_open_spans) return;
  const auto [name, start] = open.spans[open.depth];
  const auto elapsed = static_cast<uint64_t>(monotonic_nanoseconds() - start);
  while (__atomic_exchange_n(&spans_lock, 1u, __ATOMIC_ACQUIRE) != 0) sched_yield();
  Span* found = nullptr;
  for (Span& span : spans)
    if (std::strcmp(span.name, name) == 0) found = &span;
  if (found == nullptr && spans.push({name, {}})) found = &spans[spans.count - 1];
  if (found != nullptr) {
    ++found->count.calls;
    found->count.nanoseconds += elapsed;
  }
  __atomic_store_n(&spans_lock, 0u, __ATOMIC_RELEASE);
}

int32_t Profiler::entry_count() const {
  uint64_t count = spans.count;
  for (const Count& at : instructions) count += at.calls > 0 ? 1 : 0;
  return static_cast<int32_t>(count);
}

bool Profiler::entry(const abi::ProgramView& program, int32_t index, LatheProfileEntry* entry) const {
  uint64_t left = static_cast<uint64_t>(index);
  for (uint64_t i = 0; index >= 0 && i < instructions.count; ++i) {
    if (instructions[i].calls == 0 || left-- != 0) continue;
    const abi::InstructionRecord& at = program.instructions[i];
    *entry = {instruction_name(program, at), program.text(at.node), instructions[i].calls, instructions[i].nanoseconds};
    return true;
  }
  if (index < 0 || left >= spans.count) return false;
  *entry = {spans[left].name, "", spans[left].count.calls, spans[left].count.nanoseconds};
  return true;
}

const char* instruction_name(const abi::ProgramView& program, const abi::InstructionRecord& at) {
  const uint32_t first = at.operand_count > 0 ? program.operands[at.first_operand] : 0;
  if (at.opcode == abi::Opcode::call_kernel) return program.text(program.kernels[first].name);
  if (at.opcode == abi::Opcode::call_runtime_kernel) return program.text(program.runtime_kernels[first].name);
  return abi::opcode_rows[static_cast<uint16_t>(at.opcode)].name;
}

}  // namespace lathe::runtime
