#include "driver/verify_module.h"

namespace lathe::driver {
support::Diagnostics verify_module(const ir::IRModule&, const std::string&) { return {}; }
}  // namespace lathe::driver
