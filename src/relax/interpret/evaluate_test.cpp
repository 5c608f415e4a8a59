#include "relax/interpret/evaluate.h"

#include <gtest/gtest.h>

#include "relax/block_builder.h"
#include "relax/call_tir.h"
#include "relax/infer.h"
#include "te/topi/elementwise.h"

namespace lathe::relax {
namespace evaluate_test {

using ir::TensorData;

const Operator plus{
    .name = "plus",
    .inputs = {{"a"}, {"b"}},
    .infer = [](const InferContext& c) { return broadcast_arguments(c, DType::float32()); },
    .meaning = TeExpression([](const LowerContext& c) {
      return std::vector{te::topi::map(
          {c.tensor(0), c.tensor(1)}, *c.output().shape, [](const auto& v) { return v[0] + v[1]; }, "plus")};
    }),
};
const Operator twice{
    .name = "twice",
    .inputs = {{"x"}},
    .infer = same_type_as_input(),
    .meaning = Composite([](BlockBuilder& b, const Call& call) { return b.call(plus, {call.args[0], call.args[0]}); }),
};
const Operator kernel{
    .name = "kernel", .inputs = {{"x"}}, .infer = same_type_as_input(), .meaning = RuntimeKernel{"k"}};

TensorData tensor(std::vector<int64_t> shape, std::vector<float> values) {
  return ir::tensor_of(DType::float32(), std::move(shape), values);
}
std::vector<double> values_of(const TensorData& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t->elements(); ++i) values.push_back(ir::float_at(*t, i));
  return values;
}

struct Graph {
  BlockBuilder b;
  Result<std::vector<TensorData>> run(const std::vector<TensorData>& inputs) {
    return evaluate(b.module(), "main", inputs);
  }
};

TEST(evaluate, runs_operators_composites_and_constants) {
  Graph g;
  const ir::Var n = ir::size_var("n");
  const Var x = relax_var("x", tensor_info(Shape{n}, DType::float32()));
  g.b.begin_function("main", {x});
  g.b.begin_dataflow();
  const Expr y = g.b.call(twice, {x}).value_or_throw();
  const Expr z = g.b.emit_output(g.b.call(plus, {y, constant(tensor({}, {0.5f}))}).value_or_throw());
  g.b.end_function(make<Tuple>(std::vector<Expr>{z, x}));
  const auto out = g.run({tensor({3}, {1, 2, 3})}).value_or_throw();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(values_of(out[0]), (std::vector<double>{2.5, 4.5, 6.5}));
  EXPECT_EQ(values_of(out[1]), (std::vector<double>{1, 2, 3}));
}

TEST(evaluate, runs_tensor_programs_with_scalars) {
  Graph g;
  const ir::Var n = ir::size_var("n");
  const Var x = relax_var("x", tensor_info(Shape{n, n + 1}, DType::float32()));
  g.b.begin_function("main", {x});
  const Expr y =
      g.b.call_te("scaled", {x},
                  [&](const std::vector<te::Tensor>& in) {
                    return std::vector{te::topi::map(
                        in[0], [&](const ir::Expr& v) { return v * ir::cast(DType::float32(), n); }, "scaled")};
                  })
          .value_or_throw();
  g.b.end_function(y);
  EXPECT_EQ(values_of(g.run({tensor({1, 2}, {3, 4})}).value_or_throw()[0]), (std::vector<double>{3, 4}));
  EXPECT_EQ(values_of(g.run({tensor({2, 3}, {1, 2, 3, 4, 5, 6})}).value_or_throw()[0]),
            (std::vector<double>{2, 4, 6, 8, 10, 12}));
}

TEST(evaluate, takes_the_branch_that_the_condition_chooses) {
  Graph g;
  const Var x = relax_var("x", tensor_info({int64_t{2}}, DType::float32()));
  const Var flag = relax_var("flag", tensor_info(std::vector<int64_t>{}, DType::boolean()));
  g.b.begin_function("main", {x, flag});
  g.b.begin_scope();
  const Expr then_case = g.b.end_scope(g.b.call(twice, {x}).value_or_throw());
  g.b.begin_scope();
  const Expr else_case = g.b.end_scope(x);
  g.b.end_function(g.b.emit(make<If>(flag, then_case, else_case)));
  const auto run = [&](char condition) {
    return values_of(g.run({tensor({2}, {1, 2}), ir::tensor_data(DType::boolean(), {}, std::string(1, condition))})
                         .value_or_throw()[0]);
  };
  EXPECT_EQ(run(1), (std::vector<double>{2, 4}));
  EXPECT_EQ(run(0), (std::vector<double>{1, 2}));
}

TEST(evaluate, calls_functions_of_the_module) {
  Graph g;
  const ir::Var n = ir::size_var("n");
  const Var p = relax_var("p", tensor_info(Shape{n}, DType::float32()));
  g.b.begin_function("double", {p});
  g.b.end_function(g.b.call(twice, {p}).value_or_throw());
  const Var x = relax_var("x", tensor_info({int64_t{2}}, DType::float32()));
  g.b.begin_function("main", {x});
  Expr call = make<Call>(global_var("double"), std::vector<Expr>{x}, AttributesRef{}, std::vector{x->struct_info});
  g.b.end_function(g.b.emit(call));
  EXPECT_EQ(values_of(g.run({tensor({2}, {1, 5})}).value_or_throw()[0]), (std::vector<double>{2, 10}));
}

TEST(evaluate, types_again_where_shapes_are_unknown) {
  Graph g;
  const Var x = relax_var("x", tensor_info_of_rank(1, DType::float32()));
  g.b.begin_function("main", {x});
  const Expr y = g.b.call(plus, {x, x}).value_or_throw();
  const ir::Var m = ir::size_var("m");
  const Expr z = g.b.match_cast(y, tensor_info(Shape{m}, DType::float32()));
  g.b.end_function(g.b.call(plus, {z, z}).value_or_throw());
  EXPECT_EQ(values_of(g.run({tensor({2}, {1, 2})}).value_or_throw()[0]), (std::vector<double>{4, 8}));
}

TEST(evaluate, refuses_wrong_inputs) {
  Graph g;
  const ir::Var n = ir::size_var("n");
  const Var x = relax_var("x", tensor_info(Shape{n, n}, DType::float32()));
  g.b.begin_function("main", {x});
  g.b.end_function(x);
  const auto code = [&](const std::vector<TensorData>& inputs) { return g.run(inputs).diagnostics()[0].code; };
  EXPECT_EQ(code({}), codes::wrong_input);
  EXPECT_EQ(code({tensor({1, 2}, {1, 2})}), codes::wrong_input) << "n is 1 and 2";
  EXPECT_EQ(code({tensor({1}, {1})}), codes::wrong_input);
  EXPECT_EQ(code({ir::tensor_data(DType::int_(8), {1, 1}, "a")}), codes::wrong_input);
  EXPECT_EQ(evaluate(g.b.module(), "nobody", {}).diagnostics()[0].code, codes::cannot_interpret);
}

TEST(evaluate, refuses_kernels_of_the_runtime) {
  Graph g;
  const Var x = relax_var("x", tensor_info({int64_t{1}}, DType::float32()));
  g.b.begin_function("main", {x});
  g.b.end_function(g.b.call(kernel, {x}).value_or_throw());
  EXPECT_EQ(g.run({tensor({1}, {1})}).diagnostics()[0].code, codes::cannot_interpret);
}

}  // namespace evaluate_test
}  // namespace lathe::relax
