#include "driver/evaluate.h"

#include <gtest/gtest.h>

#include "driver/pipeline.h"
#include "ir/codes.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "relax/block_builder.h"
#include "relax/interpret/evaluate.h"

namespace lathe::driver {
namespace {

using relax::Expr;

Expr counting(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.0f);
  return relax::constant(ir::tensor_of<float>(ir::DType::float32(), std::move(shape), values));
}

// Convolutions and a product whose weights, as they stand or laid out anew, every row that folds has something of.
ir::IRModule all_that_folds() {
  relax::BlockBuilder builder;
  const relax::Var x = relax::relax_var(
      "x", relax::tensor_info({ir::int64(1), ir::int64(6), ir::int64(5), ir::int64(4)}, ir::DType::float32()));
  const auto call = [&](const relax::Operator& op, std::vector<Expr> args, relax::AttributesRef attributes = {}) {
    return builder.call(op, std::move(args), std::move(attributes)).value_or_throw();
  };
  builder.begin_function("main", {x});
  builder.begin_dataflow();
  const Expr kernel = call(ops::add, {counting({5, 6, 1, 1}), counting({5, 6, 1, 1})});
  const auto padding = ir::make<ops::ConvAttributes>(std::vector<int64_t>{}, std::vector<int64_t>{1, 1, 1, 1});
  const Expr smooth = call(ops::conv, {x, counting({6, 6, 3, 3})}, padding);
  const Expr filtered = call(ops::conv, {smooth, kernel}, ir::make<ops::ConvAttributes>());  // [1, 5, 5, 4]
  const Expr y =
      builder.emit_output(call(ops::matmul, {filtered, counting({4, 9})}, ir::make<ops::MatmulAttributes>()));
  builder.end_block();
  builder.end_function(y);
  return builder.finish();
}

// Which rows asked for constants to be computed, of those that are on.
std::set<std::string> rows_that_evaluate(const target::Target& target, const std::set<std::string>& off) {
  std::set<std::string> asked;
  std::string running;
  std::vector<ir::PassRow> rows = pipeline(target);
  for (ir::PassRow& row : rows)
    row.run = [&running, name = row.name, run = row.run](ir::IRModule module, const ir::PassContext& context) {
      running = name;
      return run(std::move(module), context);
    };
  ir::PassContext context;
  context.disabled = off;
  context.stop_after = "legalize";
  context.config = pass_config({{"winograd.tile", 2}}, true);
  context.evaluate = [&](const ir::IRModule& module, const std::string& function,
                         const std::vector<ir::TensorData>& inputs) {
    asked.insert(running);
    return relax::evaluate(module, function, inputs);
  };
  ir::run_passes(all_that_folds(), rows, context).value_or_throw();
  return asked;
}

TEST(rows_off_in_evaluation, are_all_that_evaluate) {
  target::Target target;
  target.vector_bits = 128;
  const std::set<std::string> off = rows_off_in_evaluation(target);
  // Each of them finds something to fold, alone and with the rest.
  EXPECT_EQ(rows_that_evaluate(target, {}), (std::set<std::string>{"fold_constants", "fold_packing", "fold_winograd"}));
  for (const std::string& row : rows_that_evaluate(target, {})) EXPECT_TRUE(off.count(row)) << row;
  EXPECT_EQ(rows_that_evaluate(target, off), std::set<std::string>{});
}

TEST(native_evaluator, computes_what_folding_would_fold_again) {
  relax::BlockBuilder builder;
  builder.begin_function("main", {});
  builder.begin_dataflow();
  const Expr sum = builder.call(ops::add, {counting({3}), counting({1})}).value_or_throw();
  const Expr y = builder.emit_output(builder.call(ops::multiply, {sum, sum}).value_or_throw());
  builder.end_block();
  builder.end_function(y);
  const auto outputs = native_evaluator({})(builder.finish(), "main", {}).value_or_throw();
  ASSERT_EQ(outputs.size(), 1u);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(ir::float_at(*outputs[0], i), static_cast<double>((i + 2) * (i + 2))) << i;
}

// A product of matrices of one value each: much work from little.
ir::IRModule much_from_little(int64_t n) {
  relax::BlockBuilder builder;
  const relax::Var x = relax::relax_var("x", relax::tensor_info({ir::int64(1), ir::int64(1)}, ir::DType::float32()));
  const auto call = [&](const relax::Operator& op, std::vector<Expr> args, relax::AttributesRef attributes = {}) {
    return builder.call(op, std::move(args), std::move(attributes)).value_or_throw();
  };
  const Expr wide = relax::make<relax::ShapeExpr>(std::vector<ir::Expr>{ir::int64(n), ir::int64(n)});
  builder.begin_function("main", {x});
  builder.begin_dataflow();
  const Expr side = call(ops::broadcast_to, {x, wide});
  const Expr y = builder.emit_output(call(ops::matmul, {side, side}, ir::make<ops::MatmulAttributes>()));
  builder.end_block();
  builder.end_function(y);
  return builder.finish();
}

TEST(native_evaluator, declines_what_takes_too_much) {
  const std::vector<ir::TensorData> one = {ir::tensor_of<float>(ir::DType::float32(), {1, 1}, std::vector<float>{2})};
  const auto code = [&](int64_t n, const EvaluationLimits& limits) {
    const auto result = native_evaluator({}, limits)(much_from_little(n), "main", one);
    return result.ok() ? "" : std::string(result.diagnostics()[0].code.name);
  };
  EXPECT_EQ(code(16, {}), "");
  EXPECT_EQ(code(1 << 14, {}), ir::codes::evaluation_limit.name);  // operations, before anything runs
  EXPECT_EQ(code(16, {.operations = 8191}), ir::codes::evaluation_limit.name);
  EXPECT_EQ(code(16, {.bytes = 512}), ir::codes::evaluation_limit.name);
  EXPECT_EQ(code(1 << 12, {.operations = 1e15, .seconds = 0.01, .bytes = 1 << 30}), ir::codes::evaluation_limit.name);
}

TEST(native_evaluator, refuses_by_the_plan_of_memory_and_at_once_what_it_has_refused) {
  int asked = 0;
  CompileOptions options;
  options.compile_threads = 1;
  options.cancelled = [&] { return ++asked < 0; };
  const ir::Evaluator evaluate = native_evaluator(options, {.bytes = 1000});
  const ir::IRModule module = much_from_little(16);
  const std::vector<ir::TensorData> one = {ir::tensor_of<float>(ir::DType::float32(), {1, 1}, std::vector<float>{2})};
  const auto refused = evaluate(module, "main", one);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].message, "it takes 1024 bytes of memory, more than 1008");
  EXPECT_GT(std::exchange(asked, 0), 0);
  EXPECT_EQ(evaluate(module, "main", one).diagnostics()[0].message, refused.diagnostics()[0].message);
  EXPECT_EQ(asked, 0) << "it was compiled again";
  EXPECT_FALSE(evaluate(much_from_little(17), "main", one).ok());
  EXPECT_GT(asked, 0);
}

}  // namespace
}  // namespace lathe::driver
