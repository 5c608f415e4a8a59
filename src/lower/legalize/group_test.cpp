#include "lower/legalize/group.h"

#include <gtest/gtest.h>

#include "ops/operators.h"
#include "tir/interpret/interpret.h"

namespace lathe::lower {
namespace {

using namespace relax;  // NOLINT: the subject of these tests

// A group written by hand.
struct Build {
  Group group{.name = "group", .params = {}, .bindings = {}, .results = {}};

  Var param(const std::string& name, std::vector<ir::Expr> shape) {
    group.params.push_back(relax_var(name, tensor_info(std::move(shape), DType::float32())));
    return group.params.back();
  }
  Var call(const Operator& op, std::vector<Expr> args) {
    const Expr value = make_call(op, std::move(args)).value_or_throw();
    const Var var = relax_var("t" + std::to_string(group.bindings.size()), value->struct_info);
    group.bindings.push_back(make<VarBinding>(value, var));
    return var;
  }
  LoweredGroup lowered(std::vector<Expr> results) {
    group.results = std::move(results);
    return lower_group(group).value_or_throw();
  }
};

std::vector<std::pair<int64_t, int64_t>> in_place_pairs(const LoweredGroup& lowered) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  if (const auto* list = lowered.function->attrs.get<ir::Value::List>("inplace"))
    for (const ir::Value& pair : *list) {
      const auto& both = *pair.get<ir::Value::List>();
      pairs.emplace_back(*both[0].get<int64_t>(), *both[1].get<int64_t>());
    }
  return pairs;
}
using Pairs = std::vector<std::pair<int64_t, int64_t>>;

tir::TensorBuffer filled(std::vector<int64_t> shape, double first) {
  tir::TensorBuffer made = tir::TensorBuffer::zeros(DType::float32(), std::move(shape));
  for (int64_t i = 0; i < made.elements(); ++i) made.set_float(i, first + static_cast<double>(i));
  return made;
}

TEST(lower_group, gives_several_results_in_order_and_takes_scalar_constants_in) {
  const ir::Var n = ir::size_var("n");
  Build b;
  const Var x = b.param("x", {n, ir::int64(3)}), y = b.param("y", {ir::int64(3)});
  const Expr two = relax::constant(ir::tensor_of<float>(DType::float32(), {}, {2}));
  const Var difference = b.call(ops::subtract, {x, y}), doubled = b.call(ops::multiply, {difference, two});
  const LoweredGroup lowered = b.lowered({doubled, difference});
  ASSERT_EQ(lowered.scalars.size(), 1u);
  EXPECT_EQ(lowered.scalars[0].get(), n.get());
  ASSERT_EQ(lowered.function->buffer_map.size(), 4u);
  EXPECT_EQ(*lowered.function->attrs.get<std::string>("global_symbol"), "group");
  for (const int64_t rows : {0, 1, 5}) {
    std::vector<tir::TensorBuffer> args{filled({rows, 3}, 1), filled({3}, 10),
                                        tir::TensorBuffer::uninitialised(DType::float32(), {rows, 3}),
                                        tir::TensorBuffer::uninitialised(DType::float32(), {rows, 3})};
    tir::interpret(lowered.function, args, {rows}).value_or_throw();
    for (int64_t i = 0; i < rows * 3; ++i) {
      const double expected = (1.0 + static_cast<double>(i)) - (10.0 + static_cast<double>(i % 3));
      EXPECT_EQ(args[2].float_at(i), 2 * expected);
      EXPECT_EQ(args[3].float_at(i), expected);
    }
  }
}

TEST(lower_group, works_in_place_only_on_an_operand_of_the_result_s_shape) {
  Build b;
  const Var x = b.param("x", {ir::int64(1), ir::int64(3)}), y = b.param("y", {ir::int64(4), ir::int64(3)});
  EXPECT_EQ(in_place_pairs(b.lowered({b.call(ops::relu, {b.call(ops::add, {x, y})})})), (Pairs{{1, 2}}));
}

TEST(lower_group, does_not_work_in_place_where_other_elements_are_read) {
  Build b;
  const Var x = b.param("x", {ir::int64(3), ir::int64(3)}), y = b.param("y", {ir::int64(3), ir::int64(3)});
  EXPECT_EQ(in_place_pairs(b.lowered({b.call(ops::relu, {b.call(ops::matmul, {x, y})})})), Pairs{});
}

TEST(lower_group, refuses_a_constant_of_several_elements) {
  Build b;
  const Var x = b.param("x", {ir::int64(3)});
  b.group.results = {b.call(ops::add, {x, relax::constant(ir::tensor_of<float>(DType::float32(), {3}, {1, 2, 3}))})};
  const auto refused = lower_group(b.group);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().at(0).code.name, "lower-no-loops");
  EXPECT_NE(refused.diagnostics().at(0).message.find("constant of several elements"), std::string::npos);
}

}  // namespace
}  // namespace lathe::lower
