#include "lower/other_kernels.h"

#include <unordered_set>

#include "ir/visit.h"
#include "lower/legalize/versions.h"
#include "relax/expr.h"

namespace lathe::lower {

std::string add_kernel(ir::IRModule& module, const tir::Function& kernel, const std::string& hint) {
  std::string name = module.unique_name(hint);
  module.set(name, ir::with(*kernel, [&](tir::PrimFunc& copy) {
               if (copy.attrs.contains("global_symbol")) copy.attrs.set("global_symbol", name);
             }));
  return name;
}

void drop_uncalled(ir::IRModule& module, const std::set<std::string>& names) {
  if (names.empty()) return;
  std::unordered_set<std::string> called;
  for (const auto& [name, function] : module)
    ir::post_order(function, [&](const ir::NodeRef& n) {
      if (const auto* global = n.as<relax::GlobalVar>()) called.insert(global->name);
    });
  for (const std::string& name : names) {
    const auto kernel = module.find_as<tir::PrimFunc>(name);
    if (!kernel || called.count(name)) continue;
    for (const Version& version : versions_of(*kernel)) module.erase(version.function);
    module.erase(name);
  }
}

}  // namespace lathe::lower
