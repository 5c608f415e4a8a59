// How much work a kernel's code is worth: most programs have few kernels, and all are optimised as well as can be.
// Of a program with thousands, those that do least get code that is made quickly and runs a few times as long.
#pragma once

#include "codegen/emit/kernel.h"

namespace lathe::codegen {

enum class Effort : uint8_t { full, brief };

// One a kernel: full for the `most` that do most, and for those that call instructions of the target by name.
std::vector<Effort> efforts_of(const std::vector<const Kernel*>& kernels, size_t most);

}  // namespace lathe::codegen
