#include "run_limits.h"

namespace lathe::tool {

void add_limits(CLI::App& app, driver::Limits& limits) {
  app.add_option("--timeout", limits.timeout, "Seconds that a run may take")->check(CLI::PositiveNumber);
  app.add_option(
         "--max-memory", limits.max_memory,
         "Bytes of scratch, values and results that a run may hold, with KB, MB or GB behind the number if wished")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--max-steps", limits.max_steps, "Instructions between kernels that a run may execute")
      ->check(CLI::PositiveNumber);
}

void append_limits(const driver::Limits& limits, std::vector<std::string>& words) {
  if (limits.timeout > 0) words.insert(words.end(), {"--timeout", fmt::format("{}", limits.timeout)});
  if (limits.max_memory) words.insert(words.end(), {"--max-memory", std::to_string(limits.max_memory)});
  if (limits.max_steps) words.insert(words.end(), {"--max-steps", std::to_string(limits.max_steps)});
}

}  // namespace lathe::tool
