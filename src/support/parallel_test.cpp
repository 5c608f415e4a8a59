#include "support/parallel.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

namespace lathe::support {
namespace {

TEST(parallel_for, calls_each_once) {
  for (const int threads : {0, 1, 2, 7})
    for (const size_t count : {0, 1, 2, 100}) {
      std::vector<int> calls(count);
      parallel_for(count, threads, [&](size_t i) { ++calls[i]; });
      EXPECT_EQ(std::accumulate(calls.begin(), calls.end(), size_t(0)), count);
      for (const int times : calls) EXPECT_EQ(times, 1);
    }
}

TEST(parallel_for, throws_what_the_first_threw_after_all_are_done) {
  for (const int threads : {2, 4}) {
    std::vector<int> calls(50);
    try {
      parallel_for(50, threads, [&](size_t i) {
        ++calls[i];
        if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "7");
    }
    for (const int times : calls) EXPECT_EQ(times, 1);
  }
}

}  // namespace
}  // namespace lathe::support
