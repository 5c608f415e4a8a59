#include "schedule/analysis/digits.h"

#include <gtest/gtest.h>

namespace lathe::schedule {
namespace {

DigitSteps steps(const std::vector<std::pair<char, int64_t>>& list) {
  DigitSteps all;
  for (const auto& [operation, divisor] : list) all.emplace_back(operation, int64(divisor));
  return all;
}

int64_t value_of(int64_t number, const DigitSteps& digit) {
  for (const auto& [operation, by] : digit) {
    const int64_t n = *as_int(by), remainder = ((number % n) + n) % n;
    number = operation == '%' ? remainder : (number - remainder) / n;
  }
  return number;
}

// By counting: whether two numbers from low to high have the same digits.
bool determined(const std::vector<DigitSteps>& digits, int64_t low, int64_t high) {
  std::set<std::vector<int64_t>> seen;
  for (int64_t number = low; number < high; ++number) {
    std::vector<int64_t> values;
    for (const DigitSteps& digit : digits) values.push_back(value_of(number, digit));
    if (!seen.insert(values).second) return false;
  }
  return true;
}

TEST(digits, of_fused_and_split_loops_determine_them) {
  EXPECT_TRUE(determine({steps({})}));
  EXPECT_TRUE(determine({steps({{'/', 4}}), steps({{'%', 4}})}));
  // l // 16, l % 4 and l // 4 % 4, which the simplifier leaves of (l // 4) // 4 and (l // 4) % 4.
  EXPECT_TRUE(determine({steps({{'/', 16}}), steps({{'%', 4}}), steps({{'/', 4}, {'%', 4}})}));
  EXPECT_TRUE(determine(
      {steps({{'/', 576}}), steps({{'/', 192}, {'%', 3}}), steps({{'/', 64}, {'%', 3}}), steps({{'%', 64}})}));
  EXPECT_TRUE(determine({steps({{'/', 6}, {'/', 2}}), steps({{'%', 24}})}));  // digits that overlap
  EXPECT_TRUE(determine({steps({{'/', 4}, {'%', 4}}), steps({{'%', 4}})}, 16));
  EXPECT_FALSE(determine({steps({{'/', 4}, {'%', 4}}), steps({{'%', 4}})}, 17));
  EXPECT_FALSE(determine({steps({{'/', 4}, {'%', 4}}), steps({{'%', 4}})}));
  EXPECT_FALSE(determine({steps({{'/', 16}}), steps({{'%', 4}}), steps({{'/', 4}, {'%', 2}})}));
  EXPECT_FALSE(determine({steps({{'/', 16}}), steps({{'/', 4}, {'%', 4}})}));
  EXPECT_FALSE(determine({steps({{'/', 6}}), steps({{'%', 4}})}));
  EXPECT_FALSE(determine({}));
}

TEST(digits, of_unknown_divisors_determine_a_number_by_splits) {
  const Var n = size_var("n");
  EXPECT_TRUE(determine({{{'/', n}}, {{'%', n}}}));
  EXPECT_FALSE(determine({{{'/', n}}, {{'%', n + 1}}}));
}

// What is said to determine a number does so, for negative numbers too; and what is not said mostly does not.
TEST(digits, are_told_as_counting_tells) {
  std::mt19937_64 random(7);
  const auto pick = [&](std::vector<int64_t> from) { return from[random() % from.size()]; };
  int said = 0, missed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<DigitSteps> digits;
    for (int64_t count = pick({1, 2, 3, 4}); count > 0; --count) {
      std::vector<std::pair<char, int64_t>> list;
      for (int64_t length = pick({1, 1, 2, 2, 3}); length > 0; --length)
        list.emplace_back(random() % 2 ? '/' : '%', pick({2, 3, 4, 6, 8, 12}));
      digits.push_back(steps(list));
    }
    const std::optional<int64_t> below = random() % 2 ? std::optional<int64_t>(pick({5, 16, 24, 30})) : std::nullopt;
    const bool is_true = determined(digits, below ? 0 : -400, below.value_or(400));
    if (determine(digits, below)) {
      EXPECT_TRUE(is_true);
      ++said;
    } else if (is_true && !below) {
      ++missed;
    }
  }
  EXPECT_GT(said, 500);
  EXPECT_LT(missed, said / 4);
}

}  // namespace
}  // namespace lathe::schedule
