// Single expressions with the values of their names, and texts with a host language around them.
#include "script/evaluate.h"

#include <gtest/gtest.h>

#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::script {
namespace {

using ir::DType;
using ir::Value;

TEST(Evaluate, reads_the_vocabulary_with_given_values) {
  const ir::Var x = ir::var("x", DType::float32());
  const Value v = evaluate({"<T>", "T.exp(_0) + 1"}, {{"_0", Value(x)}}).value_or_throw();
  const ir::Expr wanted = ir::make<ir::Add>(ir::call(ir::intrinsic::exp, x), ir::constant(DType::float32(), 1));
  EXPECT_TRUE(ir::structural_equal(*v.get<ir::NodeRef>(), wanted));
  EXPECT_EQ(*evaluate({"<T>", "2 ** 10"}, {}).value_or_throw().get<int64_t>(), 1024);
}

TEST(Evaluate, refuses_what_has_no_meaning) {
  EXPECT_EQ(evaluate({"<T>", "T.no_such(1)"}, {}).diagnostics()[0].code.name, "script-unknown-function");
  EXPECT_EQ(evaluate({"<T>", "x"}, {}).diagnostics()[0].code.name, "script-unknown-name");
}

// A host that knows one number and doubles what it is given.
class Doubling : public HostLanguage {
 public:
  std::optional<Value> captured(std::string_view name) override {
    if (name == "size") return Value(6);
    if (name == "twice") return Value();
    return std::nullopt;
  }
  support::Result<Value> evaluate(const HostRequest& request) override {
    texts.emplace_back(request.text);
    const auto it = request.names.find("i");
    if (it == request.names.end()) return support::Diagnostic{.code = {"script-host"}, .message = "nothing to double"};
    const ir::Expr i = ir::detail::narrow<ir::ExprNode>(*it->second.get<ir::NodeRef>());
    return Value(i + i);
  }
  std::vector<std::string> texts;
};

ir::IRModule parse_with(const std::string& text, Doubling& host) {
  ParseOptions options;
  options.host = &host;
  options.aliases["prog"] = "tir";
  options.indented = true;
  const Dialect* dialects[] = {&tir::script_dialect()};
  return parse({"user.py", text}, dialects, options).value_or_throw();
}

TEST(Host, values_calls_and_aliases_come_from_around_the_text) {
  Doubling host;
  const ir::IRModule module = parse_with(
      "\n\n    @prog.prim_func\n    def f(A: prog.Buffer((size,), 'int64')):\n        for i in prog.serial(size):\n"
      "            A[i] = twice(i)\n",
      host);
  const auto f = module.find_as<tir::PrimFunc>("f");
  ASSERT_TRUE(f);
  EXPECT_TRUE(ir::is_int(f->buffer_map[0].second->shape[0], 6));
  EXPECT_EQ(host.texts, std::vector<std::string>{"twice(i)"});
}

TEST(Host, a_line_less_deep_than_the_first_is_refused) {
  Doubling host;
  try {
    parse_with("    @T.prim_func\n    def f(A: T.Buffer((4,), 'int64')):\n        A[0] = 1\n  x = 1\n", host);
    FAIL() << "accepted";
  } catch (const support::DiagnosticError& error) {
    EXPECT_EQ(error.diagnostics[0].code.name, "script-syntax");
  }
}

}  // namespace
}  // namespace lathe::script
