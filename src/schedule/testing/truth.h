// What is true of a small program, by running it: the measure for what the primitives accept and refuse. Nothing of
// schedule/analysis is used.
#pragma once

#include <map>

#include "schedule/program.h"

namespace lathe::schedule::testing {

using Symbols = std::map<std::string, int64_t>;

// Whether iterations of the loop of that id may run at once: in no execution of the loop is there an element that one
// iteration writes and another touches, buffers apart that only this loop touches and in which every iteration reads
// only what it wrote itself. Nothing where an index or condition depends on data.
std::optional<bool> iterations_are_independent(const PrimFunc& function, Id loop, const Symbols& symbols);

// How many instances of the block of that id run; nothing where that depends on data.
std::optional<int64_t> instances_run(const PrimFunc& function, Id block, const Symbols& symbols);

}  // namespace lathe::schedule::testing
