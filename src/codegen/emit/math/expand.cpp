#include "codegen/emit/math/expand.h"

namespace lathe::codegen::math {

ir::Expr expand(const ir::Call&) { return nullptr; }

}  // namespace lathe::codegen::math
