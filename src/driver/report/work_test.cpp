#include "driver/report/work.h"

#include <gtest/gtest.h>

#include "ops/operators.h"
#include "relax/script/dialect.h"
#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::driver {
namespace {

// Rows of any number by a matrix, and of another number by the same: one kernel.
constexpr char two_products[] = R"(# lathe script 1
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 64), "float32"), y: R.Tensor(("m", 64), "float32"), w: R.Tensor((64, 32), "float32")):
        with R.dataflow():
            u = R.matmul(x, w)
            v = R.matmul(y, w)
            R.output(u, v)
        return u, v
)";

struct Reported {
  WorkReport report;
  CompiledModelRef model;

  explicit Reported(const std::string& script) {
    const auto graph = relax::script_dialect(ops::default_operators());
    const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
    CompileOptions options;
    options.target = target::parse_target("native").value_or_throw();
    options.on_change = report.watch();
    model = compile(script::parse({"two.relax", script}, dialects).value_or_throw(), options).value_or_throw();
    report.finish(*model);
  }
  void know_rows(int64_t first, int64_t second) {
    const auto zeros = [](std::vector<int64_t> shape) {
      return ir::tensor_of<float>(ir::DType::float32(), shape,
                                  std::vector<float>(static_cast<size_t>(shape[0] * shape[1])));
    };
    report.know_sizes({zeros({first, 64}), zeros({second, 64}), zeros({64, 32})});
  }
  const std::string& kernel() const { return model->program->kernels.at(0); }
};

constexpr const char *first = "two.relax:7:17", *second = "two.relax:8:17";  // nodes

TEST(work_report, has_figures_of_symbolic_sizes_once_the_inputs_are_known) {
  Reported reported(two_products);
  ASSERT_EQ(reported.model->program->kernels.size(), 1u);
  EXPECT_TRUE(reported.report.find(reported.kernel(), first)->symbolic);
  reported.know_rows(8, 5);
  EXPECT_EQ(reported.report.find(reported.kernel(), first)->operations, 2.0 * 8 * 64 * 32);
  EXPECT_EQ(reported.report.find(reported.kernel(), second)->operations, 2.0 * 5 * 64 * 32);
  EXPECT_EQ(reported.report.find(reported.kernel(), second)->bytes, 4.0 * (5 * 64 + 64 * 32 + 5 * 32));
  EXPECT_TRUE(reported.report.find(reported.kernel())->symbolic) << "calls of different sizes";
  reported.know_rows(7, 7);
  EXPECT_EQ(reported.report.find(reported.kernel())->operations, 2.0 * 7 * 64 * 32);
}

TEST(work_report, predicts_the_calls_of_a_kernel_by_their_sizes) {
  Reported reported(two_products);
  const MachineLimits machine{.operations_per_second = 1e9, .levels = {{"memory", 0, 1e9}}};
  const auto predicted = [&](const std::string& node) {
    return reported.report.predicted(reported.kernel(), node, reported.model->target, machine, 1);
  };
  EXPECT_FALSE(predicted(first));
  reported.know_rows(64, 128);
  ASSERT_TRUE(predicted(first) && predicted(second));
  EXPECT_GT(*predicted(second), 1.5 * *predicted(first));
}

}  // namespace
}  // namespace lathe::driver
