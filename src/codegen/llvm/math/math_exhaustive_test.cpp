// Each function of one argument over all 2^32 values of float32, against the C library in double. LATHE_ALL_FLOATS
// names a folder: the part `all-floats` of the full check sets it. What was found for a function's very code is kept
// there, and a run that was stopped goes on with the next function. Without it, one value in some thousands is tried.
#include <gtest/gtest.h>

#include <chrono>

#include "codegen/llvm/math/math_cases_test.h"

namespace lathe::codegen {
namespace {

constexpr double most_ulps = 2;

// As error_in_ulps, for what is neither special nor near the ends of the range; else that.
double fast_error_in_ulps(float got, double wanted) {
  const uint64_t exponent = (std::bit_cast<uint64_t>(wanted) >> 52) & 0x7ff;
  const bool is_ordinary = exponent > 1023 - 126 && exponent < 1023 + 127;
  if (!is_ordinary || !(std::fabs(got) <= std::numeric_limits<float>::max()))
    return test::error_in_ulps<float, double>(got, wanted);
  const double places = std::bit_cast<double>((2 * 1023 + 23 - exponent) << 52);  // in a unit
  return std::fabs(static_cast<double>(got) - wanted) * places;
}

TEST(math_exhaustive, counts_errors_as_the_slow_way) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto got = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const double near = static_cast<double>(got) * (1 + static_cast<double>(random() % 2001 - 1000.0) * 0x1p-30);
    EXPECT_EQ(fast_error_in_ulps(got, near), (test::error_in_ulps<float, double>(got, near))) << got;
  }
}

// The worst of the values begin, begin + 1, … of each block of `samples` that a thread takes; one in `step` blocks.
test::Worst worst_of_all(const test::UnaryCase& c, const test::Loaded& loaded, uint64_t step) {
  constexpr uint64_t all = uint64_t{1} << 32, block = test::samples;
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  test::Worst worst;
  const auto work = [&] {
    std::vector<float> x(block), y(block);
    test::Worst own;
    for (uint64_t first = next.fetch_add(block * step); first < all; first = next.fetch_add(block * step)) {
      for (uint64_t i = 0; i < block; ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>(first + i));
      EXPECT_EQ(test::call(loaded, 0, {x.data(), y.data()}), 0);
      for (uint64_t i = 0; i < block; ++i) {
        const double wanted = c.single(static_cast<double>(x[i]));
        const double error = fast_error_in_ulps(y[i], wanted);
        if (error > own.error) own = {error, double(x[i]), 0, double(y[i]), wanted};
      }
    }
    const std::lock_guard lock(mutex);
    // Whichever thread had it: the first argument of equals.
    if (own.error > worst.error || (own.error == worst.error && own.argument < worst.argument)) worst = own;
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::max(1u, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  return worst;
}

class EveryFloat : public testing::TestWithParam<test::UnaryCase> {};

TEST_P(EveryFloat, is_within_two_units_in_the_last_place) {
  const test::UnaryCase& c = GetParam();
  const std::string name(c.op->name);
  const char* folder = std::getenv("LATHE_ALL_FLOATS");
  const CompiledKernels compiled =
      compile_kernels({test::unary_kernel(*c.op, DType::float32(), 16)}, test::native()).value_or_throw();
  const std::string kept =
      folder ? fmt::format("{}/{}-{}", folder, name, support::hash_bytes(*compiled.kernels[0].object).hex()) : "";
  if (std::string line; folder && std::getline(std::ifstream(kept), line)) {
    std::printf("  %s (kept)\n", line.c_str());
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const test::Worst worst = worst_of_all(c, load_kernels(compiled).value_or_throw(), folder ? 1 : 4099);
  const std::string said = test::describe(name, worst);
  if (folder)
    std::printf("  %s, %.0f s\n", said.c_str(),
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  ASSERT_LE(worst.error, most_ulps) << said;
  if (folder) std::ofstream(kept) << said << "\n";
}

INSTANTIATE_TEST_SUITE_P(math, EveryFloat, testing::ValuesIn(test::unary_cases),
                         [](const auto& info) { return std::string(info.param.op->name); });

}  // namespace
}  // namespace lathe::codegen
