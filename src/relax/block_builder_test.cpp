#include "relax/block_builder.h"

#include <gtest/gtest.h>

#include "relax/call_tir.h"
#include "relax/infer.h"
#include "te/topi/elementwise.h"

namespace lathe::relax {
namespace block_builder_test {

const Operator twice{
    .name = "twice",
    .inputs = {{"x"}},
    .infer = same_type_as_input(DTypeSet::numeric),
    .meaning = TeExpression([](const LowerContext& c) {
      return std::vector{te::topi::map(c.tensor(0), [](const ir::Expr& x) { return x + x; }, "twice")};
    }),
    .fusion = FusionKind::elementwise,
};

Var tensor_var(const std::string& name, std::vector<int64_t> shape, DType dtype = DType::float32()) {
  return relax_var(name, tensor_info(shape, dtype));
}

TEST(block_builder, builds_a_function_in_normal_form) {
  BlockBuilder b;
  const Var x = tensor_var("x", {2, 3});
  b.begin_function("main", {x});
  b.begin_dataflow();
  // A call inside a call is bound to a variable of its own.
  Expr inner = make_call(twice, {x}).value_or_throw();
  const Expr y = b.emit_output(make_call(twice, {inner}).value_or_throw(), "y");
  b.end_block();
  const Function f = b.end_function(y);
  const auto* body = f->body.as<SeqExpr>();
  ASSERT_TRUE(body);
  ASSERT_EQ(body->blocks.size(), 1u);
  EXPECT_TRUE(body->blocks[0]->is_dataflow);
  ASSERT_EQ(body->blocks[0]->bindings.size(), 2u);
  EXPECT_TRUE(body->blocks[0]->bindings[0].as<VarBinding>()->var->is_dataflow);
  EXPECT_FALSE(body->blocks[0]->bindings[1].as<VarBinding>()->var->is_dataflow);
  EXPECT_EQ(text_of(*as_tensor(body->body)), "float32[2, 3]");
  EXPECT_TRUE(b.finish().find("main"));
}

TEST(block_builder, gives_every_variable_a_name_of_its_own) {
  BlockBuilder b;
  const Var x = tensor_var("x", {2});
  b.begin_function("main", {x});
  const Expr y = b.call(twice, {x}, {}, "x").value_or_throw();
  const Expr z = b.call(twice, {y}, {}, "x").value_or_throw();
  EXPECT_EQ(y.as<VarNode>()->name, "x_1");
  EXPECT_EQ(z.as<VarNode>()->name, "x_2");
}

TEST(block_builder, carries_the_origin_to_bindings_and_failures) {
  BlockBuilder b;
  b.set_origin(std::make_shared<support::Place>(support::ModelNode{"m.onnx", "Twice_1", "Twice"}));
  const Expr y = b.call(twice, {tensor_var("x", {2})}).value_or_throw();
  EXPECT_EQ(y->origin(), b.origin());
  const auto failed = b.call(twice, {tensor_var("flag", {2}, DType::boolean())});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.diagnostics()[0].code, codes::dtype_not_supported);
  EXPECT_EQ(std::get<support::ModelNode>(failed.diagnostics()[0].place).node, "Twice_1");
}

TEST(block_builder, calls_tensor_expressions_through_call_tir) {
  BlockBuilder b;
  const ir::Var n = ir::size_var("n");
  const Var x = relax_var("x", tensor_info(Shape{n, n + 1}, DType::float32()));
  b.begin_function("main", {x});
  const Expr y = b.call_te("double", {x}, [](const std::vector<te::Tensor>& in) {
                    return std::vector{te::topi::map(in[0], [](const ir::Expr& v) { return v + v; }, "double")};
                  }).value_or_throw();
  b.end_function(y);
  EXPECT_EQ(text_of(*as_tensor(y)), "float32[n, n + 1]");
  EXPECT_TRUE(b.module().find_as<tir::PrimFunc>("double"));
}

TEST(block_builder, keeps_branches_in_scopes_of_their_own) {
  BlockBuilder b;
  const Var x = tensor_var("x", {2}), flag = tensor_var("flag", {}, DType::boolean());
  b.begin_function("main", {x, flag});
  b.begin_scope();
  const Expr then_case = b.end_scope(b.call(twice, {x}).value_or_throw());
  b.begin_scope();
  const Expr else_case = b.end_scope(x);
  const Expr y = b.emit(make<If>(flag, then_case, else_case));
  const Function f = b.end_function(y);
  EXPECT_EQ(f->body.as<SeqExpr>()->blocks[0]->bindings.size(), 1u);
  EXPECT_EQ(then_case.as<SeqExpr>()->blocks[0]->bindings.size(), 1u);
  EXPECT_EQ(text_of(*as_tensor(y)), "float32[2]");
}

}  // namespace block_builder_test
}  // namespace lathe::relax
