#include "driver/artifact/debug_text.h"

#include <filesystem>
#include <fstream>

#include "codegen/llvm/kernel_cache.h"
#include "driver/codes.h"
#include "support/environment.h"

namespace lathe::driver {

namespace fs = std::filesystem;

support::Result<std::optional<codegen::KernelText>> write_debug_text(const std::vector<codegen::Kernel>& kernels,
                                                                     const std::string& path) {
  if (path.empty()) return std::optional<codegen::KernelText>();
  codegen::KernelText text = codegen::kernel_text(kernels, path);
  std::error_code ignored;
  if (path.ends_with('/') || fs::is_directory(path, ignored))
    text.path = fs::path(text.path) / (support::hash_bytes(text.script.text).hex() + ".kernels.tir");
  fs::create_directories(fs::path(text.path).parent_path(), ignored);
  std::ofstream file(text.path, std::ios::binary);
  file << text.script.text;
  if (file.flush()) return std::optional(std::move(text));
  return support::Diagnostic{.code = codes::cannot_write,
                             .message = fmt::format("'{}' cannot be written: the folder is missing or may not be "
                                                    "written to, or the disk is full",
                                                    path)};
}

std::string debug_text_beside(const std::string& artifact) {
  return fs::path(artifact).replace_extension(".kernels.tir").string();
}

std::string debug_text_folder() {
  const fs::path kept = codegen::kernel_cache_folder(support::read_environment().cache_dir);
  if (!kept.empty()) return (kept.parent_path() / "debug" / "").string();
  std::error_code ignored;
  return (fs::temp_directory_path(ignored) / "lathe_debug" / "").string();
}

}  // namespace lathe::driver
