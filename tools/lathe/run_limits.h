// Options of every command that runs a model: what a run may take.
#pragma once

#include <CLI/CLI.hpp>

#include "driver/executable.h"

namespace lathe::tool {

// --timeout, --max-memory and --max-steps.
void add_limits(CLI::App& app, driver::Limits& limits);
// The options again, for a reproducer.
void append_limits(const driver::Limits& limits, std::vector<std::string>& words);

}  // namespace lathe::tool
