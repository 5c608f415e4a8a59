#include "script/parse.h"
#include "tir/script/dialect.h"
#include "tir/testing/run.h"
#include "tir/verify.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(inline_calls, makes_of_programs_what_its_text_expects) { expect_text(inline_calls, __FILE__); }

IRModule module_of(const std::string& text) {
  const script::Dialect* const dialects[] = {&script_dialect()};
  return script::parse({"f.py", text}, dialects).value_or_throw();
}

// Every program of 14 doublings would be fine; this one has 2^40 statements.
TEST(inline_calls, refuses_calls_that_multiply) {
  std::string text =
      "@I.ir_module\nclass M:\n    @T.prim_func\n    def f0(A: T.Buffer((4,), \"float32\")):\n"
      "        A[0] = A[0] + T.float32(1)\n";
  for (int k = 1; k <= 40; ++k)
    text += fmt::format(
        "    @T.prim_func\n    def f{}(A: T.Buffer((4,), \"float32\")):\n        cls.f{}(A)\n"
        "        cls.f{}(A)\n",
        k, k - 1, k - 1);
  const auto result = inline_calls(module_of(text), {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(std::string(result.diagnostics()[0].code.name), "tir-wrong-call");
  EXPECT_NE(result.diagnostics()[0].message.find("more than 10000 calls"), std::string::npos);
}

TEST(inline_calls, the_interpreter_says_what_a_call_may_not_be) {
  const IRModule module = module_of(
      "@I.ir_module\nclass M:\n"
      "    @T.prim_func\n    def f(a: T.handle):\n        n = T.int64()\n"
      "        A = T.match_buffer(a, (n,), \"float32\")\n        for i in range(n):\n            A[i] = T.float32(2)\n"
      "    @T.prim_func\n    def g(A: T.Buffer((8,), \"float32\")):\n        A[0] = T.float32(1)\n"
      "    @T.prim_func\n    def small(A: T.Buffer((4,), \"float32\")):\n        cls.g(A)\n"
      "    @T.prim_func\n    def tail(A: T.Buffer((4,), \"float32\")):\n        cls.f(T.address_of(A[3]))\n");
  const auto run_function = [&](const char* name, const IRModule* functions) {
    std::vector<TensorBuffer> args{TensorBuffer::zeros(DType::float32(), {4})};
    const auto status = interpret(module.find_as<PrimFunc>(name), args, {}, {.module = functions});
    return std::pair(status.ok() ? "" : std::string(status.diagnostics()[0].code.name), args[0].float_at(3));
  };
  EXPECT_EQ(run_function("tail", &module), std::pair(std::string(), 2.0));
  EXPECT_EQ(run_function("small", &module).first, "tir-assertion-failed");
  EXPECT_EQ(run_function("small", nullptr).first, "tir-wrong-call") << "no module to find functions in";
}

// What parses and is no call.
TEST(inline_calls, wrong_calls_are_refused_where_they_stand) {
  const std::string head =
      "@I.ir_module\nclass M:\n"
      "    @T.prim_func\n    def f(A: T.Buffer((4,), \"float32\"), n: T.int64):\n"
      "        A[n] = T.float32(1)\n"
      "    @T.prim_func\n    def r(A: T.Buffer((4,), \"float32\")):\n        T.evaluate(T.ret(0))\n"
      "    @T.prim_func\n    def raw(a: T.handle):\n        T.evaluate(0)\n"
      "    @T.prim_func\n    def main(A: T.Buffer((4,), \"float32\"), I: T.Buffer((4,), \"int32\")):\n";
  const std::pair<const char*, const char*> cases[] = {
      {"cls.f(A)", "'f' takes 2 arguments, not 1"},
      {"cls.f(A, A)", "argument 1 of 'f', 'n', is handle, not int64"},
      {"cls.f(A, I[0])", "argument 1 of 'f', 'n', is int32, not int64"},
      {"cls.f(3, 3)", "argument 0 of 'f', 'A', is a buffer, not a value of int32"},
      {"cls.f(I, 3)", "argument 0 of 'f', 'A', is a buffer of float32, not of int32"},
      {"I[0] = cls.r(A, dtype=\"int32\")",
       "'r' gives no value: its results are what it stores, and a call of it is a statement"},
      {"cls.r(A)", "'r' leaves by T.ret, so other functions do not call it"},
      {"cls.raw(A)", "argument 0 of 'raw', 'a', is an address that no buffer is matched with"},
      {"cls.main(A, I)", "'main' calls 'main', which calls 'main': functions do not call themselves"},
  };
  for (const auto& [statement, message] : cases) {
    const support::Diagnostics found = verify_module(module_of(head + "        " + statement + "\n"), {});
    ASSERT_FALSE(found.empty()) << statement;
    EXPECT_EQ(found[0].message, message) << statement;
    EXPECT_EQ(std::string(found[0].code.name), "tir-wrong-call");
    EXPECT_NE(support::render(found).find("f.py:14"), std::string::npos) << support::render(found);
  }
}

}  // namespace
}  // namespace lathe::tir
