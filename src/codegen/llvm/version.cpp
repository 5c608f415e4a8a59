#include "codegen/llvm/version.h"

#include <llvm/Config/llvm-config.h>

namespace lathe::codegen {
std::string llvm_version() { return LLVM_VERSION_STRING; }
}  // namespace lathe::codegen
