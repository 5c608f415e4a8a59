#include "runtime/cpu/host.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace lathe::runtime {
namespace {

Host detected;
pthread_once_t detection = PTHREAD_ONCE_INIT;

void add_feature(Host& host, const char* name) {
  if (host.feature_count == max_features) return;
  int32_t at = host.feature_count++;
  for (; at > 0 && std::strcmp(host.features[at - 1], name) > 0; --at) host.features[at] = host.features[at - 1];
  host.features[at] = name;
}

void add_cache(Host& host, const CacheInfo& cache) {
  for (CacheInfo& slot : host.caches) {
    if (slot.level != 0) continue;
    slot = cache;
    return;
  }
}

// A number at the start of a file, with a suffix K or M; 0 where there is none.
uint64_t read_number(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  char text[64] = {};
  const bool is_read = std::fgets(text, sizeof(text), file) != nullptr;
  std::fclose(file);
  if (!is_read) return 0;
  char* end = nullptr;
  const uint64_t number = std::strtoull(text, &end, 10);
  return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : number;
}

void caches_from_sys(Host& host) {
  for (int index = 0; index < max_caches; ++index) {
    char path[128], type[32] = {};
    const auto file = [&](const char* name) {
      std::snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
      return path;
    };
    CacheInfo cache = {};
    cache.level = static_cast<int32_t>(read_number(file("level")));
    if (cache.level == 0) return;
    if (std::FILE* stream = std::fopen(file("type"), "re")) {
      cache.instructions = std::fgets(type, sizeof(type), stream) != nullptr && type[0] == 'I';
      std::fclose(stream);
    }
    cache.bytes = read_number(file("size"));
    cache.line_bytes = static_cast<int32_t>(read_number(file("coherency_line_size")));
    cache.ways = static_cast<int32_t>(read_number(file("ways_of_associativity")));
    add_cache(host, cache);
  }
}

#if defined(__x86_64__)

struct Registers {
  uint32_t eax, ebx, ecx, edx;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers at = {};
  const uint32_t last = __get_cpuid_max(leaf & 0x80000000u, nullptr);
  if (leaf <= last) __cpuid_count(leaf, subleaf, at.eax, at.ebx, at.ecx, at.edx);
  return at;
}

// XCR0: which registers the operating system saves. 0 where it does not use XSAVE.
uint64_t saved_state() {
  if ((cpuid(1, 0).ecx >> 27 & 1) == 0) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

struct Feature {
  const char* name;
  uint32_t leaf, subleaf;
  uint32_t Registers::* word;
  uint32_t bit;
  uint64_t state;
};
constexpr uint64_t none = 0, avx = 0x6, avx512 = 0xE6, amx = 0x60000;
constexpr Feature feature_rows[] = {
#define LATHE_FEATURE(name, leaf, subleaf, word, bit, state) {name, leaf, subleaf, &Registers::word, bit, state},
#include "runtime/cpu/host_features_x86.def"
#undef LATHE_FEATURE
};

bool is_present(const Feature& feature, uint64_t state) {
  if ((state & feature.state) != feature.state) return false;
  // Subleaf 1 of leaf 7 exists only where subleaf 0 says so in eax.
  if (feature.leaf == 7 && feature.subleaf > cpuid(7, 0).eax) return false;
  return (cpuid(feature.leaf, feature.subleaf).*feature.word >> feature.bit & 1) != 0;
}

// Intel's leaf 4 and AMD's 0x8000001D have one layout.
void caches_from_cpuid(Host& host) {
  const bool is_amd = std::strcmp(host.vendor, "AuthenticAMD") == 0 || std::strcmp(host.vendor, "HygonGenuine") == 0;
  for (uint32_t index = 0; index < max_caches; ++index) {
    const Registers at = cpuid(is_amd ? 0x8000001Du : 4u, index);
    const uint32_t type = at.eax & 31;
    if (type == 0) return;
    CacheInfo cache = {};
    cache.level = static_cast<int32_t>(at.eax >> 5 & 7);
    cache.instructions = type == 2;
    cache.line_bytes = static_cast<int32_t>((at.ebx & 0xFFF) + 1);
    cache.ways = static_cast<int32_t>((at.ebx >> 22) + 1);
    cache.threads = static_cast<int32_t>((at.eax >> 14 & 0xFFF) + 1);
    const uint64_t partitions = (at.ebx >> 12 & 0x3FF) + 1, sets = static_cast<uint64_t>(at.ecx) + 1;
    cache.bytes = static_cast<uint64_t>(cache.ways) * partitions * static_cast<uint64_t>(cache.line_bytes) * sets;
    add_cache(host, cache);
  }
}

void detect_processor(Host& host) {
  host.architecture = "x86_64";
  const Registers first = cpuid(0, 0), signature = cpuid(1, 0);
  std::memcpy(host.vendor, &first.ebx, 4);
  std::memcpy(host.vendor + 4, &first.edx, 4);
  std::memcpy(host.vendor + 8, &first.ecx, 4);
  const uint32_t family = signature.eax >> 8 & 15, model = signature.eax >> 4 & 15;
  host.family = static_cast<int32_t>(family == 15 ? family + (signature.eax >> 20 & 255) : family);
  host.model = static_cast<int32_t>(family == 6 || family == 15 ? model + (signature.eax >> 16 & 15) * 16 : model);
  host.stepping = static_cast<int32_t>(signature.eax & 15);
  for (uint32_t i = 0; i < 3; ++i) {
    const Registers at = cpuid(0x80000002u + i, 0);
    std::memcpy(host.brand + i * 16, &at, 16);
  }
  const uint64_t state = saved_state();
  for (const Feature& feature : feature_rows)
    if (is_present(feature, state)) add_feature(host, feature.name);
  caches_from_cpuid(host);
}

#elif defined(__aarch64__)

struct Feature {
  const char* name;
  int word, bit;
};
constexpr Feature feature_rows[] = {
#define LATHE_FEATURE(name, word, bit) {name, word, bit},
#include "runtime/cpu/host_features_arm.def"
#undef LATHE_FEATURE
};

void detect_processor(Host& host) {
  host.architecture = "aarch64";
#if defined(__linux__)
  const unsigned long words[] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  for (const Feature& feature : feature_rows)
    if ((words[feature.word - 1] >> feature.bit & 1) != 0) add_feature(host, feature.name);
#else
  add_feature(host, "fp-armv8");
  add_feature(host, "neon");
#endif
}

#else

struct Feature {
  const char* name;
};
constexpr Feature feature_rows[] = {{""}};
void detect_processor(Host& host) { host.architecture = "unknown"; }

#endif

// Cores, not threads: distinct pairs of package and core in /sys.
int32_t count_physical_cores(int32_t logical) {
  constexpr int32_t most = 1024;
  static uint64_t seen[most];
  int32_t count = 0;
  for (int32_t i = 0; i < logical && i < most; ++i) {
    char path[128];
    std::snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/core_id", i);
    if (access(path, R_OK) != 0) return 0;
    const uint64_t core = read_number(path);
    std::snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);
    const uint64_t key = read_number(path) << 32 | core;
    int32_t at = 0;
    while (at < count && seen[at] != key) ++at;
    if (at == count) seen[count++] = key;
  }
  return count;
}

void detect() {
  detect_processor(detected);
  if (detected.caches[0].level == 0) caches_from_sys(detected);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  detected.logical_cores = online < 1 ? 1 : static_cast<int32_t>(online);
  detected.physical_cores = count_physical_cores(detected.logical_cores);
}

}  // namespace

const Host& host() {
  pthread_once(&detection, detect);
  return detected;
}

bool host_has_feature(const char* name) {
  const Host& at = host();
  for (int32_t i = 0; i < at.feature_count; ++i)
    if (std::strcmp(at.features[i], name) == 0) return true;
  return false;
}

bool is_known_feature(const char* name) {
  for (const Feature& feature : feature_rows)
    if (std::strcmp(feature.name, name) == 0) return true;
  return false;
}

bool find_missing_feature(const char* list, char* missing, uint64_t missing_size) {
  while (*list != 0) {
    char name[64];
    uint64_t length = 0;
    for (; *list != 0 && *list != ','; ++list)
      if (length + 1 < sizeof(name) && *list != ' ' && *list != '+') name[length++] = *list;
    name[length] = 0;
    if (*list == ',') ++list;
    if (length == 0 || host_has_feature(name)) continue;
    std::snprintf(missing, missing_size, "%s", name);
    return true;
  }
  return false;
}

uint64_t cache_bytes(const Host& host, int32_t level, uint64_t fallback) {
  for (const CacheInfo& cache : host.caches)
    if (cache.level == level && !cache.instructions && cache.bytes > 0) return cache.bytes;
  return fallback;
}

}  // namespace lathe::runtime
