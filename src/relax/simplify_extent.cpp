// Extents in simpler form, so that equal ones compare equal.
#include "arith/analyzer.h"
#include "relax/infer.h"

namespace lathe::relax {

ir::Expr simplified(const ir::Expr& extent) {
  if (ir::as_int(extent) || extent.is<ir::VarNode>()) return extent;
  return arith::Analyzer().simplify(extent);
}

}  // namespace lathe::relax
