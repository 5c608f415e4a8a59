#include "tir/analysis/verify_memory.h"

#include <gtest/gtest.h>

#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::tir {
namespace {

bool is_legal(const std::string& body, const std::string& attributes = R"({"target": "cuda"})") {
  const script::Dialect* dialects[] = {&script_dialect()};
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr()" + attributes +
                           ")\n" + body;
  return verify_memory(*ir::cast<PrimFunc>(NodeRef(script::parse_function({"test", text}, dialects).value_or_throw())));
}

const char* const on_the_host = R"(
    for i in range(8):
        B[i] = A[i]
)";

TEST(verify_memory, asks_for_threads_around_accesses) {
  EXPECT_FALSE(is_legal(on_the_host));
  EXPECT_TRUE(is_legal(R"(
    for i in T.thread_binding(8, thread="threadIdx.x"):
        B[i] = A[i]
)"));
  EXPECT_FALSE(is_legal(R"(
    for i in T.thread_binding(8, thread="vthread.x"):
        B[i] = A[i]
)"));
}

TEST(verify_memory, leaves_processors_and_kernels_alone) {
  EXPECT_TRUE(is_legal(on_the_host, R"({"target": "llvm"})"));
  EXPECT_TRUE(is_legal(on_the_host, R"({"global_symbol": "main"})"));
  EXPECT_TRUE(is_legal(on_the_host, R"({"target": "cuda", "calling_conv": 2})"));
}

TEST(has_device_memory, reads_the_kind_of_a_target) {
  for (const char* target : {"cuda", "cuda -arch=sm_80", R"({"arch": "sm_80", "kind": "cuda"})", "vulkan", "webgpu"})
    EXPECT_TRUE(has_device_memory(target)) << target;
  for (const char* target : {"llvm", "llvm -device=cuda", "null", "interp", "", "{\"kind\"", R"({"kind": "llvm"})"})
    EXPECT_FALSE(has_device_memory(target)) << target;
  EXPECT_TRUE(has_device_memory(Value(Value::Map{{"kind", Value("rocm")}})));
  EXPECT_FALSE(has_device_memory(Value(int64_t{2})));
}

}  // namespace
}  // namespace lathe::tir
