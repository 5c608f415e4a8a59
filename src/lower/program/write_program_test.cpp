#include "lower/program/write_program.h"

#include <gtest/gtest.h>

#include "abi/program_printer.h"
#include "graph/passes.h"
#include "lower/legalize/legalize.h"
#include "lower/testing/opened.h"
#include "lower/testing/random_graph.h"
#include "relax/dim_sizes.h"
#include "relax/infer.h"
#include "relax/interpret/evaluate.h"
#include "runtime/core/program/verify_program.h"
#include "runtime/core/program_fixture.h"

namespace lathe::lower {
namespace {

using namespace relax;  // NOLINT: the subject of these tests
using runtime::testing::last_message;
using testing::Opened;
using testing::random_data;
using testing::random_graph;

TEST(write_program, random_graphs_run_as_they_mean) {
  std::mt19937_64 random(23);
  for (int round = 0; round < 36; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const bool symbolic = round % 3 == 2;
    const int64_t sizes[] = {3, 1, 0, 7};
    const int64_t fixed = sizes[round % 4];
    const auto graph = random_graph(symbolic ? ir::Expr(ir::size_var("n")) : ir::int64(fixed), 3 + round / 2, random);
    ir::IRModule module = graph.module;
    // At these sizes other kernels run.
    if (symbolic) {
      const auto main = module.find_as<FunctionNode>("main");
      module.set("main", ir::with(*main, [](FunctionNode& copy) { tell_sizes(copy.attrs, "n", {0, 7, {5, 1}}); }));
    }
    if (round % 2) module = graph::fuse_ops(std::move(module), {}).value_or_throw();
    module = legalize(std::move(module), {}).value_or_throw();
    Opened opened(module, write_program(module).value_or_throw());
    ASSERT_TRUE(opened.is_open()) << last_message();
    for (const int64_t rows : symbolic ? std::vector<int64_t>{2, 5, 0, 1} : std::vector<int64_t>{fixed, fixed}) {
      const auto inputs = graph.inputs(rows, random);
      const auto expected = evaluate(graph.module, "main", inputs).value_or_throw();
      const auto actual = opened.run(inputs, static_cast<int>(expected.size()));
      ASSERT_EQ(actual.size(), expected.size()) << last_message();
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(actual[i]->shape, expected[i]->shape) << "result " << i;
        for (int64_t e = 0; e < expected[i]->elements(); ++e)
          ASSERT_NEAR(ir::float_at(*actual[i], e), ir::float_at(*expected[i], e),
                      1e-4 * (1 + std::abs(ir::float_at(*expected[i], e))))
              << "result " << i << " element " << e;
      }
    }
  }
}

// ---- single programs ----

struct Written {
  BlockBuilder builder;
  std::vector<Var> params;
  explicit Written(std::vector<std::vector<ir::Expr>> shapes, ir::Attributes attrs = {}) {
    for (size_t i = 0; i < shapes.size(); ++i)
      params.push_back(relax_var("x" + std::to_string(i), tensor_info(shapes[i], ir::DType::float32())));
    builder.begin_function("main", params, attrs);
  }
  Expr call(const Operator& op, std::vector<Expr> args) {
    return builder.emit_output(make_call(op, std::move(args)).value_or_throw());
  }
  ir::IRModule finish(const std::vector<Expr>& results) {
    std::vector<StructInfo> infos;
    for (const Expr& result : results) infos.push_back(result->struct_info);
    builder.end_function(
        with_struct_info(ir::make<Tuple>(std::vector<Expr>(results)), ir::make<TupleStructInfo>(std::move(infos))));
    return legalize(builder.finish(), {}).value_or_throw();
  }
};
Expr weights(std::vector<int64_t> shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  return relax::constant(random_data(std::move(shape), random));
}

std::string text_of(const Program& program) {
  abi::ProgramView view;
  const std::vector<char> memory(static_cast<size_t>(program.weight_bytes));
  EXPECT_EQ(runtime::verify_program(program.bytes.data(), program.bytes.size(),
                                    {memory.data(), memory.size(), program.kernels.size()}, &view),
            0)
      << last_message();
  return abi::print_program(view);
}
void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  size_t at = 0;
  for (const std::string& part : parts) {
    const size_t found = text.find(part, at);
    EXPECT_NE(found, std::string::npos) << "'" << part << "' is not there, or not in this order, in\n" << text;
    if (found != std::string::npos) at = found + part.size();
  }
}

