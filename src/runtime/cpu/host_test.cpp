#include "runtime/cpu/host.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

namespace lathe::runtime {
namespace {

TEST(host, describes_this_machine) {
  const Host& at = host();
  EXPECT_EQ(at.logical_cores, static_cast<int32_t>(std::thread::hardware_concurrency()));
  EXPECT_LE(at.physical_cores, at.logical_cores);
  EXPECT_GE(cache_bytes(at, 1, 32768), 8u << 10);
  EXPECT_GE(cache_bytes(at, 2, 1 << 20), cache_bytes(at, 1, 32768));
  EXPECT_EQ(cache_bytes(at, 9, 123), 123u);
  for (int32_t i = 1; i < at.feature_count; ++i)
    EXPECT_LT(std::string(at.features[i - 1]), std::string(at.features[i]));
}

#if defined(__x86_64__)
TEST(host, agrees_with_the_kernel_on_features) {
  EXPECT_STREQ(host().architecture, "x86_64");
  EXPECT_TRUE(host_has_feature("sse2"));
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  std::set<std::string> flags;
  while (flags.empty() && std::getline(file, line))
    if (line.starts_with("flags")) {
      std::istringstream words(line.substr(line.find(':') + 1));
      for (std::string word; words >> word;) flags.insert(word);
    }
  if (flags.empty()) GTEST_SKIP() << "no /proc/cpuinfo";
  // Names that differ between LLVM and the kernel are left out.
  for (const char* name : {"avx",      "avx2",     "fma",      "f16c",     "popcnt",     "movbe",      "avx512f",
                           "avx512bw", "avx512vl", "avx512dq", "avx512cd", "avx512ifma", "avx512vbmi", "gfni",
                           "vaes",     "aes",      "adx",      "clwb",     "clzero",     "sse4a"})
    EXPECT_EQ(host_has_feature(name), flags.contains(name)) << name;
  for (const auto& [ours, kernels] :
       {std::pair{"avx512vnni", "avx512_vnni"}, std::pair{"avx512bf16", "avx512_bf16"}, std::pair{"sse4.2", "sse4_2"},
        std::pair{"bmi", "bmi1"}, std::pair{"lzcnt", "abm"}, std::pair{"amx-tile", "amx_tile"},
        std::pair{"avx512fp16", "avx512_fp16"}})
    EXPECT_EQ(host_has_feature(ours), flags.contains(kernels)) << ours;
}
#endif

TEST(host, finds_the_first_missing_feature) {
  char missing[64];
  const Host& at = host();
  EXPECT_FALSE(find_missing_feature("", missing, sizeof(missing)));
  if (at.feature_count > 1) {
    const std::string present = "+" + std::string(at.features[0]) + ", " + at.features[1] + ",";
    EXPECT_FALSE(find_missing_feature(present.c_str(), missing, sizeof(missing)));
    EXPECT_TRUE(find_missing_feature((present + "quantum").c_str(), missing, sizeof(missing)));
    EXPECT_STREQ(missing, "quantum");
    EXPECT_TRUE(is_known_feature(at.features[0]));
  }
  EXPECT_FALSE(is_known_feature("quantum"));
}

}  // namespace
}  // namespace lathe::runtime
