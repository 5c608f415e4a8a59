#include "tir/analysis/step.h"

#include "ir/build.h"
#include "ir/visit.h"

namespace lathe::tir {

std::optional<int64_t> step_of(const ir::Expr& e, const ir::Var& var, arith::Analyzer& known) {
  return ir::as_int(known.simplify(ir::substitute(e, {{var, var + 1}}) - e));
}

}  // namespace lathe::tir
