// The compiler's environment variables. Their table is abi/knobs.def, which the runtime shares; this is the only place
// of the compiler that reads them (scripts/checks/environment.py holds everyone to it).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lathe::support {

// One row of abi/knobs.def, for documentation and `lathe doctor`.
struct Knob {
  std::string_view side;  // "compiler" or "runtime": who reads it
  std::string_view name;
  std::string_view variable;
  std::string_view default_value;
  std::string_view meaning;
};

// Every row, of both sides, in the table's order.
std::span<const Knob> knobs();

// What the variable of a row is set to; nothing where it is not set.
std::optional<std::string> knob_value(const Knob& knob);

// The value of each of the compiler's variables, as text; the row's default where it is not set.
struct Environment {
#define LATHE_KNOB_compiler(name) std::string name;
#define LATHE_KNOB_runtime(name)
#define LATHE_KNOB(side, name, variable, default_value, meaning) LATHE_KNOB_##side(name)
#include "abi/knobs.def"
#undef LATHE_KNOB
#undef LATHE_KNOB_runtime
#undef LATHE_KNOB_compiler
};

Environment read_environment();
// The user's home folder (HOME); empty where there is none.
std::string home_folder();
// The whole environment, for a process that is started: NAME=value texts, then null.
char** process_environment();

// The ladder of LATHE_DEBUG: each level shows what the levels below it show, and this.
struct DebugLevel {
  int level;
  std::string_view shows;
};

std::span<const DebugLevel> debug_ladder();

// The level that `environment.debug` asks for: 0 for what is no number, at most the ladder's top.
int debug_level(const Environment& environment);

}  // namespace lathe::support
