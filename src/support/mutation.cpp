#include "support/mutation.h"

#ifdef LATHE_SEEDED_FAULTS
#include <fstream>
#include <mutex>
#include <string>

#include "support/environment.h"

namespace lathe::support {

bool flip(const Fault& fault) {
  static const Environment environment = read_environment();
  if (fault.name != environment.fault) return false;
  static std::once_flag recorded;
  std::call_once(recorded, [&] {
    if (environment.fault_log.empty()) return;
    std::ofstream(environment.fault_log, std::ios::app) << environment.fault << "\n";
  });
  return true;
}

}  // namespace lathe::support
#endif
