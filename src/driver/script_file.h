// Scripts on disk: the text, and beside it "<path>.constants" with the data of the constants that the text names by
// the hash of their content.
#pragma once

#include "ir/function.h"
#include "support/result.h"

namespace lathe::driver {

support::Result<ir::IRModule> read_script(const std::string& path);
support::Status write_script(const ir::IRModule& module, const std::string& path);

}  // namespace lathe::driver