TEST(write_program, writes_kernels_memory_and_signature) {
  const ir::Var n = ir::size_var("n");
  ir::Attributes attrs;
  attrs.set("output_names", ir::Value::List{std::string("y")});
  Written b({{n, ir::int64(3)}}, attrs);
  const Expr product = b.call(ops::matmul, {b.params[0], weights({3, 4}, 1)});
  const Program program = write_program(b.finish({b.call(ops::relu, {product})})).value_or_throw();
  EXPECT_EQ(program.kernels.size(), 2u);
  const std::string text = text_of(program);
  expect_parts(text, {"input x0: float32[n, 3]", "output y: float32[n, 4]", "constant 0 constant_0: float32[3, 4]",
                      "of dynamic size", "of output 0", "read_dim", "match_shape %0", "load_constant",
                      "reserve_storage", "alloc_tensor", "call_kernel @" + program.kernels[0], "alloc_tensor",
                      "call_kernel @" + program.kernels[1], "return_values"});
  EXPECT_EQ(text.find(" copy "), std::string::npos) << text;
}

// The caller's memory has the result's shape; the kernel sees it under its own.
TEST(write_program, lets_kernels_write_results_of_another_shape) {
  Written b({{ir::int64(4), ir::int64(6)}});
  const Expr sum = b.call(ops::exp, {b.params[0]});
  const Expr flat = b.call(ops::reshape, {sum, ir::make<ShapeExpr>(Shape{ir::int64(24)})});
  const Expr wide = b.call(ops::reshape, {flat, ir::make<ShapeExpr>(Shape{ir::int64(2), ir::int64(12)})});
  const ir::IRModule module = b.finish({wide, flat});
  const Program program = write_program(module).value_or_throw();
  const std::string text = text_of(program);
  expect_parts(text, {"output output_0: float32[2, 12]", "of output 0", "alloc_tensor", "view", "call_kernel", "copy"});
  EXPECT_EQ(text.find(" copy "), text.rfind(" copy ")) << "the second result alone is copied\n" << text;
  Opened opened(module, program);
  std::mt19937_64 random(3);
  const auto x = random_data({4, 6}, random);
  const auto results = opened.run({x}, 2);
  ASSERT_EQ(results.size(), 2u) << last_message();
  EXPECT_EQ(results[0]->shape, (std::vector<int64_t>{2, 12}));
  EXPECT_EQ(results[1]->shape, (std::vector<int64_t>{24}));
  for (int64_t e = 0; e < 24; ++e)
    for (const auto& result : results)
      EXPECT_NEAR(ir::float_at(*result, e), std::exp(ir::float_at(*x, e)), 1e-5 * std::exp(ir::float_at(*x, e)));
}

TEST(write_program, stores_equal_constants_once_and_aligned) {
  Written b({{ir::int64(3)}});
  const Expr one = b.call(ops::add, {b.params[0], weights({3}, 1)}), two = b.call(ops::add, {one, weights({3}, 2)});
  const Program program = write_program(b.finish({b.call(ops::add, {two, weights({3}, 1)})})).value_or_throw();
  ASSERT_EQ(program.weights.size(), 2u);
  EXPECT_EQ(program.weights[0].offset, 0);
  EXPECT_EQ(program.weights[1].offset, plan_alignment);
  EXPECT_EQ(program.weight_bytes, plan_alignment + 12);
  EXPECT_EQ(program.kernels.size(), 1u);
}

