#include "support/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace lathe::support {
namespace {

constexpr Knob all_knobs[] = {
#define LATHE_KNOB(side, name, variable, default_value, meaning) {#side, #name, variable, default_value, meaning},
#include "abi/knobs.def"
#undef LATHE_KNOB
};

constexpr std::array<DebugLevel, 5> ladder{{
    {1, "one line for each stage, with its time; the code of an error"},
    {2, "one line for each pass, and why a rule or a fusion declined"},
    {3, "the program after each stage that changed it"},
    {4, "the program after each pass that changed it, verified before and after"},
    {5, "the target's own code for each kernel: LLVM IR and assembly"},
}};

std::string value_of(const char* variable, const char* default_value) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : default_value;
}

}  // namespace

std::span<const Knob> knobs() { return all_knobs; }

std::optional<std::string> knob_value(const Knob& knob) {
  const char* value = std::getenv(std::string(knob.variable).c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

Environment read_environment() {
  Environment environment;
#define LATHE_KNOB_compiler(name, variable, default_value) environment.name = value_of(variable, default_value);
#define LATHE_KNOB_runtime(name, variable, default_value)
#define LATHE_KNOB(side, name, variable, default_value, meaning) LATHE_KNOB_##side(name, variable, default_value)
#include "abi/knobs.def"
#undef LATHE_KNOB
#undef LATHE_KNOB_runtime
#undef LATHE_KNOB_compiler
  return environment;
}

char** process_environment() { return environ; }

std::string home_folder() { return value_of("HOME", ""); }

std::span<const DebugLevel> debug_ladder() { return ladder; }

int debug_level(const Environment& environment) {
  int level = 0;
  const std::string& text = environment.debug;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (error != std::errc() || end != text.data() + text.size()) return 0;
  return std::clamp(level, 0, ladder.back().level);
}

}  // namespace lathe::support
