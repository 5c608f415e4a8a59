// Failures that a developer asks for: how the way from an internal failure to its reproducer is tested.
#pragma once

#include "support/std.h"

namespace lathe::driver {

// Throws an InternalError where LATHE_FAIL_IN names this step, or with a ! behind the name crashes. Builds without
// checks never do.
void fail_on_request(std::string_view step);

}  // namespace lathe::driver
