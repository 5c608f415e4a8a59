#include "driver/compile.h"

#include <gtest/gtest.h>

#include "driver/executable.h"
#include "driver/print.h"
#include "ops/operators.h"
#include "relax/block_builder.h"

namespace lathe::driver {
namespace {

using relax::BlockBuilder;
using relax::Expr;

ir::TensorData floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return ir::tensor_of<float>(ir::DType::float32(), std::move(shape), values);
}

// relu(x @ w + b) with constant w and b.
ir::IRModule dense(std::vector<ir::Expr> x_shape, const ir::TensorData& w, const ir::TensorData& b) {
  const relax::Var x = relax::relax_var("x", relax::tensor_info(std::move(x_shape), ir::DType::float32()));
  BlockBuilder builder;
  builder.begin_function("main", {x});
  builder.begin_dataflow();
  Expr y = builder.call(ops::matmul, {x, relax::constant(w)}).value_or_throw();
  y = builder.call(ops::add, {y, relax::constant(b)}).value_or_throw();
  y = builder.call(ops::relu, {y}).value_or_throw();
  y = builder.emit_output(y);
  builder.end_block();
  builder.end_function(y);
  return builder.finish();
}

struct Dense {
  int64_t k, n;
  std::vector<float> w, b;
  Dense(int64_t k, int64_t n) : k(k), n(n) {
    for (int64_t i = 0; i < k * n; ++i) w.push_back(static_cast<float>((i * 37 % 101) - 50) / 50);
    for (int64_t i = 0; i < n; ++i) b.push_back(static_cast<float>(i % 7) - 3);
  }
  ir::IRModule module(std::vector<ir::Expr> shape) const {
    return dense(std::move(shape), floats({k, n}, w), floats({n}, b));
  }
  // Runs `executable` on m rows and compares with plain loops.
  void check(const Executable& executable, int64_t m) const {
    std::vector<float> x;
    for (int64_t i = 0; i < m * k; ++i) x.push_back(static_cast<float>((i * 53 % 97) - 48) / 48);
    const auto outputs = executable.run({floats({m, k}, x)}).value_or_throw();
    ASSERT_EQ(outputs.size(), 1u);
    ASSERT_EQ(outputs[0]->shape, (std::vector<int64_t>{m, n}));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = b[static_cast<size_t>(j)];
        for (int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(x[static_cast<size_t>(i * k + l)]) * w[static_cast<size_t>(l * n + j)];
        EXPECT_NEAR(ir::float_at(*outputs[0], i * n + j), std::max(sum, 0.0), 1e-4) << i << "," << j;
      }
  }
};

CompileOptions native() {
  CompileOptions options;
  options.target = target::native_target();
  return options;
}

TEST(compile, runs_a_dense_layer) {
  const Dense layer(13, 17);
  const auto model = compile(layer.module({ir::int64(5), ir::int64(13)}), native()).value_or_throw();
  layer.check(*load(model).value_or_throw(), 5);
}

TEST(compile, keeps_a_symbolic_batch) {
  const Dense layer(13, 17);
  const auto model = compile(layer.module({ir::size_var("batch"), ir::int64(13)}), native()).value_or_throw();
  const auto executable = load(model).value_or_throw();
  for (const int64_t m : {1, 2, 7, 0, 33}) layer.check(*executable, m);
}

TEST(compile, takes_two_inputs_that_share_a_symbol) {
  const ir::Var n = ir::size_var("n");
  const relax::Var a = relax::relax_var("a", relax::tensor_info({n}, ir::DType::float32()));
  const relax::Var b = relax::relax_var("b", relax::tensor_info({n}, ir::DType::float32()));
  BlockBuilder builder;
  builder.begin_function("main", {a, b});
  builder.begin_dataflow();
  const Expr y = builder.emit_output(builder.call(ops::subtract, {a, b}).value_or_throw());
  builder.end_block();
  builder.end_function(y);
  const auto executable = load(compile(builder.finish(), native()).value_or_throw()).value_or_throw();
  const auto result = executable->run({floats({3}, {5, 7, 9}), floats({3}, {1, 2, 30})}).value_or_throw();
  EXPECT_EQ(ir::float_at(*result[0], 0), 4);
  EXPECT_EQ(ir::float_at(*result[0], 2), -21);
  EXPECT_FALSE(executable->run({floats({3}, {5, 7, 9}), floats({2}, {1, 2})}).ok());
}

// Products of several sizes behind one another: each a function of its own.
ir::IRModule chain_of_products(const std::vector<int64_t>& widths) {
  const relax::Var x =
      relax::relax_var("x", relax::tensor_info({ir::int64(6), ir::int64(widths[0])}, ir::DType::float32()));
  BlockBuilder builder;
  builder.begin_function("main", {x});
  builder.begin_dataflow();
  Expr y = x;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const Dense layer(widths[i], widths[i + 1]);
    y = builder.call(ops::matmul, {y, relax::constant(floats({layer.k, layer.n}, layer.w))}).value_or_throw();
    y = builder.call(i % 2 ? ops::relu : ops::tanh, {y}).value_or_throw();
  }
  y = builder.emit_output(y);
  builder.end_block();
  builder.end_function(y);
  return builder.finish();
}

