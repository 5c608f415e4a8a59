#include "runtime/cpu/thread_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/cpu/environment.h"

namespace lathe::runtime {
namespace {

struct Cgroup {
  std::filesystem::path root = std::filesystem::temp_directory_path() / ("lathe_cgroup_" + std::to_string(getpid()));
  Cgroup() { std::filesystem::create_directories(root); }
  ~Cgroup() { std::filesystem::remove_all(root); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  int32_t quota() const { return cgroup_quota((root / "self").c_str(), root.c_str()); }
};

TEST(thread_count, reads_the_quota_of_version_2_rounded_up) {
  const Cgroup group;
  group.write("self", "0::/app/worker\n");
  EXPECT_EQ(group.quota(), 0);
  group.write("app/worker/cpu.max", "max 100000\n");
  EXPECT_EQ(group.quota(), 0);
  group.write("app/worker/cpu.max", "250000 100000\n");
  EXPECT_EQ(group.quota(), 3);
  group.write("app/cpu.max", "150000 100000\n");  // the parent binds too
  EXPECT_EQ(group.quota(), 2);
  group.write("cpu.max", "50000 100000\n");
  EXPECT_EQ(group.quota(), 1);
}

TEST(thread_count, reads_the_quota_of_version_1) {
  const Cgroup group;
  group.write("self", "12:memory:/\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n");
  group.write("cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "400000\n");
  group.write("cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(group.quota(), 4);
  group.write("cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(group.quota(), 0);
}

TEST(thread_count, survives_files_that_are_no_cgroup) {
  const Cgroup group;
  for (const char* text : {"", "nonsense", "0:", "0::", ":::::\n::", "0::/../../..\n"}) {
    group.write("self", text);
    EXPECT_EQ(group.quota(), 0) << text;
  }
  EXPECT_EQ(cgroup_quota("/nowhere/at/all", "/nowhere"), 0);
}

TEST(thread_count, takes_the_first_of_option_and_variables) {
  unsetenv("LATHE_NUM_THREADS");
  unsetenv("OMP_NUM_THREADS");
  const int32_t by_machine = choose_thread_count(0);
  EXPECT_GE(by_machine, 1);
  EXPECT_LE(by_machine, allowed_cores());
  setenv("OMP_NUM_THREADS", "3,2", 1);
  EXPECT_EQ(choose_thread_count(0), 3);
  setenv("LATHE_NUM_THREADS", "5", 1);
  EXPECT_EQ(choose_thread_count(0), 5);
  EXPECT_EQ(choose_thread_count(7), 7);
  setenv("LATHE_NUM_THREADS", "many", 1);
  EXPECT_EQ(choose_thread_count(0), 3);
  unsetenv("LATHE_NUM_THREADS");
  unsetenv("OMP_NUM_THREADS");
}

TEST(thread_count, parses_numbers_and_nothing_else) {
  EXPECT_EQ(parse_thread_count("4"), 4);
  EXPECT_EQ(parse_thread_count("4,2,1"), 4);
  for (const char* text : {"", "0", "-1", "abc", "4x", "99999999999999999999"})
    EXPECT_EQ(parse_thread_count(text), 0) << text;
}

TEST(thread_count, counts_the_affinity_mask) {
  int32_t pinned = 0;
  std::thread([&] {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    sched_setaffinity(0, sizeof(one), &one);  // of this thread alone
    pinned = allowed_cores();
  }).join();
  EXPECT_EQ(pinned, 1);
}

}  // namespace
}  // namespace lathe::runtime
