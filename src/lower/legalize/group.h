// One fused group as a tensor program.
#pragma once

#include "relax/call_tir.h"
#include "tir/stmt.h"

namespace lathe::lower {

// The operators of a group in order, with what they compute from.
struct Group {
  std::string name;
  std::vector<relax::Var> params;  // tensors given from outside
  std::vector<relax::Ref<relax::VarBinding>> bindings;
  std::vector<relax::Expr> results;  // variables bound in the group
};

struct LoweredGroup {
  tir::Function function;         // parameters: group.params, the results, then `scalars`
  std::vector<ir::Expr> scalars;  // symbolic dimensions of the caller, in the order of the scalar parameters
};

support::Result<LoweredGroup> lower_group(const Group& group);

}  // namespace lathe::lower
