// For tests: the memory plan of a module's main function.
#pragma once

#include "lower/plan/plan_memory.h"

namespace lathe::lower::testing {

inline MemoryPlan plan_of(const ir::IRModule& module) {
  return plan_memory(module, module.find_as<relax::FunctionNode>("main"));
}

}  // namespace lathe::lower::testing
