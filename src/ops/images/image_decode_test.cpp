#include "ops/testing/operator_check.h"

namespace lathe::ops::testing {
namespace image_decode_test {

TEST(image_decode, gives_bytes_of_a_size_that_the_run_decides) {
  const relax::Expr bytes = relax::relax_var("x", relax::tensor_info({ir::size_var("n")}, DType::uint(8)));
  const relax::Expr image =
      relax::make_call(image_decode, {bytes}, image_decode.attributes->defaults()).value_or_throw();
  const relax::TensorStructInfo& info = *relax::as_tensor(image);
  EXPECT_EQ(info.dtype, DType::uint(8));
  EXPECT_EQ(info.ndim, 3);
  EXPECT_FALSE(info.shape);
}

TEST(image_decode, refuses_what_does_not_fit) {
  const auto code = [](const Array& bytes, const char* order = "rgb") {
    return refusal(image_decode, {bytes}, image_decode.attributes->from_values({{"order", order}}).value_or_throw())
        .at(0)
        .code;
  };
  EXPECT_EQ(code(zeros(DType::uint(8), {3}), "cmyk"), relax::codes::wrong_attribute);
  EXPECT_EQ(code(zeros(DType::int_(8), {3})), relax::codes::dtype_not_supported);
  EXPECT_EQ(code(zeros(DType::uint(8), {3, 1})), relax::codes::wrong_rank);
}

}  // namespace image_decode_test
}  // namespace lathe::ops::testing
