// A kept kernel whose file was changed, cut or overwritten is absent, or is what was kept. An input is the number of
// bytes of an object, those bytes, and what becomes of the file: pairs of a place and a byte, and where it is cut.
#include <unistd.h>

#include "codegen/llvm/kernel_cache.h"
#include "support/diagnostic.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lathe;  // NOLINT
  namespace fs = std::filesystem;
  static const fs::path folder = fs::temp_directory_path() / ("kernel_cache_fuzz_" + std::to_string(::getpid()));
  if (size < 2) return 0;
  const size_t length = std::min<size_t>(bytes[0], size - 1);
  const std::string object(reinterpret_cast<const char*>(bytes) + 1, length);
  const support::Hash128 key = support::hash_bytes("key");
  codegen::KernelCache(folder).insert(key, std::make_shared<const std::string>(object));
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
    size_t at = 1 + length;
    for (; at + 1 < size; at += 2) {
      file.seekp(bytes[at]);
      file.put(static_cast<char>(bytes[at + 1]));
    }
    file.close();
    if (at < size) fs::resize_file(entry.path(), bytes[at]);
  }
  if (const auto found = codegen::KernelCache(folder).find(key))
    support::require(*found == object, "a changed file gave another kernel");
  fs::remove_all(folder);
  return 0;
}
