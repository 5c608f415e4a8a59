#include <gtest/gtest.h>

#include <random>

#include "ir/floor.h"
#include "ops/build/resample_positions.h"

namespace lathe::ops::build {
namespace resample_test {

TEST(resample, closed_forms_are_the_tables_they_stand_for) {
  std::mt19937 random(3);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  int found = 0, refused = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const int64_t period = 1 + below(10), step = below(3 * period), shift = below(40) - 20;
    std::vector<int64_t> table;
    for (int64_t i = 0, n = 1 + below(50); i < n; ++i) table.push_back(ir::floor_div(step * i + shift, period));
    const bool disturbed = trial % 2 == 0;
    if (disturbed) table[static_cast<size_t>(below(static_cast<int64_t>(table.size())))] += 1 + below(2);
    const auto digits = as_digits(table);
    if (!disturbed && period <= largest_period) ASSERT_TRUE(digits) << step << " i + " << shift << " over " << period;
    ++(digits ? found : refused);
    for (size_t i = 0; digits && i < table.size(); ++i)
      ASSERT_EQ(ir::floor_div(digits->step * static_cast<int64_t>(i) + digits->shift, digits->period), table[i]);
  }
  EXPECT_GT(found, 1500);
  EXPECT_GT(refused, 500);
}

// Weights of a triangle and of Keys' cubic add up to one, and what they give between elements of a straight line lies
// on it.
TEST(resample, weights_keep_straight_lines) {
  for (const auto interpolation : {Interpolation::linear, Interpolation::cubic})
    for (const auto coordinates : {Coordinates::half_pixel, Coordinates::asymmetric, Coordinates::align_corners})
      for (const int64_t own : {1, 2, 7, 56})
        for (const int64_t extent : {1, 2, 3, 5, 97, 112}) {
          Resampling how;
          how.interpolation = interpolation;
          how.coordinates = coordinates;
          how.cubic_a = -0.5;  // of which lines are kept; of others sums alone are
          const double scale = static_cast<double>(extent) / static_cast<double>(own);
          const ResampleTable table = resample_table(how, own, extent, scale, {0, 1});
          const Positions<double> positions{how, double(own), double(extent), scale, 0, 1};
          for (int64_t i = 0; i < extent; ++i) {
            double sum = 0, line = 0;
            for (size_t k = 0; k < table.weights.size(); ++k) {
              const double weight = table.weights[k][static_cast<size_t>(i)];
              sum += weight;
              line += weight * static_cast<double>(table.index[static_cast<size_t>(i)] + static_cast<int64_t>(k));
            }
            EXPECT_NEAR(sum, 1, 1e-10);
            EXPECT_NEAR(line, positions(static_cast<double>(i)), 1e-9);
          }
        }
}

// By whole numbers: twice the position, half_pixel of a whole factor, is (2 i + 1 - factor) / factor.
TEST(resample, nearest_decides_halves_as_on_paper) {
  for (const int64_t factor : {1, 2, 3, 4, 5, 6, 7, 8, 10, 25, 49})
    for (const auto mode : {Nearest::floor, Nearest::ceil, Nearest::round_prefer_floor, Nearest::round_prefer_ceil}) {
      Resampling how;
      how.nearest = mode;
      const int64_t own = 23, extent = own * factor;
      const ResampleTable table = resample_table(how, own, extent, static_cast<double>(factor), {0, 1});
      for (int64_t i = 0; i < extent; ++i) {
        const int64_t twice = 2 * i + 1 - factor, by = 2 * factor;  // the position is twice / by
        const int64_t expected = mode == Nearest::floor                ? ir::floor_div(twice, by)
                                 : mode == Nearest::ceil               ? -ir::floor_div(-twice, by)
                                 : mode == Nearest::round_prefer_floor ? -ir::floor_div(factor - twice, by)
                                                                       : ir::floor_div(twice + factor, by);
        EXPECT_EQ(table.index[static_cast<size_t>(i)], expected) << factor << ", " << i;
        const auto digits = nearest_digits(how, static_cast<double>(factor));
        ASSERT_TRUE(digits);
        EXPECT_EQ(ir::floor_div(digits->step * i + digits->shift, digits->period), expected) << factor << ", " << i;
      }
    }
}

TEST(resample, whole_scales_need_no_table) {
  for (const auto mode : {Nearest::floor, Nearest::ceil, Nearest::round_prefer_floor, Nearest::round_prefer_ceil})
    for (const auto coordinates : {Coordinates::half_pixel, Coordinates::asymmetric})
      for (const int64_t factor : {1, 2, 3, 5, 7, 10, 49, 98, 107}) {
        Resampling how;
        how.nearest = mode;
        how.coordinates = coordinates;
        const int64_t own = 211;
        const auto digits = nearest_digits(how, static_cast<double>(factor));
        ASSERT_TRUE(digits);
        const ResampleTable table = resample_table(how, own, own * factor, static_cast<double>(factor), {0, 1});
        for (int64_t i = 0; i < own * factor; ++i)
          ASSERT_EQ(ir::floor_div(digits->step * i + digits->shift, digits->period),
                    table.index[static_cast<size_t>(i)]);
      }
}

// Models that strangers write ask for any extent and any scale.
TEST(resample, tables_are_made_of_few_numbers_only) {
  Resampling how;
  EXPECT_TRUE(is_small_table(how, 0, 2));
  EXPECT_TRUE(is_small_table(how, 1 << 16, 2));
  EXPECT_FALSE(is_small_table(how, int64_t{1} << 33, 2));
  how.interpolation = Interpolation::linear;
  EXPECT_TRUE(is_small_table(how, 1 << 16, 1e-9));
  EXPECT_FALSE(is_small_table(how, int64_t{1} << 33, 2));
  how.antialias = true;
  EXPECT_TRUE(is_small_table(how, 1 << 12, 0.1));
  for (const double scale : {1e-9, 0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(is_small_table(how, 8, scale)) << scale;
}

}  // namespace resample_test
}  // namespace lathe::ops::build