TEST(write_program, copies_results_that_no_kernel_wrote_for_them) {
  Written b({{ir::int64(2), ir::int64(3)}});
  const Expr made = b.call(ops::negative, {b.params[0]}), constant = weights({5}, 3);
  const Expr flat = b.call(ops::reshape, {made, ir::make<ShapeExpr>(std::vector<ir::Expr>{ir::int64(6)})});
  const ir::IRModule module = b.finish({b.params[0], made, constant, made, flat});
  Opened opened(module, write_program(module).value_or_throw());
  ASSERT_TRUE(opened.is_open()) << last_message();
  const std::vector<float> x{1, -2, 3, -4, 5, -6};
  const auto results = opened.run({ir::tensor_of<float>(ir::DType::float32(), {2, 3}, x)}, 5);
  ASSERT_EQ(results.size(), 5u) << last_message();
  EXPECT_EQ(results[2]->view(), constant.as<Constant>()->data->view());
  EXPECT_EQ(results[4]->shape, std::vector<int64_t>{6});
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(ir::float_at(*results[0], i), x[static_cast<size_t>(i)]);
    for (const size_t r : {1, 3, 4}) EXPECT_EQ(ir::float_at(*results[r], i), -x[static_cast<size_t>(i)]);
  }
}

TEST(write_program, operands_keep_their_order) {
  Written b({{ir::int64(3)}, {ir::int64(3)}});
  const ir::IRModule module = b.finish({b.call(ops::subtract, {b.params[0], b.params[1]})});
  const Program program = write_program(module).value_or_throw();
  expect_parts(text_of(program), {"call_kernel @" + program.kernels[0] + " (%0, %1, %2)"});
}

TEST(write_program, a_program_refuses_inputs_of_other_shapes) {
  const ir::Var n = ir::size_var("n");
  Written b({{n, ir::int64(3)}, {n, ir::int64(3)}});
  const ir::IRModule module = b.finish({b.call(ops::add, {b.params[0], b.params[1]})});
  Opened opened(module, write_program(module).value_or_throw());
  ASSERT_TRUE(opened.is_open()) << last_message();
  std::mt19937_64 random(1);
  const auto run = [&](std::vector<int64_t> a, std::vector<int64_t> c) {
    return opened.run({random_data(std::move(a), random), random_data(std::move(c), random)}, 1).size();
  };
  EXPECT_EQ(run({2, 3}, {2, 3}), 1u) << last_message();
  EXPECT_EQ(run({2, 3}, {4, 3}), 0u);
  EXPECT_EQ(run({2, 4}, {2, 4}), 0u);
}

TEST(write_program, a_program_refuses_sizes_that_it_was_not_told_of) {
  ir::Attributes attributes;
  tell_sizes(attributes, "n", {2, 4, {3}});
  Written b({{ir::size_var("n"), ir::int64(3)}}, attributes);
  const ir::IRModule module = b.finish({b.call(ops::relu, {b.params[0]})});
  const Program program = write_program(module).value_or_throw();
  expect_parts(text_of(program),
               {"scalar_equal", "branch", "call_kernel @nn_relu_at_3", "jump", "call_kernel @nn_relu "});
  Opened opened(module, program);
  ASSERT_TRUE(opened.is_open()) << last_message();
  std::mt19937_64 random(1);
  for (const int64_t n : {1, 2, 3, 4, 5}) {
    const ir::TensorData x = random_data({n, 3}, random);
    const auto made = opened.run({x}, 1);
    ASSERT_EQ(made.size(), n >= 2 && n <= 4 ? 1u : 0u) << n;
    for (int64_t i = 0; !made.empty() && i < x->elements(); ++i)
      EXPECT_EQ(ir::float_at(*made[0], i), std::max(0.0, ir::float_at(*x, i)));
    if (made.empty())
      EXPECT_EQ(std::string(last_message()),
                "dimension 0 ('n') of the input 'x0' is " + std::to_string(n) + "; it must be from 2 to 4");
  }
}

