// A rule against the interpreter: what it makes of a function means the same, before and after lowering, and its trace
// replays to the same program.
#pragma once

#include "schedule/rules/rules.h"

namespace lathe::schedule::testing {

// Two cores with vectors so wide, which multiply and add at once.
target::Target machine(int bits, int registers);
// The same with caches of 1 KB and 16 KB, in which small weights are large.
target::Target with_small_caches(int bits, int registers);

// Bits of a vector, and how many registers hold one.
inline const std::vector<std::pair<int, int>> machines{{512, 32}, {256, 16}, {128, 32}};

// Why the earlier rules declined, of the last function scheduled.
extern std::string last_remarks;

// The arguments' largest difference after both functions ran, or what failed.
std::string compare(const Function& before, const Function& after, uint64_t seed, double tolerance,
                    const std::map<std::string, int64_t>& symbols);

// Schedules by the rules; says which rule took it, or what went wrong.
std::string scheduled(const Function& f, const target::Target& target, double tolerance = 0,
                      const std::map<std::string, int64_t>& symbols = {},
                      const std::map<std::string, int64_t>& decisions = {});

// The same, held against the interpreter for each of several values of the symbols.
std::string scheduled_once(const Function& f, const target::Target& target, double tolerance,
                           const std::vector<std::map<std::string, int64_t>>& symbols,
                           const std::map<std::string, int64_t>& decisions = {});

// What the model answers of a function: the text from one answer to the end of another.
std::string decided(const Function& f, const target::Target& target, const char* from, const char* to);

// The elements of the largest buffer that is allocated once a function is scheduled by the rules and lowered: neither a
// parameter nor in registers.
int64_t largest_allocation(const Function& f, const target::Target& target);

// Extents of the loops that threads share once a function is scheduled by the rules, in their order; -1 of one that is
// not known.
std::vector<int64_t> parallel_extents(const Function& f, const target::Target& target,
                                      const std::map<std::string, int64_t>& decisions = {});

}  // namespace lathe::schedule::testing
