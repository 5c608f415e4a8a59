#include "lower/legalize/legalize.h"

#include <gtest/gtest.h>

#include "graph/passes.h"
#include "lower/testing/random_graph.h"
#include "ops/attributes.h"
#include "ops/build.h"
#include "ops/operators.h"
#include "relax/call_tir.h"
#include "relax/interpret/evaluate.h"
#include "relax/script/dialect.h"
#include "script/testing/expected_text.h"
#include "tir/script/dialect.h"
#include "tir/stmt.h"

namespace lathe::lower {
namespace {

using namespace relax;  // NOLINT: the subject of these tests
using testing::random_data;
using testing::random_graph;

std::vector<Ref<VarBinding>> bindings_of(const ir::IRModule& module) {
  std::vector<Ref<VarBinding>> all;
  for (const BindingBlock& block : module.find_as<FunctionNode>("main")->body.as<SeqExpr>()->blocks)
    for (const Binding& binding : block->bindings) all.push_back(ir::cast<VarBinding>(binding));
  return all;
}
size_t programs_in(const ir::IRModule& module) {
  size_t count = 0;
  for (const auto& [name, function] : module) count += function.is<tir::PrimFunc>();
  return count;
}
void expect_equal(const ir::TensorData& actual, const ir::TensorData& expected) {
  ASSERT_EQ(actual->shape, expected->shape);
  for (int64_t i = 0; i < expected->elements(); ++i)
    ASSERT_NEAR(ir::float_at(*actual, i), ir::float_at(*expected, i), 1e-4 * (1 + std::abs(ir::float_at(*expected, i))))
        << "element " << i;
}

TEST(legalize, makes_of_programs_what_its_text_expects) {
  const auto graph = script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const std::string unexpected = script::testing::check_cases(legalize, {}, __FILE__, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

TEST(legalize, keeps_what_random_graphs_compute) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 24; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const bool symbolic = round % 3 == 2;
    const int64_t rows = std::vector<int64_t>{1, 3, 0, 5}[static_cast<size_t>(round % 4)];
    const auto graph = random_graph(symbolic ? ir::Expr(ir::size_var("n")) : ir::int64(rows), 3 + round / 2, random);
    ir::IRModule module = graph.module;
    if (round % 2) module = graph::fuse_ops(std::move(module), {}).value_or_throw();
    module = legalize(std::move(module), {}).value_or_throw();
    for (const auto& binding : bindings_of(module)) {
      const auto* call = binding->value.as<Call>();
      if (call) EXPECT_TRUE(as_call_tir(binding->value) || callee_operator(*call)->is_view);
    }
    const auto inputs = graph.inputs(rows, random);
    const auto expected = evaluate(graph.module, "main", inputs).value_or_throw();
    const auto actual = evaluate(module, "main", inputs).value_or_throw();
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) expect_equal(actual[i], expected[i]);
  }
}

struct Legalized {
  BlockBuilder builder;
  Var x = relax_var("x", tensor_info(std::vector<int64_t>{3, 5}, DType::float32()));
  Legalized() { builder.begin_function("main", {x}); }
  Expr call(const Operator& op, std::vector<Expr> args, AttributesRef attributes = {}) {
    return builder.emit_output(make_call(op, std::move(args), std::move(attributes)).value_or_throw());
  }
  ir::IRModule legalized(const Expr& result) {
    builder.end_function(result);
    return legalize(builder.finish(), {}).value_or_throw();
  }
};

TEST(legalize, shares_equal_programs) {
  Legalized b;
  const auto module = b.legalized(b.call(ops::relu, {b.call(ops::negative, {b.call(ops::relu, {b.x})})}));
  EXPECT_EQ(programs_in(module), 2u);
  const auto bindings = bindings_of(module);
  EXPECT_EQ(as_call_tir(bindings[0]->value)->function, as_call_tir(bindings[2]->value)->function);
  EXPECT_NE(as_call_tir(bindings[0]->value)->function, as_call_tir(bindings[1]->value)->function);
}

TEST(legalize, does_not_share_programs_of_other_shapes) {
  Legalized b;
  const Expr flat = b.call(ops::reshape, {b.x, ir::make<ShapeExpr>(std::vector<ir::Expr>{ir::int64(15)})});
  b.call(ops::relu, {b.x});
  const auto module = b.legalized(b.call(ops::relu, {flat}));
  EXPECT_EQ(programs_in(module), 2u);
  for (const auto& [name, function] : module)
    if (function.is<tir::PrimFunc>()) EXPECT_EQ(*function->attrs.get<std::string>("global_symbol"), name);
}

// What a group computes is its attributes and the numbers in it, too.
TEST(legalize, does_not_share_programs_of_other_attributes_or_numbers) {
  Legalized b;
  const auto softmax = [&](const Expr& x, int64_t axis) {
    return b.call(ops::softmax, {x}, ir::make<ops::SoftmaxAttributes>(axis));
  };
  const auto times = [&](const Expr& x, double factor) {
    return b.call(ops::multiply, {x, ops::build::scalar(DType::float32(), factor)});
  };
  const auto module = b.legalized(times(softmax(times(softmax(softmax(b.x, 0), 1), 2), 0), 3));
  EXPECT_EQ(programs_in(module), 4u);
  const auto bindings = bindings_of(module);
  EXPECT_EQ(as_call_tir(bindings[0]->value)->function, as_call_tir(bindings[3]->value)->function);
}

TEST(legalize, keeps_views) {
  Legalized b;
  const Expr flat = b.call(ops::reshape, {b.x, ir::make<ShapeExpr>(std::vector<ir::Expr>{ir::int64(15)})});
  const auto module = b.legalized(flat);
  EXPECT_EQ(programs_in(module), 0u);
  EXPECT_TRUE(callee_operator(*bindings_of(module)[0]->value.as<Call>())->is_view);
}

TEST(legalize, passes_symbolic_extents_as_scalars) {
  const ir::Var n = ir::size_var("n");
  BlockBuilder b;
  const Var x = relax_var("x", tensor_info({n, ir::int64(5)}, DType::float32()));
  b.begin_function("main", {x});
  b.end_function(b.emit_output(make_call(ops::relu, {x}).value_or_throw()));
  const auto module = legalize(b.finish(), {}).value_or_throw();
  const auto call = as_call_tir(bindings_of(module)[0]->value);
  ASSERT_TRUE(call);
  ASSERT_EQ(call->scalars.size(), 1u);
  EXPECT_EQ(call->scalars[0].get(), n.get());
  const auto function = module.find_as<tir::PrimFunc>(call->function);
  ASSERT_EQ(function->params.size(), 3u);
  EXPECT_EQ(function->params[2]->dtype, DType::int64());
}

// A group that is called twice, and one whose name a single operator's program would take.
TEST(legalize, lowers_every_call_of_a_group) {
  BlockBuilder b;
  const auto info = tensor_info(std::vector<int64_t>{3, 5}, DType::float32());
  const Var p = relax_var("p", info), x = relax_var("x", info);
  ir::Attributes attrs;
  attrs.set("primitive", true);
  b.begin_function("relu", {p}, attrs);  // named as an operator, computes relu(-p)
  b.begin_dataflow();
  const Expr negative = b.call(ops::negative, {p}).value_or_throw();
  const Expr inner = b.emit_output(make_call(ops::relu, {negative}).value_or_throw());
  b.end_block();
  b.end_function(inner);
  b.begin_function("main", {x});
  const auto group = [&](const Expr& arg) {
    Expr call = ir::make<Call>(global_var("relu"), std::vector<Expr>{arg}, AttributesRef(), std::vector<StructInfo>());
    return b.emit_output(with_struct_info(call, info));
  };
  const Expr plain = b.emit_output(make_call(ops::relu, {x}).value_or_throw());
  const Expr first = group(x), second = group(plain);
  b.end_function(b.emit_output(make_call(ops::subtract, {first, second}).value_or_throw()));
  const ir::IRModule before = b.finish();
  const ir::IRModule after = legalize(before, {}).value_or_throw();
  for (const auto& binding : bindings_of(after)) EXPECT_TRUE(as_call_tir(binding->value));
  EXPECT_EQ(programs_in(after), 3u);
  EXPECT_EQ(after.size(), 4u);
  std::mt19937_64 random(3);
  const std::vector<ir::TensorData> inputs{random_data({3, 5}, random)};
  const auto result = evaluate(after, "main", inputs).value_or_throw();
  for (int64_t i = 0; i < 15; ++i) {
    const double v = ir::float_at(*inputs[0], i);
    EXPECT_EQ(ir::float_at(*result.at(0), i), std::max(-v, 0.0) - std::max(-std::max(v, 0.0), 0.0));
  }
}

TEST(legalize, refuses_a_shape_that_is_not_known) {
  BlockBuilder b;
  const Var x = relax_var("x", tensor_info_of_rank(2, DType::float32()));
  b.begin_function("main", {x});
  b.end_function(b.emit_output(make_call(ops::relu, {x}).value_or_throw()));
  const auto result = legalize(b.finish(), {});
  ASSERT_FALSE(result.ok());
}

}  // namespace
}  // namespace lathe::lower
