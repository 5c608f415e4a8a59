// Any bytes beside a script are its constants or a diagnostic; what is read is written, and that is read again. An
// input is the script, a zero byte, and what lies beside it.
#include <unistd.h>

#include "driver/script_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lathe;  // NOLINT
  namespace fs = std::filesystem;
  static const std::string path =
      (fs::temp_directory_path() / ("script_file_fuzz_" + std::to_string(::getpid()))).string();
  const std::string_view all(reinterpret_cast<const char*>(bytes), size);
  const size_t split = std::min(all.find('\0'), all.size());
  std::ofstream(path, std::ios::binary) << all.substr(0, split);
  std::ofstream(path + ".constants", std::ios::binary) << all.substr(std::min(split + 1, all.size()));
  if (const auto module = driver::read_script(path); module.ok()) {
    driver::write_script(*module, path).value_or_throw();
    const auto again = driver::read_script(path);
    support::require(again.ok(), "what was read and written is not read again");
  }
  fs::remove(path);
  fs::remove(path + ".constants");
  return 0;
}
