#include "codegen/llvm/link.h"

#include <fcntl.h>
#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/MemoryBuffer.h>

#include "abi/artifact.h"
#include "abi/seal.h"
#include "codegen/emit/codes.h"
#include "codegen/llvm/artifact_object.h"
#include "codegen/llvm/weights_object.h"
#include "support/temporary_folder.h"

LLD_HAS_DRIVER(elf)

namespace lathe::codegen {

namespace fs = std::filesystem;
using support::Diagnostic;
using support::Result;
using support::Status;

support::Hash128 content_hash(const ArtifactContents& contents) {
  support::Hasher hasher;
  hasher.add(contents.program);
  if (contents.functions)
    for (const std::string& symbol : contents.functions->symbols) hasher.add(symbol);
  hasher.add(contents.kernels->target.str());
  for (const CompiledKernel& kernel : contents.kernels->kernels) hasher.add(kernel.symbol);
  hasher.add(static_cast<uint64_t>(contents.weights_bytes));
  for (const WeightBytes& weight : contents.weights) {
    hasher.add(static_cast<uint64_t>(weight.offset));
    hasher.add(weight.content.high);
    hasher.add(weight.content.low);
  }
  for (const auto& [key, value] : contents.metadata) hasher.add(key), hasher.add(value);
  for (const std::string& name : contents.runtime_kernels) hasher.add(name);
  for (const LinkedKernels& linked : contents.linked_kernels) hasher.add(linked.object);
  return hasher.finish();
}

namespace {

constexpr int64_t huge_page = 2 << 20;

Diagnostic file_failed(const std::string& path, const std::string& why) {
  return {.code = codes::file_failed, .message = fmt::format("'{}' cannot be written: {}", path, why)};
}

Status write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return file_failed(path, "the disk may be full");
  return support::success();
}

// lld as a function. It keeps state in globals: one call at a time.
Status run_lld(const std::vector<std::string>& options) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::vector<const char*> args = {"ld.lld"};
  for (const std::string& option : options) args.push_back(option.c_str());
  std::string out_text, error_text;
  llvm::raw_string_ostream out(out_text), error(error_text);
  const bool ok = lld::elf::link(args, out, error, false, false);
  lld::CommonLinkerContext::destroy();
  if (ok) return support::success();
  return Diagnostic{.code = codes::link_failed,
                    .message = "the artifact cannot be linked: " + error_text.substr(0, error_text.find('\n'))};
}

Status append_seal(const std::string& path) {
  auto mapped = llvm::MemoryBuffer::getFile(path, false, false);
  if (!mapped) return file_failed(path, mapped.getError().message());
  const std::string_view bytes((*mapped)->getBufferStart(), (*mapped)->getBufferSize());
  const auto [offset, size] = find_weights_section(bytes);
  const abi::Seal seal = abi::make_seal(bytes.data(), bytes.size(), offset, size);
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(&seal), sizeof(seal));
  file.close();
  if (!file) return file_failed(path, "the disk may be full");
  return support::success();
}

Status write_archive(const std::vector<std::string>& objects, const std::string& path) {
  std::vector<llvm::NewArchiveMember> members;
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> mapped;
  for (const std::string& object : objects) {
    auto buffer = llvm::MemoryBuffer::getFile(object, false, false);
    if (!buffer) return file_failed(object, buffer.getError().message());
    mapped.push_back(std::move(*buffer));
    llvm::NewArchiveMember member(mapped.back()->getMemBufferRef());
    member.MemberName = llvm::StringRef(object).rsplit('/').second;
    members.push_back(std::move(member));
  }
  // Deterministic: no times, no owners.
  if (llvm::Error error = llvm::writeArchive(path, members, llvm::SymtabWritingMode::NormalSymtab,
                                             llvm::object::Archive::K_GNU, true, false))
    return file_failed(path, llvm::toString(std::move(error)));
  return support::success();
}

// As rename does: whoever opens `path` finds what was there, or all of `from`. ext4 sends a file that is renamed over
// another to the disk at once, which takes longer than to compile it; one that changes places with another it does not.
// The other then goes with the folder of `from`.
std::error_code move_over(const fs::path& from, const fs::path& path) {
  const auto is_file = [](const fs::path& at) {
    std::error_code unknown;
    return fs::is_regular_file(fs::symlink_status(at, unknown));
  };
  const auto exchange = [&] {
    return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0;
  };
  // Whatever else may have come there meanwhile is not ours to remove.
  if (is_file(path) && exchange() && (is_file(from) || !exchange())) return {};
  std::error_code error;
  fs::rename(from, path, error);
  return error;
}

