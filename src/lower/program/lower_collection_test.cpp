// Sequences and optionals: what the register program does is what the interpreter says.
#include <gtest/gtest.h>

#include "graph/passes.h"
#include "lower/legalize/legalize.h"
#include "lower/testing/opened.h"
#include "lower/testing/random_graph.h"
#include "ops/operators.h"
#include "relax/interpret/evaluate.h"
#include "relax/script/dialect.h"
#include "relax/verify.h"
#include "runtime/core/program_fixture.h"
#include "script/parse.h"
#include "script/print.h"
#include "tir/script/dialect.h"

namespace lathe::lower {
namespace lower_collection_test {

using runtime::testing::last_message;
using testing::Opened;
using testing::random_data;

ir::IRModule read(const std::string& lines) {
  static const std::unique_ptr<script::Dialect> graph = relax::script_dialect(ops::default_operators());
  const std::vector<const script::Dialect*> dialects{&tir::script_dialect(), graph.get()};
  const std::string text =
      "@R.function\ndef main(x: R.Tensor((\"n\", 3), \"float32\"), i: R.Tensor((), \"int64\"), "
      "v: R.Tensor((\"k\",), \"int64\")):\n    n = T.int64(is_size_var=True)\n    k = T.int64(is_size_var=True)\n" +
      lines;
  ir::IRModule module = script::parse({"m.py", text}, dialects).value_or_throw();
  const support::Diagnostics wrong = relax::verify(module);
  EXPECT_TRUE(wrong.empty()) << support::render(wrong);
  const auto back = script::parse({"<text>", script::print(module, {}, dialects)}, dialects).value_or_throw();
  EXPECT_FALSE(ir::first_difference(module, back)) << *ir::first_difference(module, back);
  return module;
}

ir::TensorData longs(std::vector<int64_t> shape, std::vector<int64_t> values) {
  return ir::tensor_of<int64_t>(ir::DType::int64(), std::move(shape), values);
}

using Inputs = std::vector<ir::TensorData>;

void expect_agreement(const std::string& lines, const std::vector<Inputs>& runs) {
  const ir::IRModule module = read(lines);
  const ir::IRModule lowered = legalize(module, {}).value_or_throw();
  Opened opened(lowered, write_program(lowered).value_or_throw());
  ASSERT_TRUE(opened.is_open()) << last_message();
  for (const Inputs& inputs : runs) {
    const auto expected = relax::evaluate(module, "main", inputs).value_or_throw();
    const auto actual = opened.run(inputs, static_cast<int>(expected.size()));
    ASSERT_EQ(actual.size(), expected.size()) << last_message();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(actual[i]->shape, expected[i]->shape) << "result " << i;
      EXPECT_EQ(actual[i]->view(), expected[i]->view()) << "result " << i;
    }
  }
}

// Both refuse to run.
void expect_refusal(const std::string& lines, const Inputs& inputs, const std::string& part) {
  const ir::IRModule module = read(lines);
  const ir::IRModule lowered = legalize(module, {}).value_or_throw();
  EXPECT_FALSE(relax::evaluate(module, "main", inputs).ok());
  Opened opened(lowered, write_program(lowered).value_or_throw());
  ASSERT_TRUE(opened.is_open()) << last_message();
  const auto& result = module.find_as<relax::FunctionNode>("main")->body.as<relax::SeqExpr>()->body;
  EXPECT_TRUE(opened.run(inputs, static_cast<int>(result.as<relax::Tuple>()->items.size())).empty());
  EXPECT_NE(std::string(last_message()).find(part), std::string::npos) << last_message();
}

Inputs inputs_of(int64_t n, int64_t i, std::vector<int64_t> v) {
  std::mt19937_64 random(static_cast<uint64_t>(n + 1));
  const auto count = static_cast<int64_t>(v.size());
  return {random_data({n, 3}, random), longs({}, {i}), longs({count}, std::move(v))};
}

// The second element lies in memory that later tensors take: it must have been copied.
TEST(lower_collection, elements_are_inserted_erased_and_read) {
  expect_agreement(R"(
    a = R.add(x, x)
    b = R.negative(a)
    s = R.make_sequence(x, a, sinfo_args=[R.Tensor(ndim=2, dtype="float32")])
    t = R.sequence_insert(s, b, i, sinfo_args=[R.Tensor(ndim=2, dtype="float32")])
    c = R.exp(b)
    d = R.exp(c)
    u = R.sequence_insert(t, d, sinfo_args=[R.Tensor(ndim=2, dtype="float32")])
    w = R.sequence_erase(u, i)
    y = R.sequence_erase(u)
    f = R.sequence_at(u, i)
    g = R.match_cast(f, R.Tensor((n, 3), "float32"))
    h = R.join_sequence(w)
    m = T.int64(is_size_var=True)
    j = R.match_cast(h, R.Tensor((m, 3), "float32"))
    o = R.join_sequence(y, new_axis=True)
    q = T.int64(is_size_var=True)
    p = R.match_cast(o, R.Tensor((q, n, 3), "float32"))
    l = R.sequence_length(w)
    return (g, j, p, l)
)",
                   {inputs_of(2, 0, {}), inputs_of(5, 1, {}), inputs_of(0, 2, {}), inputs_of(1, -1, {})});
}

