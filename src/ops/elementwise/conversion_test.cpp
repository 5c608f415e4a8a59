#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace conversion_test {

using ir::make;

Array cast_to(DType dtype, const Array& x) { return run(astype, {x}, make<AstypeAttributes>(dtype))[0]; }

TEST(conversion, converts_between_all_dtypes) {
  std::vector<DType> all = floats;
  all.insert(all.end(), integers.begin(), integers.end());
  all.push_back(DType::boolean());
  for (const DType from : all)
    for (const DType to : all) {
      const Array x = random_array(from, {13}, 1, from.is_uint() || to.is_uint() ? 0 : -9, 9);
      const Array expected =
          map(to, {13}, {x}, [&](const auto& v) { return to.is_floating() || to.is_bool() ? v[0] : std::trunc(v[0]); });
      EXPECT_TRUE(close(cast_to(to, x), expected, 0)) << from.str() << " to " << to.str();
    }
}

TEST(conversion, wraps_integers_and_truncates_floats) {
  EXPECT_TRUE(close(cast_to(DType::int_(8), array(DType::int_(32), {3}, {200, -129, 300})),
                    array(DType::int_(8), {3}, {-56, 127, 44})));
  EXPECT_TRUE(close(cast_to(DType::int_(32), array(DType::float32(), {3}, {2.9, -2.9, 0.5})),
                    array(DType::int_(32), {3}, {2, -2, 0})));
  EXPECT_TRUE(close(cast_to(DType::boolean(), array(DType::float32(), {3}, {0.5, 0, -2})),
                    array(DType::boolean(), {3}, {1, 0, 1})));
}

TEST(conversion, refuses_dtypes_without_numbers) {
  EXPECT_EQ(refusal(astype, {zeros(DType::float32(), {1})}, make<AstypeAttributes>(DType::handle()))[0].code,
            relax::codes::wrong_attribute);
}

TEST(conversion, clips_to_bounds_that_may_be_absent) {
  for (const auto& dtypes : {floats, integers})
    for (const DType dtype : dtypes) {
      const Array x = random_array(dtype, {4, 5}, 2, -9, 9), low = array(dtype, {}, {1}), high = array(dtype, {}, {5});
      const auto clipped = [&](double lowest, double highest) {
        return map(dtype, {4, 5}, {x}, [&](const auto& v) { return std::min(std::max(v[0], lowest), highest); });
      };
      EXPECT_TRUE(close(run(clip, {x, low, high})[0], clipped(1, 5)));
      EXPECT_TRUE(close(run(clip, {x, low})[0], clipped(1, 1e9)));
      EXPECT_TRUE(close(run(clip, {x, std::monostate{}, high})[0], clipped(-1e9, 5)));
      EXPECT_TRUE(close(run(clip, {x})[0], x));
      EXPECT_TRUE(close(run(clip, {x, high, low})[0], clipped(5, 1))) << "the upper bound wins";
    }
  const Array x = zeros(DType::float32(), {2});
  EXPECT_EQ(refusal(clip, {x, x})[0].code, relax::codes::wrong_rank);
  EXPECT_EQ(refusal(clip, {x, zeros(DType::int_(8), {})})[0].code, relax::codes::dtype_mismatch);
}

}  // namespace conversion_test
}  // namespace lathe::ops::testing
