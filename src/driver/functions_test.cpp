// Tensor functions compiled and called one by one.
#include "driver/functions.h"

#include <gtest/gtest.h>

#include "ir/formats/dlpack_type.h"
#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::driver {
namespace {

BuiltFunctionsRef build_text(const std::string& text) {
  const script::Dialect* dialects[] = {&tir::script_dialect()};
  CompileOptions options;
  options.target = target::native_target();
  return BuiltFunctions::build(script::parse({"test.py", text}, dialects).value_or_throw(), options).value_or_throw();
}

// A compact tensor over a vector.
struct FloatTensor {
  std::vector<float> data;
  std::vector<int64_t> shape, strides;
  DLTensor tensor{};
  FloatTensor(std::vector<int64_t> dims, float value) : shape(std::move(dims)) {
    int64_t count = 1;
    for (const int64_t d : shape) count *= d;
    data.assign(static_cast<size_t>(count), value);
    tensor.data = data.data();
    tensor.device = {kDLCPU, 0};
    tensor.dtype = ir::dlpack_type(ir::DType::float32());
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.shape = shape.data();
  }
  FloatTensor(const FloatTensor&) = delete;
};

constexpr const char* scale_text = R"(
@T.prim_func
def scale(a: T.handle, by: T.float32, b: T.handle, times: T.int8):
    n = T.int64()
    A = T.match_buffer(a, (n, 2), "float32")
    B = T.match_buffer(b, (n, 2), "float32")
    for i, j in T.grid(n, 2):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * by * T.cast(times, "float32")
)";

std::string refusal_of_call(const BuiltFunctionsRef& built, const std::vector<Argument>& arguments) {
  const support::Status status = built->call("scale", arguments);
  return status.ok() ? "" : std::string(status.diagnostics()[0].code.name);
}

TEST(BuiltFunctions, scalars_of_every_type_stand_anywhere) {
  const BuiltFunctionsRef built = build_text(scale_text);
  FloatTensor a({3, 2}, 1.5F), b({3, 2}, 0);
  ASSERT_TRUE(built->call("scale", {&a.tensor, 2.0, &b.tensor, int64_t{-3}}).ok());
  EXPECT_EQ(b.data, std::vector<float>(6, -9.0F));
}

TEST(BuiltFunctions, arguments_are_checked) {
  const BuiltFunctionsRef built = build_text(scale_text);
  FloatTensor a({3, 2}, 1), b({3, 2}, 0), longer({4, 2}, 0), flat({6}, 0), bits({3, 2}, 0), far({3, 2}, 0);
  bits.tensor.dtype = ir::dlpack_type(ir::DType::int32());
  far.tensor.device = {kDLCUDA, 0};
  a.strides = {1, 3};
  EXPECT_EQ(refusal_of_call(built, {&a.tensor, 2.0, &b.tensor}), "runtime-input-count");
  EXPECT_EQ(refusal_of_call(built, {&a.tensor, &b.tensor, &b.tensor, int64_t{1}}), "runtime-input-kind");
  EXPECT_EQ(refusal_of_call(built, {1.0, 2.0, &b.tensor, int64_t{1}}), "runtime-input-kind");
  EXPECT_EQ(refusal_of_call(built, {&a.tensor, 2.0, &b.tensor, int64_t{1000}}), "runtime-input-kind");
  EXPECT_EQ(refusal_of_call(built, {&a.tensor, 2.0, &longer.tensor, int64_t{1}}), "runtime-input-shape");
  EXPECT_EQ(refusal_of_call(built, {&flat.tensor, 2.0, &b.tensor, int64_t{1}}), "runtime-input-shape");
  EXPECT_EQ(refusal_of_call(built, {&bits.tensor, 2.0, &b.tensor, int64_t{1}}), "runtime-input-dtype");
  EXPECT_EQ(refusal_of_call(built, {&far.tensor, 2.0, &b.tensor, int64_t{1}}), "runtime-input-device");
  EXPECT_EQ(refusal_of_call(built, {&b.tensor, 2.0, &b.tensor, int64_t{1}}), "runtime-input-overlap");
  a.tensor.strides = a.strides.data();
  EXPECT_EQ(refusal_of_call(built, {&a.tensor, 2.0, &b.tensor, int64_t{1}}), "runtime-input-strides");
  EXPECT_EQ(built->call("other", {}).diagnostics()[0].code.name, "runtime-input-name");
}

