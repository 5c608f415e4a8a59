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
  bool epilogue = true;
};

// A convolution of an image whose channels are last to planes, where each channel's weights lie side by side.
Function to_planes(const FewShape& s) {
  Builder b;
  const auto read = [&](const Expr& positions) { return (positions - 1) * int64(s.stride) + int64(s.kernel); };
  const Buffer x = b.input("X", {s.batch, read(s.height), read(s.width), int64(s.channels)});
  const Buffer w = b.input("W", {int64(s.results), int64(s.kernel), int64(s.kernel), int64(s.channels)});
  const std::vector<Expr> shape{s.batch, int64(s.results), s.height, s.width};
  const Expr zero = constant(DType::float32(), 0);
  const Buffer y = b.output("Y", shape), sums = s.epilogue ? b.inner("sums", shape) : y;
  b.sum("conv", sums, {{"kh", int64(s.kernel)}, {"kw", int64(s.kernel)}, {"c", int64(s.channels)}},
        [&](const std::vector<Expr>& i) {
          return load(x, {i[0], i[2] * int64(s.stride) + i[4], i[3] * int64(s.stride) + i[5], i[6]}) *
                 load(w, {i[1], i[4], i[5], i[6]});
        });
  if (s.epilogue)
    b.compute("relu", y, [&](const std::vector<Expr>& i) { return max(load(sums, i), zero); });
  return b.build();
}

TEST(dot, takes_convolutions_to_few_planes) {
  for (const auto& [bits, registers] : machines)
    for (const int64_t results : {1, 2, 3, 5, 8})
      for (const auto& [width, channels, kernel, stride] :
           std::vector<std::array<int64_t, 4>>{{8, 16, 3, 1}, {13, 32, 1, 1}, {1, 48, 3, 1}, {7, 24, 2, 2}})
        for (const bool epilogue : {true, false}) {
          const FewShape shape{int64(2), int64(3), int64(width), channels, results, kernel, stride, epilogue};
          const std::string taken = scheduled(to_planes(shape), machine(bits, registers), 1e-5);
          EXPECT_TRUE(taken == "dot" || (taken == "reduction" && results == 1))
              << taken << ": " << bits << " bits, " << results << " results of " << width << ", " << channels
              << " channels\n"
              << last_remarks;
        }
}

}  // namespace
}  // namespace lathe::schedule
