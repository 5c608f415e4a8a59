#include "support/temporary_folder.h"

#include <stdlib.h>

namespace lathe::support {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(const fs::path& beginning) {
  std::string pattern = beginning.string() + "-XXXXXX";
  if (::mkdtemp(pattern.data()))
    path_ = pattern;
  else
    error_ = std::error_code(errno, std::generic_category()).message();
}

TemporaryFolder TemporaryFolder::of_the_system(std::string_view purpose) {
  std::error_code ignored;
  return TemporaryFolder(fs::temp_directory_path(ignored) / ("lathe-" + std::string(purpose)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace lathe::support
