#include <gtest/gtest.h>

#include "graph/passes.h"
#include "lower/legalize/legalize.h"
#include "lower/states/states.h"
#include "lower/testing/opened.h"
#include "lower/testing/random_graph.h"
#include "ops/attributes.h"
#include "relax/call_tir.h"
#include "relax/dim_sizes.h"
#include "relax/interpret/evaluate.h"
#include "relax/script/dialect.h"
#include "runtime/core/program_fixture.h"
#include "script/parse.h"
#include "script/testing/expected_text.h"
#include "tir/script/dialect.h"

namespace lathe::lower {
namespace {

using namespace relax;  // NOLINT: the subject of these tests
using testing::Opened;
using testing::random_data;

constexpr int64_t most_before = 9, most_new = 4;

// A model with states of random kinds, each with an input of its own: those that grow along an axis and are read by
// kernels, by views, or not at all, and one that is added to.
struct StatefulGraph {
  ir::IRModule module;
  std::vector<StateNames> names;
  std::vector<std::vector<int64_t>> inputs;  // shapes; -1: new elements
  std::vector<std::vector<int64_t>> states;  // shapes; -1: elements so far
  size_t results = 0;                        // beside the states
};

StatefulGraph stateful_graph(std::mt19937_64& random) {
  const auto pick = [&](size_t count) { return random() % count; };
  const ir::Var before = ir::var("before"), fresh = ir::var("fresh");
  const auto info = [&](const std::vector<int64_t>& shape, const ir::Var& symbol) {
    std::vector<ir::Expr> extents;
    for (const int64_t extent : shape) extents.push_back(extent < 0 ? ir::Expr(symbol) : ir::int64(extent));
    return tensor_info(std::move(extents), ir::DType::float32());
  };
  StatefulGraph graph;
  std::vector<Var> params;
  struct Grows {
    Var state, x;
    int64_t axis;
  };
  std::vector<Grows> all;
  for (size_t k = 0; k < 1 + pick(3); ++k) {
    std::vector<int64_t> shape{1 + static_cast<int64_t>(pick(3)), 2, 3};
    shape.resize(1 + pick(3));
    const auto axis = static_cast<int64_t>(pick(shape.size()));
    shape[static_cast<size_t>(axis)] = -1;
    const std::string number = std::to_string(k);
    all.push_back({relax_var("past" + number, info(shape, before)), relax_var("x" + number, info(shape, fresh)), axis});
    graph.states.push_back(shape);
    graph.inputs.push_back(shape);
    graph.names.emplace_back("past" + number, "next" + number);
    params.push_back(all.back().state);
    params.push_back(all.back().x);
  }
  const bool has_sum = pick(2);
  const Var sum = relax_var("sum", tensor_info({2}, ir::DType::float32()));
  if (has_sum) {
    params.push_back(sum);
    graph.states.push_back({2});
    graph.names.emplace_back("sum", "next_sum");
  }
  ir::Attributes attrs;
  if (pick(8))
    tell_sizes(attrs, "before",
               DimSizes(0, most_before, pick(2) ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{}));
  tell_sizes(attrs, "fresh", DimSizes(0, most_new, {}));
  BlockBuilder b;
  b.begin_function("main", params, attrs);
  const auto emit = [&](Expr e) { return b.emit_output(std::move(e)); };
  const auto call = [&](const Operator& op, std::vector<Expr> args, AttributesRef attributes = {}) {
    return emit(make_call(op, std::move(args), std::move(attributes)).value_or_throw());
  };
  std::vector<Expr> results, next;
  for (const auto& [state, x, axis] : all) {
    std::vector<Expr> parts{state, pick(2) ? call(ops::relu, {x}) : Expr(x)};
    if (!pick(8)) std::swap(parts[0], parts[1]);  // in front: no state can be written so
    if (!pick(4)) parts.push_back(x);
    next.push_back(call(ops::concat, parts, ir::make<ops::AxisAttributes>(axis)));
    Expr read = next.back();
    if (pick(2)) {  // with an axis more, or those in front of it made one
      std::vector<ir::Expr> shape = *as_tensor(read)->shape;
      shape.insert(shape.begin() + static_cast<ptrdiff_t>(pick(shape.size() + 1)), ir::int64(1));
      read = call(ops::reshape, {read, ir::make<ShapeExpr>(std::move(shape))});
    }
    switch (pick(5)) {
      case 0:
        results.push_back(call(ops::negative, {read}));
        break;
      case 1:
        results.push_back(call(ops::sum, {call(ops::relu, {read})}, ir::make<ops::ReduceAttributes>()));
        break;
      case 2:
        results.push_back(call(ops::add, {read, read}));
        break;
      case 3:
        results.push_back(next.back());  // somebody else's, too
        break;
      default:
        results.push_back(call(ops::negative, {x}));
    }
  }
  if (has_sum) next.push_back(call(ops::add, {sum, constant(random_data({2}, random))}));
  graph.results = results.size();
  ir::Value::List names;
  for (size_t i = 0; i < results.size(); ++i) names.emplace_back("y" + std::to_string(i));
  for (const auto& [input, output] : graph.names) names.emplace_back(output);
  results.insert(results.end(), next.begin(), next.end());
  b.end_function(tuple_of(std::move(results)));
  graph.module = b.finish();
  const auto main = graph.module.find_as<FunctionNode>("main");
  graph.module.set("main", ir::with(*main, [&](FunctionNode& copy) { copy.attrs.set("output_names", names); }));
  return graph;
}

std::vector<int64_t> with_size(std::vector<int64_t> shape, int64_t size) {
  for (int64_t& extent : shape) extent = extent < 0 ? size : extent;
  return shape;
}

ir::TensorData zeros(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return ir::tensor_of<float>(ir::DType::float32(), shape, std::vector<float>(static_cast<size_t>(count)));
}

int in_place(const ir::IRModule& module) {
  int count = 0;
  for (const State& state : states_of(*module.find_as<FunctionNode>("main"))) count += state.is_in_place();
  return count;
}

TEST(states_in_place, makes_of_programs_what_its_text_expects) {
  const auto graph = script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const std::string unexpected = script::testing::check_cases(states_in_place, {}, __FILE__, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

TEST(check_states, refuses_what_cannot_be) {
  const auto graph = script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const auto refusal = [&](const std::string& states, const std::string& results = "return y, z") {
    const std::string text = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), a: R.Tensor((2, 3), "float32"), n_size: R.Shape(["n"])):
        n = T.int64(is_size_var=True)
        R.func_attr({"states": )" +
                             states +
                             R"(})
        with R.dataflow():
            y = R.add(x, a)
            z = R.add(y, a)
            R.output(y, z)
        )" + results + "\n";
    ir::IRModule module = script::parse({"test.py", text}, dialects).value_or_throw();
    module = legalize(std::move(module), {}).value_or_throw();
    const auto placed = states_in_place(module, {});
    const auto written = write_program(module);
    EXPECT_EQ(placed.ok(), written.ok()) << states;
    if (written.ok()) return std::string();
    EXPECT_EQ(written.diagnostics()[0].code.name, "lower-wrong-state");
    return written.diagnostics()[0].message.substr(std::string("the attribute 'states' says what cannot be: ").size());
  };
  EXPECT_EQ(refusal(R"([{"output": 1}, {"output": 2}])", "return y, z, n_size"), "");
  EXPECT_EQ(refusal(R"([{"axis": 0, "length": "n"}, {"output": 2}])", "return y, z, n_size"), "");
  EXPECT_EQ(refusal("3"), "it is no list of some of the parameters");
  EXPECT_EQ(refusal("[1, 2, 3, 4]"), "it is no list of some of the parameters");
  EXPECT_EQ(refusal(R"([{"output": 1}, {"output": 2}])", "return y"), "the function's result is no tuple");
  EXPECT_EQ(refusal(R"([{"output": 0}])"), "the results that replace states are not the last ones");
  EXPECT_EQ(refusal(R"([{"output": 1}])"), "'n_size' cannot become result 1");
  EXPECT_EQ(refusal(R"([{"output": 1}, {"output": 0}])"), "the results that replace states are not the last ones");
  EXPECT_EQ(refusal(R"([{"output": 1}, {"axis": 0, "length": "n"}])"),
            "'n_size' is no tensor of known rank in front of lengths");
  for (const char* state : {R"({"axis": 2, "length": "n"})", R"({"axis": -1, "length": "n"})",
                            R"({"axis": 0, "length": "m"})", R"({"axis": 0})", "7", "{}"})
    EXPECT_EQ(refusal("[" + std::string(state) + R"(, {"output": 1}])", "return y, n_size"),
              "'a' is no memory that a length counts in")
        << state;
}

// Run after run beside the model itself, to which everything is passed along.
TEST(states_in_place, keeps_what_random_models_compute) {
  std::mt19937_64 random(23);
  int written = 0, replaced = 0;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const StatefulGraph graph = stateful_graph(random);
    ir::IRModule module = keep_states(graph.module, graph.names).value_or_throw();
    if (round % 2) module = graph::fuse_ops(std::move(module), {}).value_or_throw();
    module = legalize(std::move(module), {}).value_or_throw();
    if (round % 5) module = states_in_place(std::move(module), {}).value_or_throw();
    written += in_place(module);
    replaced += static_cast<int>(graph.names.size()) - in_place(module);
    Opened opened(module, write_program(module).value_or_throw());
    ASSERT_TRUE(opened.is_open()) << runtime::testing::last_message();
    std::vector<ir::TensorData> kept;
    for (const std::vector<int64_t>& shape : graph.states) kept.push_back(zeros(with_size(shape, 0)));
    for (int64_t run = 0; run < 3; ++run) {
      const auto fresh = static_cast<int64_t>(random() % 3);
      std::vector<ir::TensorData> inputs, all;
      for (size_t k = 0; k < graph.inputs.size(); ++k) {
        inputs.push_back(random_data(with_size(graph.inputs[k], fresh), random));
        all.push_back(kept[k]);
        all.push_back(inputs.back());
      }
      if (kept.size() > graph.inputs.size()) all.push_back(kept.back());
      const auto expected = evaluate(graph.module, "main", all);
      // Inputs of different states may grow to different sizes, which then do not fit one symbol.
      const auto actual = opened.run(inputs, static_cast<int>(graph.results));
      ASSERT_EQ(expected.ok(), !actual.empty()) << runtime::testing::last_message();
      if (!expected.ok()) break;
      for (size_t i = 0; i < graph.results; ++i) {
        const ir::TensorData& want = (*expected)[i];
        ASSERT_EQ(actual[i]->shape, want->shape) << "result " << i;
        for (int64_t e = 0; e < want->elements(); ++e)
          ASSERT_NEAR(ir::float_at(*actual[i], e), ir::float_at(*want, e), 1e-4) << "result " << i << " element " << e;
      }
      kept.assign(expected->begin() + static_cast<ptrdiff_t>(graph.results), expected->end());
    }
  }
  EXPECT_GT(written, 60);
  EXPECT_GT(replaced, 60);
}

}  // namespace
}  // namespace lathe::lower
