#include "driver/report/fail_on_request.h"

#include "driver/compile.h"
#include "support/environment.h"

namespace lathe::driver {

void fail_on_request(std::string_view step) {
  if (!development_build) return;
  static const std::string wanted = support::read_environment().fail_in;
  if (wanted.empty() || !wanted.starts_with(step)) return;
  if (wanted.size() == step.size()) throw support::InternalError(fmt::format("{} fails, as LATHE_FAIL_IN asks", step));
  if (wanted.substr(step.size()) == "!") __builtin_trap();
}

}  // namespace lathe::driver
