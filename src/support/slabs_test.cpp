#include "support/slabs.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace lathe::support {
namespace {

// An object whose bytes say which one it is.
struct Object {
  unsigned char* at = nullptr;
  size_t bytes = 0;
  unsigned char mark = 0;
};

Object made(size_t bytes, unsigned char mark) {
  auto* at = static_cast<unsigned char*>(slab_allocate(bytes));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 16, 0u) << bytes;
  std::memset(at, mark, bytes);
  return {at, bytes, mark};
}

void end(const Object& object) {
  for (size_t i = 0; i < object.bytes; ++i) ASSERT_EQ(object.at[i], object.mark) << "byte " << i << " of another";
  slab_free(object.at, object.bytes);
}

TEST(slabs, objects_of_all_sizes_keep_apart) {
  std::mt19937 random(1);
  std::vector<Object> living;
  for (int step = 0; step < 200000; ++step) {
    const size_t wanted = step % 40000 < 20000 ? 3000 : 100;  // grows, shrinks, grows again
    if (living.size() < wanted && random() % 4 != 0) {
      living.push_back(made(1 + random() % 700, static_cast<unsigned char>(random())));
    } else if (!living.empty()) {
      std::swap(living[random() % living.size()], living.back());
      end(living.back());
      living.pop_back();
    }
  }
  for (const Object& object : living) end(object);
}

TEST(slabs, other_threads_free_and_ending_threads_leave_objects_behind) {
  std::mutex mutex;
  std::condition_variable filled;
  std::vector<Object> passed;
  bool done = false;
  std::thread consumer([&] {
    for (std::vector<Object> mine;; mine.clear()) {
      std::unique_lock lock(mutex);
      filled.wait(lock, [&] { return done || !passed.empty(); });
      if (passed.empty()) return;
      mine.swap(passed);
      lock.unlock();
      for (const Object& object : mine) end(object);
    }
  });
  std::vector<Object> left;  // by threads that ended
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> makers;
    for (int maker = 0; maker < 3; ++maker)
      makers.emplace_back([&, maker, round] {
        std::mt19937 random(static_cast<uint32_t>(3 * round + maker));
        for (int i = 0; i < 2000; ++i) {
          const Object object = made(1 + random() % 200, static_cast<unsigned char>(random()));
          const std::lock_guard lock(mutex);
          (i % 10 == 0 ? left : passed).push_back(object);
          filled.notify_one();
        }
      });
    for (std::thread& maker : makers) maker.join();
  }
  {
    const std::lock_guard lock(mutex);
    done = true;
    filled.notify_one();
  }
  consumer.join();
  for (const Object& object : left) end(object);
}

// The address sanitizer keeps what was freed from being used again, and slabs are off for it.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LATHE_KEEPS_FREED_MEMORY 1
#endif
#endif
#ifndef LATHE_KEEPS_FREED_MEMORY
// What was freed is taken again, by whatever thread made or freed it: rounds do not add up.
TEST(slabs, memory_is_used_again) {
  uintptr_t lowest = UINTPTR_MAX, highest = 0;
  const auto round = [&] {
    std::vector<void*> objects(20000);
    std::thread([&] {
      for (void*& at : objects) {
        at = slab_allocate(48);
        lowest = std::min(lowest, reinterpret_cast<uintptr_t>(at));
        highest = std::max(highest, reinterpret_cast<uintptr_t>(at));
      }
    }).join();
    for (void* at : objects) slab_free(at, 48);
  };
  for (int i = 0; i < 3; ++i) round();
  const uintptr_t span = highest - lowest;
  for (int i = 0; i < 50; ++i) round();
  EXPECT_EQ(highest - lowest, span);
}
#endif

}  // namespace
}  // namespace lathe::support
