// Where the time of a context's runs went.
#pragma once

#include "abi/lathe.h"
#include "driver/report/explain/explanation.h"
#include "support/std.h"

namespace lathe::tool {

struct ProfileLine {
  std::string name, node;  // the kernel, or the instruction between kernels, and the model's node
  uint64_t calls = 0, nanoseconds = 0;
  double microseconds_a_call() const { return static_cast<double>(nanoseconds) / 1e3 / static_cast<double>(calls); }
  std::string title() const { return node.empty() ? name : name + " (" + node + ")"; }
};

struct Profile {
  std::vector<ProfileLine> lines;  // the slowest first
  uint64_t nanoseconds = 0;        // of all
  double share(const ProfileLine& line) const {
    return static_cast<double>(line.nanoseconds) / static_cast<double>(std::max<uint64_t>(nanoseconds, 1));
  }
};

// Adds another's lines to this one's.
void add(Profile& profile, const Profile& more);

Profile read_profile(LatheContext* context);

// Each instruction that ran, in the program's order.
std::vector<driver::InstructionTime> read_instructions(LatheContext* context);

}  // namespace lathe::tool
