#include <gtest/gtest.h>

#include "lower/states/states.h"
#include "relax/script/dialect.h"
#include "script/parse.h"
#include "script/testing/expected_text.h"
#include "tir/script/dialect.h"

namespace lathe::lower {
namespace {

ir::IRModule parsed(const std::string& text) {
  const auto graph = relax::script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  return script::parse({"test.py", text}, dialects).value_or_throw();
}

TEST(keep_states, makes_of_programs_what_its_text_expects) {
  const auto graph = relax::script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const auto keep = [](ir::IRModule module, const ir::PassContext&) {
    return keep_states(std::move(module), {{"old_*", "*_next"}, {"sum", "total"}});
  };
  const std::string unexpected = script::testing::check_cases(keep, {}, __FILE__, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

TEST(keep_states, refuses_what_is_no_state) {
  const ir::IRModule module = parsed(R"(
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2, "n"), "float32"), b: R.Tensor((2, 3), "float32"), c: R.Tensor((2,), "int32"), s: R.Tensor((2,), "int4")):
        R.func_attr({"output_names": ["p", "q", "r"]})
        with R.dataflow():
            p = R.add(a, a)
            q = R.concat([b, b], axis=1)
            r = R.add(b, b)
            R.output(p, q, r)
        return p, q, r
)");
  const auto refusal = [&](std::vector<StateNames> names) {
    const auto kept = keep_states(module, names);
    if (kept.ok()) return std::string();
    EXPECT_EQ(kept.diagnostics()[0].code.name, "lower-wrong-state");
    return kept.diagnostics()[0].message;
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({{"a", "p"}, {"b", "r"}}), "");
  EXPECT_EQ(refusal({{"z", "p"}}), "there is no input 'z' to keep as a state; the model takes a, b, c, s");
  EXPECT_EQ(refusal({{"*", "z_*"}}),
            "the state 'a' cannot become 'z_a': there is no such output; the model gives p, q, r");
  EXPECT_EQ(refusal({{"a*", "p"}}), "the state 'a*=p' has a '*' on one side alone");
  EXPECT_EQ(refusal({{"a", "p"}, {"b", "p"}}), "'a=p' and 'b=p' are the same state");
  EXPECT_EQ(refusal({{"b", "q"}}),
            "the state 'b' has 3 elements along axis 1 at every call, and cannot become 'q', which has 6; a dimension "
            "with a name may change");
  EXPECT_EQ(refusal({{"b", "p"}}),
            "the state 'b' has 3 elements along axis 1 at every call, and cannot become 'p', which has another number; "
            "a dimension with a name may change");
  EXPECT_EQ(refusal({{"c", "p"}}), "the state 'c' is int32 of 1 dimensions and cannot become 'p', float32 of 2");
  EXPECT_EQ(
      refusal({{"s", "p"}}),
      "the state 's' must be a tensor of known rank, of numbers of whole bytes, and so must 'p', which it becomes");
  const ir::IRModule kept = keep_states(module, {{"a", "p"}}).value_or_throw();
  const auto again = keep_states(kept, {{"b", "r"}});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.diagnostics()[0].message, "the program says already which states it keeps");
  EXPECT_FALSE(keep_states({}, {{"a", "p"}}).ok());
}

}  // namespace
}  // namespace lathe::lower
