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
    with np.errstate(all="ignore"):
        for i in range(1, 8):  # parallel
            if i < 7:
                vi = i  # block "B"
                B[vi] = np.maximum(A[vi - 1] * np.float32(0.5), cast(vi % 3, np.float32)) + np.float32(1.0) / np.sqrt(A[vi - 1])
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
  EXPECT_EQ(refusal("    A[0] = T.Cast(\"float32\", T.bfloat16(1))\n"), "tir-no-numpy: NumPy has no bfloat16");
  EXPECT_EQ(refusal("    A[T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(1), 4)\n"),
            "tir-no-numpy: vectors have no form in NumPy");
  EXPECT_EQ(refusal("    p = T.allocate([8], \"float32\", \"global\")\n    q = T.Buffer((8,), data=p)\n    q[0] = "
                    "T.float32(1)\n"),
            "tir-no-numpy: the memory of 'p' is laid out already");
  EXPECT_EQ(refusal("    T.evaluate(T.call_extern(\"int32\", \"puts\"))\n"),
            "tir-no-numpy: a call of 'call_extern' has no form in NumPy");
  EXPECT_EQ(refusal("    for i in T.thread_binding(8, thread=\"threadIdx.x\"):\n        A[i] = B[i]\n"),
            "tir-no-numpy: loop 'i' runs on a device's threads");
}

}  // namespace
}  // namespace lathe::tir
