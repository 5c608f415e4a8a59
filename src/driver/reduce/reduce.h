// Shrinks a failing model or script to what the failure needs: each smaller one is written to a file and given to a
// command, and kept when that fails as it did for the whole.
#pragma once

#include <functional>
#include <string>

#include "support/result.h"

namespace lathe::driver {

struct ReduceOptions {
  std::string command;       // a line for the shell; "{model}" stands for the file, or the file is added at its end
  std::string saying;        // the failure's output must hold this; empty: what its first line says, but for names
  int most_attempts = 5000;  // runs of the command
  double timeout = 120;      // seconds of each; one that takes longer is another failure than one that does not
  std::string output;        // where the smallest is kept, from the first that was found on
  std::function<void(const std::string& what)> on_progress;
  std::function<bool()> cancelled;
};

struct Reduced {
  std::string failure;  // what the command said of the whole: its exit code and the first line
  int attempts = 0, kept = 0;
  std::string before, after;  // sizes in words: "14 nodes, 20,113 bytes"
};

// Diagnostics: reduce-no-failure, reduce-no-file, driver-cannot-write, and those of reading the file.
support::Result<Reduced> reduce(const std::string& path, const ReduceOptions& options);

// What a command did with a file.
struct CommandOutcome {
  int code = 0;  // 128 and the signal's number for a process that a signal ended
  bool timed_out = false;
  std::string said;  // on both outputs, up to some 64 KiB of it
};
CommandOutcome run_shell(const std::string& line, double timeout);

// The first line of what was said, without what differs from one model to another: quoted names, numbers, paths.
std::string gist_of(const std::string& said);

}  // namespace lathe::driver
