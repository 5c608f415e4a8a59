// Which loops of a kernel ask whether its call is to end (abi/services.h, LatheCallState): those that may run for long.
// A question is a load and a branch, so it is asked rarely: a stretch of code without one takes some ten milliseconds,
// and what lies between two of them takes hundreds of times longer than asking.
#pragma once

#include "tir/stmt.h"

namespace lathe::codegen {

struct Poll {
  // Iterations between two questions. 1: after each. More: the loop is cut into runs of so many, with a question
  // between two runs, so that a short body stays a loop of its own.
  int64_t every = 1;
};

// By loop (For and While); a loop without a row does not ask.
using PollPlan = std::unordered_map<const ir::Node*, Poll>;
PollPlan plan_polls(const tir::Stmt& body);

}  // namespace lathe::codegen
