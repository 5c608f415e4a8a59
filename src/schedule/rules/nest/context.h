// What a rule is given, and what it answers.
#pragma once

#include "schedule/schedule.h"
#include "target/target.h"

namespace lathe::schedule {

struct RuleContext {
  const target::Target& target;
  Decider& decider;
};

// Nothing: the rule scheduled the function. Text: why it declined.
using Outcome = std::optional<std::string>;

}  // namespace lathe::schedule
