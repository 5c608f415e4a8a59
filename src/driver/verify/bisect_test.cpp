#include "driver/verify/bisect.h"

#include <gtest/gtest.h>

#include "driver/pipeline.h"
#include "graph/rewrite_bindings.h"
#include "ops/operators.h"
#include "relax/interpret/evaluate.h"
#include "relax/script/dialect.h"
#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::driver {
namespace {

using ir::TensorData;

constexpr const char* three_operators = R"(
@R.function
def main(x: R.Tensor((4, 6), "float32")) -> R.Tensor((4, 6), "float32"):
    with R.dataflow():
        a = R.exp(x)
        b = R.tanh(a)
        c = R.add(a, b)
        R.output(c)
    return c
)";

ir::IRModule parsed(const char* text) {
  const auto graph = relax::script_dialect(ops::default_operators());
  const script::Dialect* dialects[] = {&tir::script_dialect(), graph.get()};
  return script::parse({"m.relax", text}, dialects, {}).value_or_throw();
}

// A pass that takes the tanh of something for its sine.
support::Result<ir::IRModule> mistake_tanh(ir::IRModule module, const ir::PassContext&) {
  return graph::rewrite_functions(
      std::move(module),
      [](graph::Emitter& emitter, const relax::Var& var, const relax::Expr& value) -> support::Result<relax::Expr> {
        const relax::Call* call = graph::as_call_of(value, "tanh");
        if (!call) return relax::Expr();
        return emitter.call(*ops::default_operators().find("sin"), {call->args[0]}, {}, var->name);
      });
}

support::Result<ir::IRModule> give_up(ir::IRModule, const ir::PassContext&) {
  throw support::InternalError("a broken invariant");
}

class BisectTest : public ::testing::Test {
 protected:
  void SetUp() override {
    module_ = parsed(three_operators);
    inputs_ = {random_tensor(ir::DType::float_(32), {4, 6}, 1)};
    expected_ = relax::evaluate(module_, "main", inputs_).value_or_throw();
    options_.target = target::native_target();
    rows_ = pipeline(options_.target);
  }
  FirstDifference search() const { return first_difference(module_, rows_, {}, inputs_, expected_).value_or_throw(); }
  // Puts a row in front of another.
  void insert(const std::string& before, ir::PassRow row) {
    const auto at = std::find_if(rows_.begin(), rows_.end(), [&](const ir::PassRow& r) { return r.name == before; });
    ASSERT_NE(at, rows_.end());
    rows_.insert(at, std::move(row));
  }
  ir::IRModule module_;
  std::vector<TensorData> inputs_, expected_;
  std::vector<ir::PassRow> rows_;
  CompileOptions options_;
};

TEST_F(BisectTest, runs_the_program_after_each_pass) {
  const FirstDifference first = search();
  EXPECT_EQ(first.pass, "") << first.failure << first.tensor;
  EXPECT_GE(first.compared, 6);  // graph, tensor programs and kernels
}

TEST_F(BisectTest, names_the_pass_and_the_tensor) {
  insert("fuse_ops", {"mistake_tanh", mistake_tanh});
  const FirstDifference first = search();
  EXPECT_EQ(first.pass, "mistake_tanh");
  EXPECT_EQ(first.tensor, "b");
  EXPECT_GT(first.difference.wrong, 0);
  EXPECT_EQ(first.difference.compared, 24);
}

TEST_F(BisectTest, names_the_pass_that_gives_up) {
  insert("legalize", {"give_up", give_up});
  const FirstDifference first = search();
  EXPECT_EQ(first.pass, "give_up");
  EXPECT_EQ(first.failure, "a broken invariant");
}

TEST_F(BisectTest, tells_of_each_pass_what_becomes_without_it) {
  const Bisection made = bisect(module_, options_, inputs_, expected_, true).value_or_throw();
  EXPECT_TRUE(made.agrees);
  using Verdict = SwitchedOff::Verdict;
  std::map<std::string, Verdict> verdicts;
  for (const SwitchedOff& off : made.without) verdicts[off.pass] = off.verdict;
  EXPECT_EQ(verdicts.size(), pipeline(options_.target).size());
  EXPECT_EQ(verdicts.at("fuse_ops"), Verdict::agrees);
  EXPECT_EQ(verdicts.at("schedule_functions"), Verdict::agrees);
  EXPECT_EQ(verdicts.at("legalize"), Verdict::needed);
  for (const SwitchedOff& off : made.without)
    if (off.verdict == Verdict::needed) EXPECT_FALSE(off.said.empty()) << off.pass;
}

TEST_F(BisectTest, blames_the_code_when_every_program_is_right) {
  std::vector<TensorData> wrong = {random_tensor(ir::DType::float_(32), {4, 6}, 9)};
  const Bisection made = bisect(module_, options_, inputs_, wrong, false).value_or_throw();
  EXPECT_FALSE(made.agrees);
  EXPECT_EQ(made.first.pass, "");  // nothing was interpreted
  EXPECT_EQ(std::count_if(made.without.begin(), made.without.end(),
                          [](const SwitchedOff& off) { return off.verdict == SwitchedOff::Verdict::agrees; }),
            0);
}

TEST_F(BisectTest, says_so_when_it_is_stopped) {
  options_.cancelled = [] { return true; };
  const auto made = bisect(module_, options_, inputs_, expected_, true);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.diagnostics()[0].code.name, "ir-cancelled");
  EXPECT_NE(made.diagnostics()[0].code.name, "bisect-failure");
}

}  // namespace
}  // namespace lathe::driver
