#include "driver/verify/sample.h"

#include <gtest/gtest.h>

#include "te/tensor.h"
#include "tir/interpret/interpret.h"

namespace lathe::driver {
namespace {

using ir::DType;
using ir::int64;

// max over k of (a[i, k] + 1) * b[k, j], with the sum as a tensor of its own.
tir::Function product(int64_t m, int64_t n, int64_t depth) {
  const te::Tensor a = te::placeholder({int64(m), int64(depth)}), b = te::placeholder({int64(depth), int64(n)});
  const te::Tensor more = te::compute(
      a.shape(), [&](const auto& i) { return a({i[0], i[1]}) + ir::constant(DType::float32(), 1.0); }, {a}, "more");
  const ir::IterVar k = te::reduce_axis(int64(0), int64(depth));
  const te::Tensor c = te::compute(
      {int64(m), int64(n)}, [&](const auto& i) { return te::sum(more({i[0], k->var}) * b({k->var, i[1]}), {k}); },
      {more, b}, "c");
  return te::create_prim_func({a, b}, {c});
}

tir::TensorBuffer ramp(std::vector<int64_t> shape) {
  tir::TensorBuffer t = tir::TensorBuffer::zeros(DType::float32(), std::move(shape));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_float(i, static_cast<double>(i % 13) - 6);
  return t;
}

TEST(sample_outputs, computes_the_points_asked_for_and_no_others) {
  const tir::Function function = product(6, 5, 7);
  std::vector<tir::TensorBuffer> whole = {ramp({6, 7}), ramp({7, 5}),
                                          tir::TensorBuffer::uninitialised(DType::float32(), {6, 5})};
  ASSERT_TRUE(tir::interpret(function, whole).ok());

  const SampledProgram sampled = sample_outputs(function, 1, 3);
  ASSERT_TRUE(sampled.is_sampled);
  std::vector<tir::TensorBuffer> some = {whole[0], whole[1], tir::TensorBuffer::uninitialised(DType::float32(), {6, 5}),
                                         tir::TensorBuffer::zeros(DType::int64(), {3, 2})};
  const std::vector<std::pair<int64_t, int64_t>> points = {{0, 0}, {5, 4}, {2, 3}};
  for (size_t s = 0; s < points.size(); ++s) {
    some[3].set_int(static_cast<int64_t>(s) * 2, points[s].first);
    some[3].set_int(static_cast<int64_t>(s) * 2 + 1, points[s].second);
  }
  const support::Status done = tir::interpret(sampled.function, some);
  ASSERT_TRUE(done.ok()) << support::render(done.diagnostics());
  int64_t written = 0;
  for (int64_t i = 0; i < 30; ++i) written += some[2].is_written(i);
  EXPECT_EQ(written, 3);
  for (const auto& [i, j] : points)
    EXPECT_EQ(some[2].float_at(i * 5 + j), whole[2].float_at(i * 5 + j)) << i << "," << j;
}

TEST(sample_outputs, leaves_an_output_that_another_block_reads) {
  const te::Tensor a = te::placeholder({int64(4)});
  const te::Tensor b = te::compute({int64(4)}, [&](const auto& i) { return a({i[0]}) + a({i[0]}); }, {a}, "b");
  const te::Tensor c = te::compute({int64(4)}, [&](const auto& i) { return b({i[0]}) * b({i[0]}); }, {b}, "c");
  EXPECT_FALSE(sample_outputs(te::create_prim_func({a}, {b, c}), 2, 2).is_sampled);
}

TEST(operations_of, counts_the_innermost_statements) { EXPECT_EQ(operations_of(*product(6, 5, 7)), 6 * 7 + 6 * 5 * 7); }

}  // namespace
}  // namespace lathe::driver
