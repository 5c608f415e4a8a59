// The floating-point mode of a run: round to nearest, no traps, denormals kept or flushed as the context says. Set when
// a run or a parallel region begins on a thread, and the thread's own mode put back afterwards.
#pragma once

#include <cstdint>

namespace lathe::runtime {

#if defined(__x86_64__)
using FloatControl = uint32_t;
inline FloatControl read_float_control() { return __builtin_ia32_stmxcsr(); }
inline void write_float_control(FloatControl control) { __builtin_ia32_ldmxcsr(control); }
// All exceptions masked (bits 7 to 12); flush to zero is bit 15, denormals are zero bit 6.
inline FloatControl float_control(bool flush_denormals) { return 0x1F80u | (flush_denormals ? 0x8040u : 0u); }
#elif defined(__aarch64__)
using FloatControl = uint64_t;
inline FloatControl read_float_control() {
  FloatControl control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
inline void write_float_control(FloatControl control) { __asm__ volatile("msr fpcr, %0" : : "r"(control)); }
inline FloatControl float_control(bool flush_denormals) { return flush_denormals ? FloatControl{1} << 24 : 0; }
#else
using FloatControl = uint32_t;
inline FloatControl read_float_control() { return 0; }
inline void write_float_control(FloatControl) {}
inline FloatControl float_control(bool) { return 0; }
#endif

struct FloatModeScope {
  FloatControl before;
  explicit FloatModeScope(FloatControl control) : before(read_float_control()) {
    if (control != before) write_float_control(control);
  }
  FloatModeScope(const FloatModeScope&) = delete;
  FloatModeScope& operator=(const FloatModeScope&) = delete;
  ~FloatModeScope() { write_float_control(before); }  // also clears the exception flags of the run
};

}  // namespace lathe::runtime
