// Strings of the outside and numbers inside: what the register program gives, and how it is written down.
#include <gtest/gtest.h>

#include "lower/legalize/legalize.h"
#include "lower/program/write_program.h"
#include "ops/operators.h"
#include "relax/script/dialect.h"
#include "relax/verify.h"
#include "runtime/core/program_fixture.h"
#include "script/parse.h"
#include "script/print.h"
#include "tir/script/dialect.h"

namespace lathe::lower {
namespace lower_strings_test {

using runtime::testing::last_message;
using runtime::testing::Value;

ir::IRModule read(const std::string& text) {
  static const std::unique_ptr<script::Dialect> graph = relax::script_dialect(ops::default_operators());
  const std::vector<const script::Dialect*> dialects{&tir::script_dialect(), graph.get()};
  ir::IRModule module = script::parse({"m.py", "@R.function\n" + text}, dialects).value_or_throw();
  const support::Diagnostics wrong = relax::verify(module);
  EXPECT_TRUE(wrong.empty()) << support::render(wrong);
  const auto back = script::parse({"<text>", script::print(module, {}, dialects)}, dialects).value_or_throw();
  EXPECT_FALSE(ir::first_difference(module, back)) << *ir::first_difference(module, back);
  return module;
}

std::string texts_of(const LatheValue* value) {
  std::string all;
  for (int64_t i = 0; i < lathe_value_count(value); ++i) {
    uint64_t bytes = 0;
    const char* text = lathe_value_get_string(value, i, &bytes);
    all += (i > 0 ? "|" : "") + std::string(text, bytes);
  }
  return all;
}

TEST(lower_strings, constants_views_and_inputs_come_out_as_strings) {
  const ir::IRModule module = read(R"(
def main(x: R.Tensor(("n", 2), "handle")):
    n = T.int64(is_size_var=True)
    s = R.strings(texts=["b", "", "a\"\\x", "b"], shape=[2, 2])
    y = R.reshape(x, R.shape([2, n]))
    q = R.make_sequence(s, x, sinfo_args=[R.Tensor(ndim=2, dtype="handle")])
    return (s, y, x, q)
)");
  const Program program = write_program(legalize(module, {}).value_or_throw()).value_or_throw();
  runtime::testing::TestArtifact artifact;
  artifact.program = program.bytes;
  const runtime::testing::Model model = open(artifact);
  ASSERT_NE(model, nullptr) << last_message();
  EXPECT_EQ(lathe_input(model.get(), 0)->kind, LATHE_STRINGS);
  EXPECT_STREQ(lathe_input(model.get(), 0)->symbols[0], "n");
  const int64_t shape[] = {1, 2};
  const Value x(lathe_value_make_strings(2, shape));
  lathe_value_set_string(x.get(), 1, "given", 5);
  const std::vector<Value> out = run_values(context_of(model), {x.get()}, 4);
  ASSERT_EQ(out.size(), 4u) << last_message();
  EXPECT_EQ(texts_of(out[0].get()), "b||a\"\\x|b");
  EXPECT_EQ(texts_of(out[1].get()), "|given");
  EXPECT_EQ(texts_of(out[2].get()), "|given");
  const Value second(lathe_value_get(out[3].get(), 1));
  EXPECT_EQ(texts_of(second.get()), "|given");
  const int64_t wrong[] = {1, 3};
  const Value other(lathe_value_make_strings(2, wrong));
  EXPECT_TRUE(run_values(context_of(model), {other.get()}, 4).empty());
  EXPECT_NE(last_message().find("must have the shape [n, 2]"), std::string::npos) << last_message();
}

TEST(lower_strings, type_rules_refuse_what_does_not_fit) {
  const auto refusal = [](const std::string& line) -> std::string {
    try {
      read(
          "def main(x: R.Tensor((2,), \"handle\"), i: R.Tensor((2,), \"int64\"), f: R.Tensor((3,), \"float32\")):\n    "
          "y = " +
          line + "\n    return y\n");
    } catch (const support::DiagnosticError& error) {
      return error.diagnostics.at(0).message;
    }
    return "";
  };
  for (const auto& [line, why] : std::vector<std::pair<std::string, std::string>>{
           {"R.strings(texts=[\"a\"], shape=[2])", "1 strings do not make a tensor of [2]"},
           {"R.as_strings(f)", "takes numbers of int64"},
           {"R.string_concat(x, i)", "holds no strings"},
           {"R.string_order(f)", "holds no strings"},
           {"R.string_of_number(x)", "takes float32"},
           {"R.number_of_string(x, dtype=\"int8\")", "read as float64 or int64"},
           {"R.string_normalize(x, letter_case=\"title\")", "not none, lower or upper"},
           {"R.string_match(x, pattern=\"(\")", "the regular expression is wrong"},
           {"R.string_split(i)", "holds no strings"}})
    EXPECT_NE(refusal(line).find(why), std::string::npos) << line << ": " << refusal(line);
}

}  // namespace lower_strings_test
}  // namespace lathe::lower
