#include "runtime/cpu/thread_count.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/cpu/environment.h"

namespace lathe::runtime {
namespace {

bool read_text(const char* path, char* text, size_t size) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  const size_t read = std::fread(text, 1, size - 1, file);
  text[read] = 0;
  std::fclose(file);
  return true;
}

int32_t in_cores(double quota, double period) {
  if (quota <= 0 || period <= 0) return 0;
  const double cores = quota / period;
  const auto whole = static_cast<int32_t>(cores > 4096 ? 4096 : cores);
  return static_cast<double>(whole) < cores && whole < 4096 ? whole + 1 : whole;
}

// "150000 100000" or "max 100000"
int32_t quota_of_version_2(const char* folder) {
  char path[1200], text[128];
  std::snprintf(path, sizeof(path), "%s/cpu.max", folder);
  if (!read_text(path, text, sizeof(text))) return 0;
  char* end = nullptr;
  const double quota = std::strtod(text, &end);
  return end == text ? 0 : in_cores(quota, std::strtod(end, nullptr));
}

int32_t quota_of_version_1(const char* folder) {
  char path[1200], quota[64], period[64];
  std::snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
  if (!read_text(path, quota, sizeof(quota))) return 0;
  std::snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
  if (!read_text(path, period, sizeof(period))) return 0;
  return in_cores(std::strtod(quota, nullptr), std::strtod(period, nullptr));
}

// The smallest quota from the group itself up to the root: each of them binds.
template <typename Quota>
int32_t smallest_quota(const char* root, const char* group, Quota quota_of) {
  char folder[1024];
  std::snprintf(folder, sizeof(folder), "%s%s", root, strcmp(group, "/") == 0 ? "" : group);
  const size_t root_length = std::strlen(root);
  int32_t smallest = 0;
  for (;;) {
    const int32_t quota = quota_of(folder);
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
    char* slash = std::strrchr(folder, '/');
    if (slash == nullptr || static_cast<size_t>(slash - folder) < root_length) return smallest;
    *slash = 0;
  }
}

}  // namespace

int32_t allowed_cores() {
  // The kernel refuses a mask that is smaller than its own, so it grows.
  for (int cores = 1024; cores <= 1 << 18; cores *= 4) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<size_t>(cores));
    if (mask == nullptr) return 1;
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(cores));
    const bool is_read = sched_getaffinity(0, size, mask) == 0;
    const int32_t count = is_read ? static_cast<int32_t>(CPU_COUNT_S(size, mask)) : 0;
    CPU_FREE(mask);
    if (is_read) return count < 1 ? 1 : count;
  }
  return 1;
}

int32_t cgroup_quota(const char* membership, const char* root) {
  char text[4096];
  if (!read_text(membership, text, sizeof(text))) return 0;
  int32_t smallest = 0;
  const auto take = [&](int32_t quota) {
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  };
  // Lines are "hierarchy:controllers:path"; version 2 is hierarchy 0 without controllers.
  char* rest = nullptr;
  for (char* line = strtok_r(text, "\n", &rest); line != nullptr; line = strtok_r(nullptr, "\n", &rest)) {
    char* controllers = std::strchr(line, ':');
    if (controllers == nullptr) continue;
    *controllers++ = 0;
    char* path = std::strchr(controllers, ':');
    if (path == nullptr) continue;
    *path++ = 0;
    if (*controllers == 0) {
      take(smallest_quota(root, path, quota_of_version_2));
      continue;
    }
    char* more = nullptr;
    for (char* name = strtok_r(controllers, ",", &more); name != nullptr; name = strtok_r(nullptr, ",", &more)) {
      if (std::strcmp(name, "cpu") != 0) continue;
      static const char* const mounts[] = {"cpu", "cpu,cpuacct"};
      for (const char* mount : mounts) {
        char folder[512];
        std::snprintf(folder, sizeof(folder), "%s/%s", root, mount);
        take(smallest_quota(folder, path, quota_of_version_1));
      }
    }
  }
  return smallest;
}

int32_t usable_cores() {
  const int32_t cores = allowed_cores();
  const int32_t quota = cgroup_quota();
  return quota > 0 && quota < cores ? quota : cores;
}

int32_t choose_thread_count(int32_t option) {
  if (option > 0) return option < 4096 ? option : 4096;
  const Environment environment = read_environment();
  return environment.num_threads > 0 ? environment.num_threads : usable_cores();
}

}  // namespace lathe::runtime
