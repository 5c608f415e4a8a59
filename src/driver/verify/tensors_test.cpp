#include "driver/verify/tensors.h"

#include <gtest/gtest.h>

namespace lathe::driver {
namespace {

ir::TensorData floats(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return ir::tensor_of<float>(ir::DType::float32(), {count}, values);
}

TEST(compare, takes_equal_tensors_and_small_errors) {
  EXPECT_TRUE(compare(*floats({1, 2, 3}), *floats({1, 2, 3})).agrees());
  const Difference d = compare(*floats({1, 2, 1000}), *floats({1.05f, 2, 1000}));
  EXPECT_TRUE(d.agrees());
  EXPECT_NEAR(d.relative(), 5e-5, 1e-6);
}

TEST(compare, finds_one_wrong_element) {
  const Difference d = compare(*floats({1, 2, 3}), *floats({1, 2.1f, 3}));
  EXPECT_EQ(d.wrong, 1);
  EXPECT_NEAR(d.largest_error, 0.1, 1e-6);
}

TEST(compare, wants_nan_and_infinity_in_the_same_places) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compare(*floats({nan, inf, 1}), *floats({nan, inf, 1})).agrees());
  EXPECT_FALSE(compare(*floats({nan, inf, 1}), *floats({1, inf, 1})).agrees());
  EXPECT_FALSE(compare(*floats({1, -inf, 1}), *floats({1, inf, 1})).agrees());
}

TEST(compare, wants_integers_exactly) {
  const auto integers = [](std::vector<int64_t> v) { return ir::tensor_of<int64_t>(ir::DType::int64(), {2}, v); };
  EXPECT_TRUE(compare(*integers({1, 1 << 30}), *integers({1, 1 << 30})).agrees());
  EXPECT_FALSE(compare(*integers({1, (1 << 30) + 1}), *integers({1, 1 << 30})).agrees());
}

TEST(compare, says_which_shapes_differ) {
  const Difference d = compare(*floats({1, 2}), *floats({1, 2, 3}));
  EXPECT_FALSE(d.agrees());
  EXPECT_NE(d.complaint.find("[2]"), std::string::npos);
}

TEST(compare, looks_at_the_positions_asked_for) {
  const std::vector<int64_t> second = {1};
  EXPECT_TRUE(compare(*floats({9, 2, 9}), *floats({1, 2, 3}), second).agrees());
}

TEST(random_tensor, depends_on_the_seed_alone_and_is_not_constant) {
  for (const ir::DType dtype :
       {ir::DType::float32(), ir::DType::float_(16), ir::DType::bfloat16(), ir::DType::int64(), ir::DType::uint(8),
        ir::DType::boolean(), ir::DType::int_(4), ir::DType::uint(2), *ir::DType::parse("float8_e4m3fn"),
        *ir::DType::parse("float8_e8m0fnu"), *ir::DType::parse("float4_e2m1fn")}) {
    const auto a = random_tensor(dtype, {7, 11}, 5), again = random_tensor(dtype, {7, 11}, 5);
    EXPECT_EQ(a->view(), again->view()) << dtype.str();
    EXPECT_NE(a->view(), random_tensor(dtype, {7, 11}, 6)->view()) << dtype.str();
    EXPECT_FALSE(std::all_of(a->view().begin(), a->view().end(), [&](char c) { return c == a->bytes[0]; }))
        << dtype.str();
  }
  EXPECT_EQ(random_tensor(ir::DType::float32(), {3, 0}, 1)->byte_size(), 0);
}

}  // namespace
}  // namespace lathe::driver
