#include "codegen/llvm/kernel_cache.h"

#include <unistd.h>

#include "support/environment.h"

namespace lathe::codegen {

namespace fs = std::filesystem;

namespace {

// A file is this header and the object. The hash of the object finds what was cut or overwritten.
struct Header {
  char magic[8] = {'L', 'T', 'H', 'K', 'R', 'N', 'L', '1'};
  uint64_t key_high = 0, key_low = 0, bytes = 0, hash_high = 0, hash_low = 0;
};

Header header_of(const support::Hash128& key, std::string_view object) {
  const support::Hash128 hash = support::hash_bytes(object);
  Header header;
  header.key_high = key.high, header.key_low = key.low;
  header.bytes = object.size();
  header.hash_high = hash.high, header.hash_low = hash.low;
  return header;
}

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return std::nullopt;
  return bytes;
}

}  // namespace

fs::path KernelCache::path_of(const support::Hash128& key) const {
  const std::string name = key.hex();
  return folder_ / name.substr(0, 2) / (name.substr(2) + ".kernel");
}

std::shared_ptr<const std::string> KernelCache::find(const support::Hash128& key) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = memory_.find(key);
    if (it != memory_.end()) return it->second;
  }
  if (folder_.empty()) return nullptr;
  const fs::path path = path_of(key);
  const std::optional<std::string> bytes = read_file(path);
  if (!bytes) return nullptr;
  if (bytes->size() >= sizeof(Header)) {
    const auto object = std::make_shared<const std::string>(bytes->substr(sizeof(Header)));
    const Header expected = header_of(key, *object);
    if (std::memcmp(&expected, bytes->data(), sizeof(Header)) == 0) {
      const std::lock_guard lock(mutex_);
      return memory_.try_emplace(key, object).first->second;
    }
  }
  std::error_code ignored;
  fs::remove(path, ignored);
  return nullptr;
}

void KernelCache::insert(const support::Hash128& key, std::shared_ptr<const std::string> object) {
  {
    const std::lock_guard lock(mutex_);
    if (!memory_.try_emplace(key, object).second) return;
  }
  if (folder_.empty()) return;
  // Written beside and renamed: a reader sees a whole file or none, and of two writers the last one stays.
  static std::atomic<uint64_t> counter{0};
  const fs::path path = path_of(key);
  fs::path partial = path;
  partial += fmt::format(".{}.{}", ::getpid(), counter.fetch_add(1));
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return;
  const Header header = header_of(key, *object);
  {
    std::ofstream file(partial, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    file.write(object->data(), static_cast<std::streamsize>(object->size()));
    file.close();
    if (!file) {
      fs::remove(partial, error);
      return;
    }
  }
  fs::rename(partial, path, error);
  if (error) fs::remove(partial, error);
}

std::filesystem::path kernel_cache_folder(const std::string& cache_dir) {
  if (!cache_dir.empty()) return std::filesystem::path(cache_dir) / "kernels";
  const std::string home = support::home_folder();
  return home.empty() ? std::filesystem::path() : std::filesystem::path(home) / ".cache" / "lathe" / "kernels";
}

}  // namespace lathe::codegen
