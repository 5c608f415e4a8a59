#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace bits_test {

using Word = int64_t (*)(int64_t, int64_t);

TEST(bits, of_two_integers_of_every_width) {
  const std::pair<const Operator*, Word> cases[] = {
      {&bitwise_and, [](int64_t a, int64_t b) { return a & b; }},
      {&bitwise_or, [](int64_t a, int64_t b) { return a | b; }},
      {&bitwise_xor, [](int64_t a, int64_t b) { return a ^ b; }},
  };
  for (const auto& [op, word] : cases)
    for (const DType dtype : integers) {
      const Array a = random_array(dtype, {3, 5}, 1, -100, 100), b = random_array(dtype, {5}, 2, -100, 100);
      EXPECT_TRUE(close(run(*op, {a, b})[0], map(dtype, {3, 5}, {a, b},
                                                 [&, f = word](const auto& v) {
                                                   return static_cast<double>(
                                                       f(static_cast<int64_t>(v[0]), static_cast<int64_t>(v[1])));
                                                 })))
          << op->name;
    }
}

TEST(bits, flipped_and_shifted) {
  const Array x = array(DType::int_(8), {4}, {0, 1, -7, 100});
  EXPECT_TRUE(close(run(bitwise_not, {x})[0], array(DType::int_(8), {4}, {-1, -2, 6, -101})));
  const Array u = array(DType::uint(8), {3}, {1, 200, 255}), by = array(DType::uint(8), {3}, {3, 1, 8});
  EXPECT_TRUE(close(run(left_shift, {u, by})[0], array(DType::uint(8), {3}, {8, 144, 0})));
  EXPECT_TRUE(close(run(right_shift, {u, by})[0], array(DType::uint(8), {3}, {0, 100, 0})));
}

TEST(bits, refuse_floats) {
  const Array x = zeros(DType::float32(), {2});
  EXPECT_EQ(refusal(bitwise_and, {x, x})[0].code, relax::codes::dtype_not_supported);
  EXPECT_EQ(refusal(bitwise_not, {x})[0].code, relax::codes::dtype_not_supported);
}

}  // namespace bits_test
}  // namespace lathe::ops::testing