TEST(lower_collection, elements_of_several_ranks_are_counted) {
  expect_agreement(R"(
    b = R.reshape(x, R.shape([n * 3]))
    s = R.make_sequence(x, b, sinfo_args=[R.Object()])
    t = R.sequence_insert(s, b, i, sinfo_args=[R.Object()])
    u = R.sequence_erase(t)
    l = R.sequence_length(u)
    return (l,)
)",
                   {inputs_of(2, 0, {}), inputs_of(0, 1, {})});
}

TEST(lower_collection, tensors_are_split) {
  const auto lines = [](const std::string& split) {
    return "    s = R.split_sequence(x" + split + R"()
    t = R.sequence_insert(s, R.const([[1.0, 2.0, 3.0]], "float32"), sinfo_args=[R.Tensor(ndim=2, dtype="float32")])
    h = R.join_sequence(t)
    m = T.int64(is_size_var=True)
    j = R.match_cast(h, R.Tensor((m, 3), "float32"))
    f = R.sequence_at(t, R.const(0, "int64"))
    q = T.int64(is_size_var=True)
    g = R.match_cast(f, R.Tensor((q, 3), "float32"))
    l = R.sequence_length(s)
    return (j, g, l)
)";
  };
  expect_agreement(lines(""), {inputs_of(3, 0, {}), inputs_of(0, 0, {})});
  expect_agreement(lines(", i"), {inputs_of(5, 2, {}), inputs_of(4, 2, {}), inputs_of(3, 7, {}), inputs_of(0, 1, {})});
  expect_agreement(lines(", v"), {inputs_of(5, 0, {2, 0, 3}), inputs_of(0, 0, {0}), inputs_of(0, 0, {})});
  expect_refusal(lines(", i"), inputs_of(5, 0, {}), "no or negative extent");
  expect_refusal(lines(", v"), inputs_of(5, 0, {2, 2}), "do not add up");
  expect_refusal(lines(", v"), inputs_of(5, 0, {2, 4}), "do not add up");
  expect_refusal(lines(", v"), inputs_of(5, 0, {6, -1}), "do not add up");
}

TEST(lower_collection, an_axis_of_one_goes) {
  expect_agreement(R"(
    s = R.split_sequence(x, keep_axis=False)
    h = R.join_sequence(s, new_axis=True)
    m = T.int64(is_size_var=True)
    j = R.match_cast(h, R.Tensor((m, 3), "float32"))
    return (j,)
)",
                   {inputs_of(4, 0, {}), inputs_of(1, 0, {})});
}

TEST(lower_collection, optionals_have_a_value_or_none) {
  expect_agreement(R"(
    o = R.make_optional(x, sinfo_args=[R.Tensor(ndim=2, dtype="float32")])
    p = R.make_optional(sinfo_args=[R.Tensor(ndim=2, dtype="float32")])
    f = R.optional_get(o)
    g = R.match_cast(f, R.Tensor((n, 3), "float32"))
    a = R.optional_has(o)
    b = R.optional_has(p)
    return (g, a, b)
)",
                   {inputs_of(2, 0, {})});
  expect_refusal(R"(
    p = R.make_optional(sinfo_args=[R.Tensor(ndim=2, dtype="float32")])
    f = R.optional_get(p)
    g = R.match_cast(f, R.Tensor((n, 3), "float32"))
    return (g,)
)",
                 inputs_of(2, 0, {}), "without a value");
}

TEST(lower_collection, positions_outside_are_refused) {
  const std::string lines = R"(
    s = R.make_sequence(x, x, sinfo_args=[R.Tensor(ndim=2, dtype="float32")])
    f = R.sequence_at(s, i)
    g = R.match_cast(f, R.Tensor((n, 3), "float32"))
    return (g,)
)";
  expect_refusal(lines, inputs_of(2, 2, {}), "position 2 lies outside of a sequence of 2 elements");
  expect_refusal(lines, inputs_of(2, -3, {}), "position -3 lies outside");
  expect_refusal(R"(
    s = R.make_sequence(sinfo_args=[R.Tensor(ndim=2, dtype="float32")])
    t = R.join_sequence(s)
    g = R.match_cast(t, R.Tensor((n, 3), "float32"))
    return (g,)
)",
                 inputs_of(2, 2, {}), "an empty sequence is joined");
}

}  // namespace lower_collection_test
}  // namespace lathe::lower