// Without this row the first rule's schedule does not lower: another rule's is taken, and that is said once.
TEST(compile, takes_the_next_rule_where_a_schedule_does_not_lower) {
  const Dense layer(40, 50);
  CompileOptions options = native();
  options.disabled_passes = {"compact_buffers"};
  const auto model = compile(layer.module({ir::int64(9), ir::int64(40)}), options).value_or_throw();
  layer.check(*load(model).value_or_throw(), 9);
  std::multiset<std::string> said, timed;
  for (const ir::Remark& remark : model->remarks) said.insert(remark.pass + ": " + remark.text);
  for (const RowTime& time : model->times) timed.insert(time.row);
  for (const auto& lines : {said, timed})
    for (const std::string& line : lines) EXPECT_EQ(lines.count(line), 1u) << line;
  EXPECT_EQ(timed.count("schedule_functions"), 1u);
  EXPECT_TRUE(std::any_of(said.begin(), said.end(), [](const std::string& line) {
    return line.starts_with("gemm: the schedule does not lower: ");
  }));
  EXPECT_TRUE(std::any_of(model->remarks.begin(), model->remarks.end(),
                          [](const ir::Remark& remark) { return remark.taken && remark.pass == "reduction"; }));
}

TEST(compile, makes_code_quickly_for_what_runs_once_and_computes_little) {
  const Dense layer(40, 48);
  const auto compiled = [&](int64_t rows, bool runs_once) {
    CompileOptions options = native();
    options.runs_once = runs_once;
    return compile(layer.module({ir::int64(rows), ir::int64(40)}), options).value_or_throw();
  };
  const CompiledModelRef quick = compiled(9, true), full = compiled(9, false), much = compiled(30'000, true);
  layer.check(*load(quick).value_or_throw(), 9);
  EXPECT_TRUE(quick->functions.object == nullptr);
  EXPECT_TRUE(full->functions.object && much->functions.object);
  EXPECT_NE(quick->kernels.kernels.at(0).symbol, full->kernels.kernels.at(0).symbol);
}

TEST(compile, does_the_same_on_any_number_of_threads) {
  const auto compiled = [](int threads) {
    CompileOptions options = native();
    options.compile_threads = threads;
    return compile(chain_of_products({8, 24, 16, 40, 33, 7, 64}), options).value_or_throw();
  };
  const CompiledModelRef one = compiled(1);
  EXPECT_GT(one->module.functions().size(), 5u);
  for (const int threads : {2, 3, 8}) {
    const CompiledModelRef many = compiled(threads);
    EXPECT_EQ(print(one->module), print(many->module));
    ASSERT_EQ(one->remarks.size(), many->remarks.size());
    for (size_t i = 0; i < one->remarks.size(); ++i) {
      EXPECT_EQ(one->remarks[i].subject, many->remarks[i].subject);
      EXPECT_EQ(one->remarks[i].text, many->remarks[i].text);
    }
  }
}

}  // namespace
}  // namespace lathe::driver
