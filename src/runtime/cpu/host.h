// What the machine is that this process runs on: architecture, features in LLVM's names, caches, cores. By CPUID (with
// the operating system's consent for wide registers), by HWCAP on AArch64, and by /sys where those are silent.
#pragma once

#include <cstdint>

namespace lathe::runtime {

struct CacheInfo {
  int32_t level;      // 1, 2, 3; 0 ends the list
  bool instructions;  // an instruction cache; a unified one is not
  uint64_t bytes;
  int32_t line_bytes;
  int32_t ways;     // 0 where unknown
  int32_t threads;  // hardware threads that share it; 0 where unknown
};

inline constexpr int max_caches = 8;
inline constexpr int max_features = 160;

struct Host {
  const char* architecture;  // as LLVM calls it: "x86_64", "aarch64"
  char vendor[16];           // "AuthenticAMD"
  char brand[64];
  int32_t family, model, stepping;
  int32_t logical_cores;   // online hardware threads
  int32_t physical_cores;  // 0 where unknown
  CacheInfo caches[max_caches];
  const char* features[max_features];  // "avx512f"; feature_count of them, sorted
  int32_t feature_count;
};

// Found out once, on the first call.
const Host& host();

bool host_has_feature(const char* name);

// Whether the runtime can tell if a machine has the feature of this name.
bool is_known_feature(const char* name);

// The first feature of a comma-separated list that the host lacks or that is not known, copied to `missing`; false when
// there is none.
bool find_missing_feature(const char* list, char* missing, uint64_t missing_size);

// The size of a data cache; `fallback` where it is not known.
uint64_t cache_bytes(const Host& host, int32_t level, uint64_t fallback);

}  // namespace lathe::runtime
