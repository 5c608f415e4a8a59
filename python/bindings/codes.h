// The diagnostic codes of the extension itself.
#pragma once

#include "support/diagnostic.h"

namespace lathe::python::codes {

using support::Code;

inline constexpr Code python{"script-python"};  // Python could not evaluate a part of a script

}  // namespace lathe::python::codes
