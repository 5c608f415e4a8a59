// Seeded miscompilations: small wrong things that the differential tests must find (scripts/seeded_faults.py).
// Compiled in by the preset `faults` only; everywhere else a flip is the constant false.
#pragma once

#include <string_view>

namespace lathe::support {

// The name of a row of faults.def. A name without a row does not compile.
struct FaultName {
  std::string_view name;

  consteval FaultName(const char* text) : name(text) {
#define LATHE_FAULT(row, tests, meaning) \
  if (name == #row) return;
#include "support/faults.def"
#undef LATHE_FAULT
    throw "no row of support/faults.def has this name";
  }
};

#ifdef LATHE_SEEDED_FAULTS
// Whether the fault named by LATHE_FAULT is this one. The first time it is, the name is appended to LATHE_FAULT_LOG:
// a fault that no test executes counts as missed.
bool flip(FaultName fault);
#else
constexpr bool flip(FaultName) { return false; }
#endif

}  // namespace lathe::support
