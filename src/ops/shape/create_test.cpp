#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace create_test {

TEST(create, gives_shapes_as_values_and_as_tensors) {
  for (const Extents& shape : std::vector<Extents>{{2, 3, 5}, {}, {0, 4}}) {
    const Array x = zeros(DType::float32(), shape);
    const std::vector<double> values(shape.begin(), shape.end());
    const Array expected{DType::int_(64), {static_cast<int64_t>(shape.size())}, values};
    EXPECT_TRUE(close(run(shape_of, {x})[0], expected));
    EXPECT_TRUE(close(run(shape_to_tensor, {shape})[0], expected));
  }
}

TEST(create, fills_with_a_scalar) {
  for (const DType dtype : {DType::float32(), DType::int_(64), DType::boolean(), DType::bfloat16()})
    for (const Extents& shape : std::vector<Extents>{{2, 3}, {}, {0, 4}}) {
      Array expected = zeros(dtype, shape);
      for (double& v : expected.values) v = 1;
      EXPECT_TRUE(close(run(full, {shape, array(dtype, {}, {1})})[0], expected));
      EXPECT_TRUE(close(run(full, {shape, array(dtype, {1}, {1})})[0], expected));
    }
  EXPECT_EQ(refusal(full, {Extents{2}, zeros(DType::float32(), {2})})[0].code, relax::codes::wrong_rank);
  EXPECT_EQ(refusal(full, {Extents{-2}, zeros(DType::float32(), {})})[0].code, relax::codes::shape_mismatch);
}

}  // namespace create_test
}  // namespace lathe::ops::testing