bool is_identifier(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

bool holds_weights(const ArtifactContents& contents) {
  return contents.weights_bytes > 0 && contents.weights_file.empty();
}

// The parts as object files, in an order that depends on the contents alone. With `names`, kernels have those instead
// of symbols that are the same wherever the same kernel is linked to.
Result<std::vector<std::string>> write_parts(const ArtifactContents& contents, const std::string& symbol,
                                             Filled weights, const fs::path& folder, const KernelNames* names) {
  const auto named = [&](const std::string& object) { return names ? with_kernel_names(object, *names) : object; };
  const std::string weights_symbol = "lathe_weights_" + content_hash(contents).hex();
  std::vector<std::string> objects = {(folder / "artifact.o").string()};
  TRY(write_file(objects[0], TRY(artifact_object(contents, symbol, weights_symbol, names))));
  std::set<const std::string*> seen;  // an object may hold several kernels
  for (const CompiledKernel& kernel : contents.kernels->kernels) {
    if (!seen.insert(kernel.object.get()).second) continue;
    objects.push_back((folder / fmt::format("kernel_{}.o", seen.size())).string());
    TRY(write_file(objects.back(), named(*kernel.object)));
  }
  if (contents.functions && contents.functions->object) {
    objects.push_back((folder / "program.o").string());
    TRY(write_file(objects.back(), named(*contents.functions->object)));
  }
  for (const LinkedKernels& linked : contents.linked_kernels) {
    objects.push_back((folder / fmt::format("runtime_kernels_{}.o", objects.size())).string());
    TRY(write_file(objects.back(), linked.object));
  }
  if (holds_weights(contents)) {
    objects.push_back((folder / "weights.o").string());
    TRY(write_weights_object(contents, weights_symbol, weights, objects.back()));
  }
  return objects;
}

}  // namespace

Status link_artifact(const ArtifactContents& contents, const LinkOptions& options, const std::string& path) {
  support::require(contents.kernels != nullptr, "an artifact without kernels");
  const bool shared = options.form == ArtifactForm::shared_library;
  if (!shared && !is_identifier(options.prefix))
    return Diagnostic{.code = codes::link_failed,
                      .message = fmt::format("'{}' cannot be the prefix of a C name", options.prefix),
                      .help = "a prefix has letters, digits and underscores"};
  // Beside the output: parts are linked there and the result is renamed into place.
  const support::TemporaryFolder work(path + ".partial");
  const fs::path& folder = work.path();
  if (folder.empty()) return file_failed(path, work.error());
  const std::string symbol = shared ? LATHE_ARTIFACT_SYMBOL : options.prefix + "_lathe_artifact";
  // A library's kernels are seen by nobody but debuggers and profilers.
  const KernelNames names(contents.kernels->kernels, contents.functions);
  const Filled weights = shared ? Filled::after_linking : Filled::at_once;
  const std::vector<std::string> objects =
      TRY(write_parts(contents, symbol, weights, folder, shared ? &names : nullptr));
  const std::string result = (folder / "result").string();
  if (options.form == ArtifactForm::archive) {
    TRY(write_archive(objects, result));
  } else {
    std::vector<std::string> args = objects;
    for (const char* arg : {"--threads=1", "--build-id=none", "-o"}) args.push_back(arg);
    args.push_back(result);
    // Weights that fill huge pages lie in memory as in the file, counted from a multiple of one: where the file is kept
    // in huge pages, a process sees them as such.
    const bool fills_huge_pages = holds_weights(contents) && contents.weights_bytes >= 2 * huge_page;
    if (shared) args.push_back(fmt::format("-zmax-page-size={}", fills_huge_pages ? huge_page : 4096));
    if (shared)
      for (const char* arg : {"-shared", "--gc-sections", "--hash-style=gnu", "-znow", "-zrelro", "-znoexecstack"})
        args.push_back(arg);
    else
      args.push_back("-r");
    TRY(run_lld(args));
    if (shared) TRY(append_seal(result));
    if (shared && holds_weights(contents)) TRY(fill_weights_section(contents, result));
  }
  std::error_code error;
  if (!contents.weights_file.empty()) {
    const fs::path beside = fs::path(path).parent_path() / contents.weights_file;
    TRY(write_weights_file(contents, (folder / "weights").string()));
    fs::rename(folder / "weights", beside, error);
    if (error) return file_failed(beside.string(), error.message());
  }
  error = move_over(result, path);
  if (error) return file_failed(path, error.message());
  return support::success();
}

std::string artifact_header(const std::string& prefix) {
  return fmt::format(
      "// The compiled model '{0}': link the archive, and open it with\n"
      "//   lathe_open_artifact(&{0}_lathe_artifact, NULL, &model);   (lathe.h)\n"
      "#pragma once\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
      "struct LatheArtifact;\n"
      "extern const struct LatheArtifact {0}_lathe_artifact;\n\n"
      "#ifdef __cplusplus\n}}\n#endif\n",
      prefix);
}

}  // namespace lathe::codegen
