// The runtime's only reader of the environment; the rows are abi/knobs.def.
#pragma once

#include <cstdint>

namespace lathe::runtime {

struct Environment {
  int32_t num_threads;        // 0 where neither variable is set to a positive number
  int32_t spin_microseconds;  // 0 to 10,000
  bool pin_threads;
};

Environment read_environment();

// The first number of a list such as "4,2" when it is from 1 to 4096, else 0.
int32_t parse_thread_count(const char* text);

}  // namespace lathe::runtime
