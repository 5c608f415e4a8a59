// The kernels' programs as a file, for debuggers and profilers to show.
#pragma once

#include "codegen/emit/kernel_text.h"
#include "support/result.h"

namespace lathe::driver {

// Writes them to `path`, where line tables then point to; nothing where it is empty. In a folder (one that is there, or
// a path that ends in /) the file has a name made from its content. Diagnostics: driver-cannot-write.
support::Result<std::optional<codegen::KernelText>> write_debug_text(const std::vector<codegen::Kernel>& kernels,
                                                                     const std::string& path);

// The file beside an artifact: "model.kernels.tir" of "model.so".
std::string debug_text_beside(const std::string& artifact);
// The folder for code that is in no artifact: beside the kernels that are kept, else the system's temporary one.
std::string debug_text_folder();

}  // namespace lathe::driver
