#include "driver/verify_module.h"

#include "relax/verify.h"
#include "tir/verify.h"

namespace lathe::driver {

support::Diagnostics verify_module(const ir::IRModule& module, const ir::RowsRun& rows) {
  support::Diagnostics found = relax::verify(module);
  for (support::Diagnostic& diagnostic : tir::verify_module(module, rows)) found.push_back(std::move(diagnostic));
  return found;
}

}  // namespace lathe::driver
