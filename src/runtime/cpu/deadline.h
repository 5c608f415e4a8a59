// Deadlines of runs. One thread a process, started with the first of them, sleeps until the earliest and then tells
// whoever is late; so code under way only ever reads a word that is changed for it.
#pragma once

#include <cstdint>

namespace lathe::runtime {

struct Deadline {
  int64_t at;                 // monotonic nanoseconds
  void (*late)(void* owner);  // on the thread that watches; takes no lock
  void* owner;
  Deadline* next;  // of those that are armed
};

// False when the system gives no thread.
bool arm(Deadline& deadline);
// `late` has been called or will not be when this returns.
void disarm(Deadline& deadline);

}  // namespace lathe::runtime
