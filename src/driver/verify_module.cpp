#include "driver/verify_module.h"

#include "driver/codes.h"
#include "relax/verify.h"
#include "tir/analysis/calls.h"
#include "tir/verify.h"

namespace lathe::driver {

support::Diagnostics verify_module(const ir::IRModule& module, const ir::RowsRun& rows) {
  support::Diagnostics found = relax::verify(module);
  for (support::Diagnostic& diagnostic : tir::verify_module(module, rows)) found.push_back(std::move(diagnostic));
  return found;
}

support::Status nothing_registered(const ir::IRModule& module) {
  for (const auto& [name, function] : module) {
    const auto* f = function.as<tir::PrimFunc>();
    const std::string* called = f ? tir::calls_registered(f->body) : nullptr;
    if (called)
      return support::Diagnostic{
          .code = codes::registered_function,
          .message = fmt::format("'{}' calls '{}', which is registered in this process: nothing that is saved holds it",
                                 name, *called),
          .help = "lathe.build runs it here; a tensor program in its place can be saved"};
  }
  return support::success();
}

}  // namespace lathe::driver
