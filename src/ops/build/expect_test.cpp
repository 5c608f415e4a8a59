#include <gtest/gtest.h>

#include "ops/build.h"
#include "relax/interpret/evaluate.h"

namespace lathe::ops::build {
namespace expect_test {

// Where the interpreter finds the first of `values` that is 7, and what it finds; nothing where a check fails.
std::vector<int64_t> found_seven(const std::vector<int32_t>& values, bool is_symbolic) {
  const auto count = static_cast<int64_t>(values.size());
  BlockBuilder b;
  const Expr extent = is_symbolic ? Expr(ir::size_var("n")) : ir::int64(count);
  const relax::Var x = relax::relax_var("x", relax::tensor_info(Shape{extent}, DType::int32()));
  b.begin_function("main", {x});
  const Finding found =
      find_element(b, x, [](const Expr& value, const Expr&) { return ir::eq(value, ir::constant(DType::int32(), 7)); });
  const Value result = b.emit(ir::make<relax::ShapeExpr>(Shape{found.position, found.value}));
  b.end_function(b.call(ops::shape_to_tensor, {result}).value_or_throw());
  const ir::TensorData data = ir::tensor_of<int32_t>(DType::int32(), {count}, values);
  const auto results = relax::evaluate(b.finish(), "main", {data}).value_or_throw();
  return {ir::int_at(*results[0], 0), ir::int_at(*results[0], 1)};
}

TEST(expect, finds_the_first_wrong_element_and_its_value) {
  for (const bool is_symbolic : {false, true}) {
    EXPECT_EQ(found_seven({7, 1, 7}, is_symbolic), (std::vector<int64_t>{0, 7}));
    EXPECT_EQ(found_seven({1, 7, 7}, is_symbolic), (std::vector<int64_t>{1, 7}));
    EXPECT_EQ(found_seven({1, 2, 7}, is_symbolic), (std::vector<int64_t>{2, 7}));
    EXPECT_EQ(found_seven({1, 2, 3}, is_symbolic)[0], -1);
    EXPECT_EQ(found_seven({}, is_symbolic)[0], -1);
  }
}

// The failure of a check that `n` is at most 3, for n ones.
std::string failure_of(int64_t n) {
  BlockBuilder b;
  const Expr extent = ir::size_var("n");
  const relax::Var x = relax::relax_var("x", relax::tensor_info(Shape{extent}, DType::float32()));
  b.begin_function("main", {x});
  expect(b, extent <= 3, relax::Message() << "there are " << extent << " of {at most} " << ir::int64(3));
  b.end_function(x);
  const std::vector<float> ones(static_cast<size_t>(n), 1.0f);
  const auto results = relax::evaluate(b.finish(), "main", {ir::tensor_of<float>(DType::float32(), {n}, ones)});
  return results.ok() ? "" : results.diagnostics().at(0).message;
}

TEST(expect, a_run_fails_with_the_numbers_it_met) {
  EXPECT_EQ(failure_of(3), "");
  EXPECT_EQ(failure_of(5), "there are 5 of (at most) 3");
}

}  // namespace expect_test
}  // namespace lathe::ops::build
