// KernelCache: compiled objects by content, in memory and in a folder that any number of processes share.
#pragma once

#include <mutex>

#include "support/hash.h"
#include "support/std.h"

namespace lathe::codegen {

class KernelCache {
 public:
  // An empty folder keeps the cache in memory.
  explicit KernelCache(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}

  // The object kept under the key, or null. A damaged file counts as absent and is removed.
  std::shared_ptr<const std::string> find(const support::Hash128& key);
  // Keeps the object; a folder that cannot be written to is no error.
  void insert(const support::Hash128& key, std::shared_ptr<const std::string> object);

 private:
  std::filesystem::path path_of(const support::Hash128& key) const;

  std::filesystem::path folder_;
  std::mutex mutex_;
  std::unordered_map<support::Hash128, std::shared_ptr<const std::string>> memory_;
};

// Where LATHE_CACHE_DIR's value (may be empty) puts kernels: the user's cache folder by default. Empty when there is
// none.
std::filesystem::path kernel_cache_folder(const std::string& cache_dir);

}  // namespace lathe::codegen
