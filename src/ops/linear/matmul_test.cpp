#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace matmul_test {

using ir::make;

// NumPy's rule, by loops: vectors become matrices, leading dimensions broadcast.
Array matmul_reference(Array a, Array b, DType dtype) {
  const bool row = a.shape.size() == 1, column = b.shape.size() == 1;
  if (row) a.shape.insert(a.shape.begin(), 1);
  if (column) b.shape.push_back(1);
  const size_t rank = std::max(a.shape.size(), b.shape.size());
  Extents full(rank);
  for (size_t d = 0; d + 2 < rank; ++d) {
    const size_t back = rank - 1 - d;  // from the end
    const int64_t x = back < a.shape.size() ? a.shape[a.shape.size() - 1 - back] : 1;
    const int64_t y = back < b.shape.size() ? b.shape[b.shape.size() - 1 - back] : 1;
    full[d] = x == 1 ? y : x;
  }
  full[rank - 2] = a.shape[a.shape.size() - 2];
  full[rank - 1] = b.shape.back();
  Array out = zeros(dtype, full);
  for_each_index(full, [&](const Extents& i) {
    double total = 0;
    for (int64_t k = 0; k < a.shape.back(); ++k) {
      Extents left = i, right = i;
      left[rank - 1] = k;
      right[rank - 2] = k;
      total += a.at(broadcast_index(a.shape, left)) * b.at(broadcast_index(b.shape, right));
    }
    out.at(i) = rounded(dtype, total);
  });
  Extents shape = full;
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  out.shape = shape;
  return out;
}

TEST(matmul, multiplies_any_ranks) {
  const std::vector<std::pair<Extents, Extents>> shapes{{{3, 5}, {5, 7}},
                                                        {{5}, {5}},
                                                        {{5}, {5, 3}},
                                                        {{3, 5}, {5}},
                                                        {{2, 3, 5}, {5, 4}},
                                                        {{2, 3, 5}, {2, 5, 4}},
                                                        {{2, 1, 3, 5}, {6, 5, 4}},
                                                        {{5}, {2, 5, 3}},
                                                        {{2, 3, 5}, {5}},
                                                        {{1, 1}, {1, 1}},
                                                        {{0, 3}, {3, 2}},
                                                        {{2, 0}, {0, 3}},
                                                        {{2, 3}, {3, 0}},
                                                        {{0, 2, 3}, {3, 2}},
                                                        {{1, 13, 17}, {3, 17, 11}}};
  for (const auto& [left, right] : shapes)
    for (const DType dtype : floats) {
      const Array a = random_array(dtype, left, 1), b = random_array(dtype, right, 2);
      EXPECT_TRUE(close(run(matmul, {a, b})[0], matmul_reference(a, b, dtype), 16, 4));
    }
}

TEST(matmul, multiplies_integers) {
  for (const DType dtype : integers) {
    const Array a = random_array(dtype, {3, 4}, 1, -3, 3), b = random_array(dtype, {4, 5}, 2, -3, 3);
    EXPECT_TRUE(close(run(matmul, {a, b})[0], matmul_reference(a, b, dtype)));
  }
}

TEST(matmul, sums_half_precision_in_float32) {
  // 4096 times 1 + 1/1024: a float16 accumulator would stop at 2048.
  const int64_t n = 4096;
  const Array a = array(DType::float_(16), {1, n}, std::vector<double>(n, 1.0));
  const Array b = array(DType::float_(16), {n, 1}, std::vector<double>(n, 1.0009765625));
  EXPECT_TRUE(close(run(matmul, {a, b}, {}, {.symbolic = false})[0], array(DType::float_(16), {1, 1}, {4100})));
}

TEST(matmul, gives_the_dtype_that_is_asked_for) {
  const Array a = random_array(DType::int_(8), {2, 3}, 1, -100, 100),
              b = random_array(DType::int_(8), {3, 2}, 2, -100, 100);
  EXPECT_TRUE(
      close(run(matmul, {a, b}, make<MatmulAttributes>(DType::int_(32)))[0], matmul_reference(a, b, DType::int_(32))));
}

TEST(matmul, reads_packed_columns) {
  for (const int64_t columns : {1, 3, 4, 7, 8})
    for (const int64_t lanes : {1, 4}) {
      const Array a = random_array(DType::float32(), {2, 3, 5}, 1), b = random_array(DType::float32(), {5, columns}, 2);
      const Array packed = run(pack_matrix, {b}, make<PackAttributes>(lanes), {.symbolic = false})[0];
      EXPECT_EQ(packed.shape, (Extents{(columns + lanes - 1) / lanes, 5, lanes}));
      const auto attributes = make<MatmulAttributes>(DType(), "NK" + std::to_string(lanes) + "n", columns);
      EXPECT_TRUE(close(run(matmul, {a, packed}, attributes, {.symbolic = false})[0],
                        matmul_reference(a, b, DType::float32()), 16, 4));
    }
}

TEST(matmul, reads_packed_columns_of_each_matrix_of_a_batch) {
  for (const Extents& batch : std::vector<Extents>{{3}, {1}, {2, 3}, {0}})
    for (const int64_t columns : {1, 4, 7}) {
      Extents left = batch, right = batch;
      left.insert(left.end(), {3, 5});
      right.insert(right.end(), {5, columns});
      const Array a = random_array(DType::float32(), left, 1), b = random_array(DType::float32(), right, 2);
      const Array packed = run(pack_matrix, {b}, make<PackAttributes>(4), {.symbolic = false})[0];
      Extents shape = batch;
      shape.insert(shape.end(), {(columns + 3) / 4, 5, 4});
      EXPECT_EQ(packed.shape, shape);
      EXPECT_TRUE(
          close(run(matmul, {a, packed}, make<MatmulAttributes>(DType(), "NK4n", columns), {.symbolic = false})[0],
                matmul_reference(a, b, DType::float32()), 16, 4));
    }
}

TEST(matmul, refuses_what_does_not_fit) {
  const auto f = [](Extents shape) { return zeros(DType::float32(), std::move(shape)); };
  const auto inner = refusal(matmul, {f({2, 3}), f({4, 5})});
  ASSERT_EQ(inner.size(), 1u);
  EXPECT_EQ(inner[0].code, relax::codes::shape_mismatch);
  EXPECT_EQ(inner[0].message, "matmul of float32[2, 3] with [4, 5]: the inner extents 3 and 4 differ");
  EXPECT_EQ(refusal(matmul, {f({}), f({4, 5})})[0].code, relax::codes::wrong_rank);
  EXPECT_EQ(refusal(matmul, {f({2, 3, 4}), f({3, 4, 5})})[0].code, relax::codes::cannot_broadcast);
  EXPECT_EQ(refusal(matmul, {f({2, 3}), zeros(DType::int_(8), {3, 2})})[0].code, relax::codes::dtype_mismatch);
  EXPECT_EQ(refusal(matmul, {f({2, 3}), f({3, 2})}, make<MatmulAttributes>(DType(), "NHWC"))[0].code,
            relax::codes::wrong_attribute);
  EXPECT_EQ(refusal(matmul, {f({2, 3}), f({1, 3, 4})}, make<MatmulAttributes>(DType(), "NK4n", 9))[0].code,
            relax::codes::shape_mismatch);
}

}  // namespace matmul_test
}  // namespace lathe::ops::testing
