#include "driver/report/winograd_summary.h"

#include "graph/passes.h"

namespace lathe::driver {

std::string winograd_summary(const ir::IRModule& module) {
  const int64_t count = module.attrs.get_or<int64_t>(graph::winograd_count, -1);
  if (count < 0) return "";
  if (count == 0) return "winograd: no convolution gains by it (`lathe explain --winograd` says why of each)";
  return fmt::format(
      "winograd: {} convolution{}; the largest error of one is {:.1e} of its largest output, on random inputs (of the "
      "direct one {:.1e})",
      count, count == 1 ? "" : "s", module.attrs.get_or<double>(graph::winograd_worst_error, 0.0),
      module.attrs.get_or<double>(graph::winograd_direct_error, 0.0));
}

}  // namespace lathe::driver
