#include <gtest/gtest.h>

#include "schedule/rules/nest/work.h"
#include "schedule/rules/rules.h"
#include "schedule/testing/programs.h"
#include "schedule/testing/rule_check.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::last_remarks;
using testing::machine;
using testing::machines;
using testing::scheduled;
using testing::scheduled_once;

struct FewShape {
  Expr batch, height, width;
  int64_t channels, results, kernel, stride = 1;
  bool epilogue = true, is_padded = false, is_costly = false;
};

// A convolution of an image whose channels are last to planes, where each channel's weights lie side by side.
Function to_planes(const FewShape& s, std::vector<Var> symbols = {}) {
  Builder b;
  const auto read = [&](const Expr& positions) { return (positions - 1) * int64(s.stride) + int64(s.kernel); };
  const std::vector<Expr> image{s.batch, read(s.height), read(s.width), int64(s.channels)};
  Buffer x = b.input("X", s.is_padded ? std::vector<Expr>{s.batch, s.height, s.width, int64(s.channels)} : image);
  const Buffer w = b.input("W", {int64(s.results), int64(s.kernel), int64(s.kernel), int64(s.channels)});
  const std::vector<Expr> shape{s.batch, int64(s.results), s.height, s.width};
  const Expr zero = constant(DType::float32(), 0);
  if (s.is_padded) {
    const Buffer padded = b.inner("padded", image);
    const int64_t side = s.kernel / 2;
    b.compute("pad", padded, [&](const std::vector<Expr>& i) {
      const Expr row = i[1] - side, column = i[2] - side;
      const Expr inside =
          logical_and(logical_and(row >= 0, row < s.height), logical_and(column >= 0, column < s.width));
      return if_then_else(inside, load(x, {i[0], row, column, i[3]}), zero);
    });
    x = padded;
  }
  const Buffer y = b.output("Y", shape), sums = s.epilogue ? b.inner("sums", shape) : y;
  b.sum("conv", sums, {{"kh", int64(s.kernel)}, {"kw", int64(s.kernel)}, {"c", int64(s.channels)}},
        [&](const std::vector<Expr>& i) {
          return load(x, {i[0], i[2] * int64(s.stride) + i[4], i[3] * int64(s.stride) + i[5], i[6]}) *
                 load(w, {i[1], i[4], i[5], i[6]});
        });
  if (s.epilogue)
    b.compute("relu", y, [&](const std::vector<Expr>& i) {
      return s.is_costly ? call(intrinsic::sigmoid, load(sums, i)) : max(load(sums, i), zero);
    });
  return b.build(std::move(symbols));
}

TEST(dot, takes_convolutions_to_few_planes) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t results : {1, 2, 3, 5, 8})
      for (const auto& [width, channels, kernel, stride] :
           std::vector<std::array<int64_t, 4>>{{8, 16, 3, 1}, {13, 32, 1, 1}, {1, 48, 3, 1}, {7, 24, 2, 2}})
        for (const bool epilogue : {true, false}) {
          const FewShape shape{int64(2), int64(3), int64(width), channels, results, kernel, stride, epilogue};
          const std::string taken = scheduled(to_planes(shape), machine(bits, registers), 1e-5);
          EXPECT_EQ(taken, "dot") << taken << ": " << bits << " bits, " << results << " results of " << width << ", "
                                  << channels << " channels\n"
                                  << last_remarks;
        }
}

TEST(dot, takes_images_of_any_size) {
  const std::vector<std::map<std::string, int64_t>> sizes{
      {{"n", 1}, {"h", 1}, {"w", 1}}, {{"n", 2}, {"h", 3}, {"w", 13}}, {{"n", 1}, {"h", 2}, {"w", 16}}};
  const Var n = ir::size_var("n"), h = ir::size_var("h"), w = ir::size_var("w");
  for (const int64_t results : {1, 3})
    for (const auto& [is_padded, is_costly] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
      const FewShape shape{n, h, w, 32, results, 3, 1, true, is_padded, is_costly};
      EXPECT_EQ(scheduled_once(to_planes(shape, {n, h, w}), machine(512, 32), 1e-5, sizes), "dot") << last_remarks;
    }
}

TEST(dot, goes_between_padding_and_what_follows) {
  for (const auto& [bits, registers] : machines)
    for (const bool is_costly : {false, true}) {
      const FewShape shape{int64(1), int64(5), int64(12), 16, 2, 3, 1, true, true, is_costly};
      EXPECT_EQ(scheduled(to_planes(shape), machine(bits, registers), 1e-5), "dot") << last_remarks;
    }
}

TEST(dot, shares_rows_among_threads) {
  const FewShape large{int64(1), int64(64), int64(48), 32, 3, 3}, small{int64(1), int64(2), int64(8), 16, 1, 1};
  EXPECT_EQ(testing::parallel_extents(to_planes(large), machine(512, 32)), (std::vector<int64_t>{64}));
  EXPECT_TRUE(testing::parallel_extents(to_planes(small), machine(512, 32)).empty());
}

TEST(dot, takes_no_results_of_rows_that_are_not_known) {
  const Var n = ir::size_var("n"), h = ir::size_var("h"), w = ir::size_var("w");
  EXPECT_NE(
      scheduled(to_planes({n, h, w, 32, 0, 3}, {n, h, w}), machine(512, 32), 1e-5, {{"n", 1}, {"h", 2}, {"w", 3}}),
      "dot");
}

TEST(dot, leaves_others_what_it_is_not_for) {
  const auto taken = [](const Function& f) { return scheduled(f, machine(512, 32), 1e-5); };
  EXPECT_EQ(taken(testing::matmul(int64(5), int64(1), int64(64))), "reduction") << "a matrix times a vector";
  const FewShape many{int64(1), int64(2), int64(3), 16, 9, 1}, odd{int64(1), int64(2), int64(3), 5, 2, 3};
  EXPECT_NE(taken(to_planes(many)), "dot");
  EXPECT_NE(taken(to_planes(odd)), "dot") << "channels that fill no vectors";
}

}  // namespace
}  // namespace lathe::schedule