TEST(BuiltFunctions, a_saved_library_does_the_same) {
  const BuiltFunctionsRef built = build_text(scale_text);
  const std::string path = testing::TempDir() + "/scale.so";
  ASSERT_TRUE(built->save(path).ok());
  const BuiltFunctionsRef opened = BuiltFunctions::open(path).value_or_throw();
  FloatTensor a({5, 2}, 0.5F), b({5, 2}, 0);
  ASSERT_TRUE(opened->call("scale", {&a.tensor, 4.0, &b.tensor, int64_t{2}}).ok());
  EXPECT_EQ(b.data, std::vector<float>(10, 4.0F));
  EXPECT_EQ(refusal_of_call(opened, {&b.tensor, 2.0, &b.tensor, int64_t{1}}), "runtime-input-overlap");
  EXPECT_EQ(BuiltFunctions::open(path + ".none").diagnostics()[0].code.name, "runtime-cannot-open");
  EXPECT_EQ(opened->save(path).diagnostics()[0].code.name, "driver-no-code");
}

TEST(BuiltFunctions, an_assertion_stops_the_call) {
  const BuiltFunctionsRef built = build_text(R"(
@T.prim_func
def scale(A: T.Buffer((2,), "float32"), n: T.int64):
    assert n < 4, "n must be below four"
    A[0] = T.float32(1)
)");
  FloatTensor a({2}, 0);
  ASSERT_TRUE(built->call("scale", {&a.tensor, int64_t{3}}).ok());
  const support::Status stopped = built->call("scale", {&a.tensor, int64_t{4}});
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.diagnostics()[0].code.name, "runtime-failed");
  EXPECT_NE(stopped.diagnostics()[0].message.find("n must be below four"), std::string::npos);
}

TEST(BuiltFunctions, times_and_sources) {
  const BuiltFunctionsRef built = build_text(scale_text);
  FloatTensor a({3, 2}, 1), b({3, 2}, 0);
  const std::vector<Argument> arguments{&a.tensor, 2.0, &b.tensor, int64_t{1}};
  const auto seconds = built->time("scale", arguments, {.number = 2, .repeat = 3, .threads = 1});
  ASSERT_TRUE(seconds.ok());
  EXPECT_EQ(seconds->size(), 3u);
  EXPECT_NE(built->source("ll").value_or_throw().find("define"), std::string::npos);
  EXPECT_NE(built->source("asm").value_or_throw().find(".text"), std::string::npos);
  EXPECT_EQ(built->source("c").diagnostics()[0].code.name, "driver-unknown-form");
}

TEST(BuiltFunctions, the_interpreter_runs_what_other_devices_would) {
  const script::Dialect* dialects[] = {&tir::script_dialect()};
  CompileOptions options;
  options.target = target::parse_target("interp").value_or_throw();
  const ir::IRModule module = script::parse({"test.py", scale_text}, dialects).value_or_throw();
  const BuiltFunctionsRef built = BuiltFunctions::build(module, options).value_or_throw();
  FloatTensor a({3, 2}, 1.5F), b({3, 2}, 0);
  ASSERT_TRUE(built->call("scale", {&a.tensor, 2.0, &b.tensor, int64_t{-3}}).ok());
  EXPECT_EQ(b.data, std::vector<float>(6, -9.0F));
  EXPECT_EQ(built->source("ll").diagnostics()[0].code.name, "driver-no-code");
  EXPECT_EQ(built->save("scale.so").diagnostics()[0].code.name, "driver-no-code");
}

TEST(BuiltFunctions, a_module_without_tensor_functions_is_refused) {
  CompileOptions options;
  options.target = target::native_target();
  EXPECT_EQ(BuiltFunctions::build({}, options).diagnostics()[0].code.name, "driver-not-tensor-functions");
}

}  // namespace
}  // namespace lathe::driver