// A script may say anything of versions; what does not fit the call is not called.
TEST(write_program, versions_that_do_not_fit_are_left_out) {
  ir::Attributes attributes;
  tell_sizes(attributes, "n", {0, 9, {3}});
  Written b({{ir::size_var("n"), ir::int64(3)}}, attributes);
  const ir::IRModule good = b.finish({b.call(ops::relu, {b.params[0]})});
  using List = ir::Value::List;
  using Map = ir::Value::Map;
  const auto version = [](const char* function, List sizes, List scalars) {
    return ir::Value(List{Map{{"function", function}, {"sizes", std::move(sizes)}, {"scalars", std::move(scalars)}}});
  };
  const auto pair = [](int scalar, int size) { return ir::Value(List{scalar, size}); };
  const List at_3{pair(0, 3)};
  const auto text_with = [&](ir::Value versions) {
    ir::IRModule module = good;
    module.set("nn_relu", ir::with(*good.find_as<tir::PrimFunc>("nn_relu"),
                                   [&](tir::PrimFunc& copy) { copy.attrs.set("versions", std::move(versions)); }));
    return text_of(write_program(module).value_or_throw());
  };
  EXPECT_NE(text_with(version("nn_relu_at_3", at_3, {})).find("branch"), std::string::npos);
  for (const ir::Value& wrong :
       {ir::Value(3), ir::Value(List{3}), ir::Value(List{Map{}}), version("none", at_3, {}),
        version("nn_relu", at_3, {}), version("nn_relu_at_3", at_3, {0}), version("nn_relu_at_3", {pair(1, 3)}, {}),
        version("nn_relu_at_3", {pair(-1, 3)}, {}), version("nn_relu_at_3", {ir::Value(List{0})}, {}),
        version("nn_relu_at_3", {3}, {}), version("nn_relu", at_3, {1})})
    EXPECT_EQ(text_with(wrong).find("branch"), std::string::npos);
  const auto equal = [](ir::Value numbers) {
    return ir::Value(
        List{Map{{"function", "nn_relu_at_3"}, {"sizes", List{}}, {"equal", std::move(numbers)}, {"scalars", List{}}}});
  };
  for (const ir::Value& wrong : {ir::Value(3), ir::Value(List{3}), ir::Value(List{pair(0, 1)}),
                                 ir::Value(List{pair(-1, 0)}), ir::Value(List{List{0}})})
    EXPECT_EQ(text_with(equal(wrong)).find("nn_relu_at_3"), std::string::npos);
  EXPECT_NE(text_with(equal(List{pair(0, 0)})).find("nn_relu_at_3"), std::string::npos);
}

TEST(write_program, an_assertion_fails_with_its_numbers) {
  const ir::Var n = ir::size_var("n");
  Written b({{n}});
  const Message message = Message() << "100% of " << n << " is more than " << ir::int64(3);
  b.builder.emit(make_assert(ir::Expr(n) <= 3, message).value_or_throw());
  const ir::IRModule module = b.finish({b.params[0]});
  Opened opened(module, write_program(module).value_or_throw());
  ASSERT_TRUE(opened.is_open()) << last_message();
  std::mt19937_64 random(3);
  EXPECT_EQ(opened.run({random_data({3}, random)}, 1).size(), 1u) << last_message();
  EXPECT_EQ(opened.run({random_data({4}, random)}, 1).size(), 0u);
  EXPECT_EQ(std::string(last_message()), "100  of 4 is more than 3");
}

TEST(write_program, refuses_what_was_not_lowered) {
  const auto message = [](const support::Result<Program>& result) {
    return result.ok() ? std::string() : result.diagnostics().at(0).message;
  };
  EXPECT_EQ(write_program({}, "main").diagnostics().at(0).code.name, "lower-program");
  EXPECT_NE(message(write_program({}, "main")).find("no function 'main'"), std::string::npos);
  BlockBuilder builder;
  const Var x = relax_var("x", tensor_info(std::vector<int64_t>{3}, ir::DType::float32()));
  builder.begin_function("main", {x});
  builder.end_function(builder.emit_output(make_call(ops::relu, {x}).value_or_throw()));
  EXPECT_NE(message(write_program(builder.finish())).find("relu was not lowered"), std::string::npos);
}

}  // namespace
}  // namespace lathe::lower
