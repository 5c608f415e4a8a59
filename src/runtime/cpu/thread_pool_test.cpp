#include "runtime/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace lathe::runtime {
namespace {

// Runs a C++ callable as a region.
template <typename Body>
void parallel(int64_t extent, int64_t grain, int32_t threads, Body body) {
  const auto trampoline = [](void* closure, int64_t begin, int64_t end) { (*static_cast<Body*>(closure))(begin, end); };
  run_region({trampoline, &body, extent, grain, threads, read_float_control()});
}

TEST(thread_pool, splits_into_parts_that_cover_the_extent_once) {
  for (const int64_t extent : {1, 2, 7, 100, 101})
    for (const int32_t parts : {1, 2, 3, 7}) {
      int64_t next = 0;
      for (int32_t i = 0; i < parts; ++i) {
        const Part part = part_of(extent, parts, i);
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.end - part.begin, extent / parts + 1);
        next = part.end;
      }
      EXPECT_EQ(next, extent);
    }
  EXPECT_EQ(part_count(100, 30, 8), 3);
  EXPECT_EQ(part_count(100, 0, 8), 8);
  EXPECT_EQ(part_count(5, 10, 8), 1);
}

TEST(thread_pool, runs_every_iteration_exactly_once) {
  for (const int32_t threads : {1, 2, 3, 8})
    for (const int64_t extent : {0, 1, 2, 3, 17, 1000}) {
      std::vector<std::atomic<int>> counts(static_cast<size_t>(extent));
      parallel(extent, 1, threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
      });
      for (const std::atomic<int>& count : counts) EXPECT_EQ(count, 1);
    }
}

TEST(thread_pool, gives_parts_to_different_threads) {
  std::atomic<int> arrived = 0;
  std::atomic<bool> met = false;
  // Each part waits for the other, so this ends only if both run at the same time.
  parallel(2, 1, 2, [&](int64_t begin, int64_t end) {
    ASSERT_EQ(end - begin, 1);
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    met = true;
  });
  EXPECT_TRUE(met);
}

TEST(thread_pool, takes_pieces_of_no_less_than_the_grain) {
  for (const int64_t grain : {1, 3, 10})
    for (const int64_t extent : {1, 5, 31, 100, 1001}) {
      std::atomic<int64_t> sum = 0, calls = 0;
      parallel(extent, grain, 3, [&](int64_t begin, int64_t end) {
        EXPECT_GE(end - begin, std::min(grain, extent));
        sum += end - begin;
        ++calls;
      });
      EXPECT_EQ(sum, extent);
      EXPECT_LE(calls, 6);
    }
}

// A thread that is busy elsewhere keeps what it has begun and no more: the others run the rest.
TEST(thread_pool, does_the_work_of_threads_that_are_late) {
  std::atomic<int> done = 0;
  std::atomic<bool> is_held = false;
  parallel(80, 1, 2, [&](int64_t begin, int64_t end) {
    if (!is_held.exchange(true))  // the first piece ends only when all others have
      while (done < 60) std::this_thread::yield();
    done += static_cast<int>(end - begin);
  });
  EXPECT_EQ(done, 80);
}

TEST(thread_pool, survives_thousands_of_short_regions) {
  int64_t total = 0;
  for (int round = 0; round < 3000; ++round) {
    std::atomic<int64_t> sum = 0;
    parallel(round % 7, 1, 4, [&](int64_t begin, int64_t end) { sum += end - begin; });
    total += sum;
    if (round % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // lets the workers fall asleep
  }
  int64_t expected = 0;
  for (int round = 0; round < 3000; ++round) expected += round % 7;
  EXPECT_EQ(total, expected);
}

TEST(thread_pool, runs_nested_regions_inline) {
  std::atomic<int64_t> sum = 0;
  parallel(4, 1, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::thread::id here = std::this_thread::get_id();
      parallel(10, 1, 4, [&](int64_t inner_begin, int64_t inner_end) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        sum += inner_end - inner_begin;
      });
    }
  });
  EXPECT_EQ(sum, 40);
}

TEST(thread_pool, serves_several_callers_at_once) {
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        parallel(13, 1, 3, [&](int64_t begin, int64_t end) { sum += end - begin; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 8 * 200 * 13);
}

TEST(thread_pool, works_in_a_forked_child) {
  parallel(8, 1, 4, [](int64_t, int64_t) {});
  EXPECT_GT(worker_count(), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::atomic<int64_t> sum = 0;
    const bool has_none = worker_count() == 0;
    parallel(8, 1, 4, [&](int64_t begin, int64_t end) { sum += end - begin; });
    _exit(has_none && sum == 8 && worker_count() > 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::atomic<int64_t> sum = 0;
  parallel(8, 1, 4, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 8);
}

TEST(thread_pool, gives_workers_the_callers_float_mode) {
  const FloatControl before = read_float_control();
  std::vector<FloatControl> seen(4);
  const auto body = [](void* closure, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) static_cast<FloatControl*>(closure)[i] = read_float_control();
  };
  for (const bool flushes : {true, false}) {
    const FloatModeScope scope(float_control(flushes));
    run_region({body, seen.data(), 4, 1, 4, float_control(flushes)});
    for (const FloatControl control : seen) EXPECT_EQ(control, float_control(flushes));
  }
  EXPECT_EQ(read_float_control(), before);
}

TEST(float_mode, flushes_denormals_only_when_asked) {
  volatile float smallest = 1e-38f, tenth = 0.1f;
  for (const bool flushes : {true, false}) {
    const FloatModeScope scope(float_control(flushes));
    const float product = smallest * tenth;
    EXPECT_EQ(product == 0, flushes);
  }
}

}  // namespace
}  // namespace lathe::runtime
