// What an artifact says of itself, in key order: target, architecture, cpu_features, builder, version, ….
#pragma once

#include "driver/compile.h"

namespace lathe::driver {
using Metadata = std::map<std::string, std::string>;
Metadata metadata_of(const CompiledModel& model);
}  // namespace lathe::driver
