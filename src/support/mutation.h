// Seeded miscompilations: small wrong things that the differential tests must find (scripts/seeded_faults.py).
// Compiled in by the preset `faults` only; everywhere else a flip is the constant false.
//
//   LATHE_FAULT(unroll_loops_bound, "tir_test", "the last iteration of an unrolled loop is forgotten");
//   const int64_t last = support::flip(unroll_loops_bound) ? *extent - 1 : *extent;
//
// A fault is declared in the file that has it: its name, which begins with the pass's where it is in one; the test
// binaries, separated by spaces, of which one must fail when it is on; and what goes wrong.
#pragma once

#include <string_view>

namespace lathe::support {

struct Fault {
  std::string_view name;
};

#define LATHE_FAULT(name, tests, meaning) constexpr ::lathe::support::Fault name(#name)

#ifdef LATHE_SEEDED_FAULTS
// Whether the fault named by the environment's LATHE_FAULT is this one. The first time it is, the name is appended to
// LATHE_FAULT_LOG: a fault that no test executes counts as missed.
bool flip(const Fault& fault);
#else
constexpr bool flip(const Fault&) { return false; }
#endif

}  // namespace lathe::support
