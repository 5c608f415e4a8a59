#include "tir/script/numpy_text.h"

#include <gtest/gtest.h>

#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::tir {
namespace {

support::Result<std::string> numpy_of(const std::string& body) {
  const script::Dialect* const dialects[] = {&script_dialect()};
  const std::string text =
      "@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")):\n" + body;
  return numpy_text(script::parse({"f.py", text}, dialects).value_or_throw());
}

std::string function_in(const std::string& text) { return text.substr(text.find("def f(")); }

TEST(numpy_text, says_each_operation_in_its_dtype) {
  const std::string text = function_in(numpy_of(R"(
    for i in T.parallel(1, 8):
        with T.block("B"):
            vi = T.axis.spatial((1, 8), i)
            T.where(i < 7)
            T.reads(A[vi - 1])
            T.writes(B[vi])
            B[vi] = T.max(A[vi - 1] * T.float32(0.5), T.Cast("float32", vi % 3)) + T.rsqrt(A[vi - 1])
)")
                                           .value_or_throw());
  EXPECT_EQ(text, R"(def f(A, B):
    assert A.shape == (8,) and A.dtype == np.float32
    assert B.shape == (8,) and B.dtype == np.float32
    with np.errstate(all="ignore"):
        for i in range(1, 8):  # parallel
            if i < 7:
                vi = i  # block "B"
                B[vi] = np.maximum(A[vi - 1] * np.float32(0.5), cast(vi % 3, np.float32)) + np.float32(1) / np.sqrt(A[vi - 1])
)");
}

TEST(numpy_text, sets_the_initial_value_in_the_first_instance) {
  const std::string text = function_in(numpy_of(R"(
    for i, k in T.grid(4, 2):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi * 2 + vk]
)")
                                           .value_or_throw());
  EXPECT_NE(text.find("                if vk == 0:\n                    B[vi] = np.float32(0.0)\n"), std::string::npos)
      << text;
}

TEST(numpy_text, refuses_what_numpy_has_no_word_for) {
  const auto refusal = [](const std::string& body) {
    const auto result = numpy_of(body);
    return result.ok() ? "accepted: " + *result
                       : std::string(result.diagnostics()[0].code.name) + ": " + result.diagnostics()[0].message;
  };
  EXPECT_EQ(refusal("    T.evaluate(T.call_extern(\"int32\", \"puts\"))\n"),
            "tir-no-numpy: 'puts' is a function outside the program, of which the text knows nothing");
  EXPECT_EQ(refusal("    A[0] = A[T.Cast(\"int64\", T.bool(True) + T.bool(True))]\n"),
            "tir-no-numpy: arithmetic of bools has no form in NumPy");
  EXPECT_EQ(refusal("    T.evaluate(T.tvm_storage_sync(\"shared\"))\n"),
            "tir-no-numpy: threads wait for one another here, which loops over them do not");
  std::string deep, indent = "    ";
  for (int k = 0; k < 20; ++k, indent += " ") deep += indent + "for i" + std::to_string(k) + " in range(1):\n";
  EXPECT_EQ(refusal(deep + indent + "A[0] = B[0]\n"), "tir-no-numpy: Python nests no more than 19 loops");
}

// What no loop goes past stays a number of Python's; what may not fit is brought back to its width.
TEST(numpy_text, wraps_only_what_may_not_fit) {
  const std::string text = function_in(numpy_of(R"(
    for i in range(T.int32(8)):
        for k in range(T.int32(100000)):
            if i * 8 + k < 70:
                A[i] = T.Cast("float32", i * k * k)
)")
                                           .value_or_throw());
  EXPECT_NE(text.find("if i * 8 + k < 70:"), std::string::npos) << text;
  EXPECT_NE(text.find("A[i] = cast(wrap(i * k * k, np.int32), np.float32)"), std::string::npos) << text;
}

}  // namespace
}  // namespace lathe::tir
