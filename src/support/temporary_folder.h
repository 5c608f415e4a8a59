// A folder that goes with what is in it when its owner does.
#pragma once

#include "support/std.h"

namespace lathe::support {

class TemporaryFolder {
 public:
  // A new folder, its name `beginning` and six letters. Where none can be made, `path` is empty and `error` says why.
  explicit TemporaryFolder(const std::filesystem::path& beginning);
  // The same among the system's temporary files, its name beginning with "lathe-" and `purpose`.
  static TemporaryFolder of_the_system(std::string_view purpose);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }
  const std::string& error() const { return error_; }

 private:
  std::filesystem::path path_;
  std::string error_;
};

}  // namespace lathe::support
