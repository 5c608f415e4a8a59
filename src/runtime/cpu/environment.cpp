#include "runtime/cpu/environment.h"

#include <cstdlib>

namespace lathe::runtime {
namespace {

struct Knob {
  const char* variable;
  const char* fallback;
};

constexpr bool same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

// The row of a name; a name without a row does not compile.
consteval Knob knob(const char* name) {
#define LATHE_KNOB(side, row, variable, fallback, meaning) \
  if (same(name, #row)) return {variable, fallback};
#include "abi/knobs.def"
#undef LATHE_KNOB
  __builtin_unreachable();  // not a constant, so it does not compile
}

const char* value_of(Knob knob) {
  const char* text = std::getenv(knob.variable);
  return text == nullptr ? knob.fallback : text;
}

}  // namespace

int32_t parse_thread_count(const char* text) {
  char* end = nullptr;
  const long count = std::strtol(text, &end, 10);
  const bool is_number = end != text && (*end == 0 || *end == ',' || *end == ' ');
  return is_number && count >= 1 && count <= 4096 ? static_cast<int32_t>(count) : 0;
}

Environment read_environment() {
  Environment environment = {};
  environment.num_threads = parse_thread_count(value_of(knob("num_threads")));
  if (environment.num_threads == 0) environment.num_threads = parse_thread_count(value_of(knob("omp_num_threads")));
  const long spin = std::strtol(value_of(knob("spin_microseconds")), nullptr, 10);
  environment.spin_microseconds = static_cast<int32_t>(spin < 0 ? 0 : spin > 10000 ? 10000 : spin);
  environment.pin_threads = std::strtol(value_of(knob("pin_threads")), nullptr, 10) == 1;
  return environment;
}

}  // namespace lathe::runtime
