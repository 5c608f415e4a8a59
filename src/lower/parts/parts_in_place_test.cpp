#include "lower/parts/parts_in_place.h"

#include <gtest/gtest.h>

#include "graph/passes.h"
#include "lower/legalize/legalize.h"
#include "lower/testing/concat_graph.h"
#include "lower/testing/opened.h"
#include "lower/testing/plan_of.h"
#include "lower/testing/same_results.h"
#include "ops/attributes.h"
#include "relax/call_tir.h"
#include "relax/interpret/evaluate.h"
#include "relax/script/dialect.h"
#include "runtime/core/program_fixture.h"
#include "script/parse.h"
#include "script/testing/expected_text.h"
#include "tir/parts.h"
#include "tir/script/dialect.h"

namespace lathe::lower {
namespace {

using namespace relax;  // NOLINT: the subject of these tests
using testing::concat_graph;
using testing::concatenated;
using testing::ConcatGraph;
using testing::Opened;
using testing::plan_of;
using testing::random_data;

int splits(const ir::IRModule& module) {
  int count = 0;
  for (const auto& [name, function] : module) {
    const auto* program = function.as<tir::PrimFunc>();
    count += program && tir::as_split(*program);
  }
  return count;
}

int calls_in_place(const ir::IRModule& module) {
  int count = 0;
  for (const BindingBlock& block : module.find_as<FunctionNode>("main")->body.as<SeqExpr>()->blocks)
    for (const Binding& binding : block->bindings) {
      const auto call = as_call_tir(binding.as<VarBinding>()->value);
      count += call && call->updated(0);
    }
  return count;
}

TEST(parts_in_place, makes_of_programs_what_its_text_expects) {
  const auto graph = script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const std::string unexpected = script::testing::check_cases(parts_in_place, {}, __FILE__, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

class PartsInPlace : public ::testing::TestWithParam<testing::Rows> {};

TEST_P(PartsInPlace, keeps_what_random_graphs_compute) {
  std::mt19937_64 random(17);
  int in_place = 0, beside = 0, splits_before = 0, splits_after = 0;
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const ConcatGraph graph = concat_graph(4 + round / 6, random, GetParam());
    ir::IRModule module = graph.module;
    if (round % 2) module = graph::fuse_ops(std::move(module), {}).value_or_throw();
    module = legalize(std::move(module), {}).value_or_throw();
    const ir::IRModule changed = parts_in_place(module, {}).value_or_throw();
    const int calls = calls_in_place(changed);
    in_place += calls;
    for (const auto& [name, function] : changed)
      beside += function.is<tir::PrimFunc>() && function.as<tir::PrimFunc>()->attrs.contains("apart");
    splits_before += splits(module);
    splits_after += splits(changed);
    EXPECT_EQ(plan_of(changed).updates.size(), static_cast<size_t>(calls)) << "a whole is copied";
    std::vector<ir::TensorData> inputs;
    for (const std::vector<int64_t>& shape : graph.shapes) inputs.push_back(random_data(shape, random));
    testing::expect_same_results(graph.module, changed, inputs);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(in_place, 150);
  EXPECT_GT(beside, 10);
  EXPECT_GT(splits_before, 2 * splits_after);
}

INSTANTIATE_TEST_SUITE_P(rows, PartsInPlace, ::testing::Values(testing::Rows::known, testing::Rows::any),
                         [](const auto& rows) { return rows.param == testing::Rows::any ? "of_any_number" : "known"; });

// relu(x) beside -x, put together and doubled.
ir::IRModule two_parts(int64_t rows) {
  const Var x = relax_var("x", tensor_info({rows, 16}, ir::DType::float32()));
  BlockBuilder b;
  b.begin_function("main", {x});
  const auto call = [&](const Operator& op, std::vector<Expr> args) {
    return b.emit_output(make_call(op, std::move(args)).value_or_throw());
  };
  const Expr whole = b.emit_output(concatenated({call(ops::relu, {x}), call(ops::negative, {x})}, 1));
  b.end_function(call(ops::add, {whole, whole}));
  return legalize(b.finish(), {}).value_or_throw();
}

TEST(parts_in_place, needs_no_memory_for_parts) {
  const ir::IRModule copied = two_parts(4), in_place = parts_in_place(copied, {}).value_or_throw();
  EXPECT_EQ(plan_of(copied).arena_bytes, 4 * 4 * (16 + 16 + 32));
  EXPECT_EQ(plan_of(in_place).arena_bytes, 4 * 4 * 32);
  size_t kernels = 0;
  for (const auto& [name, function] : in_place) kernels += function.is<tir::PrimFunc>();
  EXPECT_EQ(kernels, 3u) << "nothing calls the copies any more";
}

TEST(parts_in_place, leaves_whole_what_has_no_elements) {
  EXPECT_EQ(calls_in_place(parts_in_place(two_parts(0), {}).value_or_throw()), 0);
}

// An argument that is read later is updated in a copy.
TEST(call_tir_inplace, keeps_the_argument_for_who_reads_it_later) {
  const auto graph = script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  for (const bool is_read_later : {false, true}) {
    const std::string text = R"(
@I.ir_module
class Module:
    @T.prim_func
    def bump(x: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("x"):
                vi = T.axis.spatial(4, i)
                x[vi] = x[vi] + T.float32(1)

    @T.prim_func
    def add(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32"), z: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("z"):
                vi = T.axis.spatial(4, i)
                z[vi] = x[vi] + y[vi]

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        a = R.call_tir(cls.add, (x, x), out_sinfo=R.Tensor((4,), "float32"))
        b = R.call_tir_inplace(cls.bump, (a,), [0], R.Tensor((4,), "float32"))
        c = R.call_tir(cls.add, ()" +
                             std::string(is_read_later ? "a" : "b") +
                             R"(, b), out_sinfo=R.Tensor((4,), "float32"))
        return c
)";
    const ir::IRModule module = script::parse({"test.py", text}, dialects).value_or_throw();
    EXPECT_EQ(plan_of(module).updates.size(), is_read_later ? 0u : 1u);
    const std::vector<ir::TensorData> inputs{ir::tensor_of<float>(ir::DType::float32(), {4}, {1, 2, 3, 4})};
    const auto meant = evaluate(module, "main", inputs).value_or_throw();
    Opened opened(module, write_program(module).value_or_throw());
    ASSERT_TRUE(opened.is_open()) << runtime::testing::last_message();
    const auto actual = opened.run(inputs, 1);
    ASSERT_EQ(actual.size(), 1u);
    for (int64_t i = 0; i < 4; ++i) {
      const double a = 2.0 * static_cast<double>(i + 1), b = a + 1;
      EXPECT_EQ(ir::float_at(*actual[0], i), (is_read_later ? a : b) + b);
      EXPECT_EQ(ir::float_at(*meant[0], i), (is_read_later ? a : b) + b);
    }
  }
}

}  // namespace
}  // namespace lathe::lower
