// lathe doctor: what this machine and this installation have, and what is missing.
#include <dlfcn.h>
#include <unistd.h>

#include "abi/artifact.h"
#include "codegen/llvm/compile.h"
#include "command.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/thread_count.h"
#include "support/environment.h"
#include "support/version.h"
#include "target/target.h"

namespace lathe::tool {
namespace {

namespace fs = std::filesystem;

void row(const std::string& name, const std::string& value) {
  std::printf("  %-14s %s\n", name.c_str(), value.c_str());
}

std::string human(uint64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{} KiB", bytes >> 10);
}

void machine() {
  const runtime::Host& host = runtime::host();
  std::printf("machine\n");
  row("cpu", fmt::format("{} ({}), family {} model {} stepping {}", host.brand, host.vendor, host.family, host.model,
                         host.stepping));
  row("cores", fmt::format("{} hardware threads, {} physical", host.logical_cores, host.physical_cores));
  const int32_t quota = runtime::cgroup_quota();
  row("threads", fmt::format("{} for a run ({} allowed by affinity, {})", runtime::choose_thread_count(0),
                             runtime::allowed_cores(), quota ? fmt::format("a quota of {}", quota) : "no quota"));
  for (const runtime::CacheInfo& cache : host.caches) {
    if (cache.level == 0) break;
    row(fmt::format("cache L{}{}", cache.level, cache.instructions ? "i" : ""),
        fmt::format("{}, lines of {} bytes, shared by {}", human(cache.bytes), cache.line_bytes, cache.threads));
  }
  std::string features;
  for (int32_t i = 0; i < host.feature_count; ++i) features += (i ? " " : "") + std::string(host.features[i]);
  row("features", features);
  row("native target", target::native_target().str());
}

// The runtime as a shared library: beside this command's folder, as the build and the package lay it.
std::optional<fs::path> runtime_library() {
  std::error_code failure;
  const fs::path self = fs::read_symlink("/proc/self/exe", failure);
  if (failure) return std::nullopt;
  for (const char* place : {"../lib/liblathe_runtime.so", "lib/liblathe_runtime.so"}) {
    const fs::path candidate = (self.parent_path() / place).lexically_normal();
    if (fs::exists(candidate, failure)) return candidate;
  }
  return std::nullopt;
}

void installation(std::vector<std::string>& missing) {
  std::printf("lathe\n");
  row("version", support::version);
  row("LLVM", codegen::llvm_version());
  row("formats", fmt::format("artifact {}, services {}, interface {}", LATHE_ARTIFACT_VERSION, LATHE_SERVICES_VERSION,
                             LATHE_INTERFACE_VERSION));
  if (const auto library = runtime_library()) {
    std::error_code failure;
    row("runtime", fmt::format("{} bytes, {}", fs::file_size(*library, failure), library->string()));
  } else {
    missing.push_back("liblathe_runtime.so, which C programs open artifacts with, is not beside this command");
  }
  const fs::path cache = codegen::kernel_cache_folder(support::read_environment().cache_dir);
  row("kernel cache", cache.empty() ? "none" : cache.string());
  if (cache.empty()) {
    missing.push_back("a folder for compiled kernels: set LATHE_CACHE_DIR");
  } else {
    std::error_code failure;
    fs::path existing = cache;
    while (!existing.empty() && !fs::exists(existing, failure) && existing.has_relative_path())
      existing = existing.parent_path();
    if (::access(existing.c_str(), W_OK) != 0) missing.push_back("leave to write to " + cache.string());
  }
}

void knobs() {
  std::printf("environment\n");
  for (const support::Knob& knob : support::knobs()) {
    const std::optional<std::string> set = support::knob_value(knob);
    const std::string value = set ? *set : knob.default_value.empty() ? "not set" : std::string(knob.default_value);
    std::printf("  %-20s %-10s %s\n", std::string(knob.variable).c_str(), (value + (set ? " (set)" : "")).c_str(),
                std::string(knob.meaning).c_str());
  }
  std::printf("LATHE_DEBUG\n");
  for (const support::DebugLevel& level : support::debug_ladder())
    row(std::to_string(level.level), std::string(level.shows));
}

void run() {
  std::vector<std::string> missing;
  machine();
  installation(missing);
  knobs();
  std::printf("missing\n");
  if (missing.empty()) std::printf("  nothing\n");
  for (const std::string& what : missing) std::printf("  %s\n", what.c_str());
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* sub =
      app.add_subcommand("doctor", "Show what this machine and this installation have, and what is missing");
  sub->footer("Example:\n  lathe doctor");
  sub->callback(run);
}

}  // namespace lathe::tool
