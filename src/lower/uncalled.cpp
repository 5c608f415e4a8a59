#include "lower/uncalled.h"

#include <unordered_set>

#include "ir/visit.h"
#include "relax/expr.h"

namespace lathe::lower {

void drop_uncalled(ir::IRModule& module, const std::set<std::string>& names) {
  if (names.empty()) return;
  std::unordered_set<std::string> called;
  for (const auto& [name, function] : module)
    ir::post_order(function, [&](const ir::NodeRef& n) {
      if (const auto* global = n.as<relax::GlobalVar>()) called.insert(global->name);
    });
  for (const std::string& name : names)
    if (!called.count(name)) module.erase(name);
}

}  // namespace lathe::lower
