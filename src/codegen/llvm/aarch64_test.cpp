// AArch64 output, run by qemu-user: a library made here, opened by a small C program built with the cross compiler.
// Results are compared with those of this machine's code.
#include <gtest/gtest.h>

#include "abi/artifact.h"
#include "codegen/llvm/link.h"
#include "codegen/llvm/run_kernel_test.h"
#include "tir/interpret/interpret.h"
#include "tir/intrinsics/library.h"
#include "tir/passes/passes.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT
namespace fs = std::filesystem;

constexpr int64_t count = 1000;

// B = tanh(A) * 2 + exp(A) in float32 through bfloat16 and float16, in parallel, with a masked tail.
Kernel mixed() {
  const DType f = DType::float_(32, 8);
  const Buffer a = buffer("A", {int64(count)}, DType::float32()), b = buffer("B", {int64(count)}, DType::float32());
  const Var i = var("i");
  const Expr at = make<Ramp>(Expr(i * 8), int64(1), int64_t{8});
  const Expr inside = at < constant(at->dtype, count - 3);
  const Expr x = make<BufferLoad>(a, std::vector<Expr>{at}, inside);
  const Expr y =
      call(intrinsic::tanh, x) * constant(f, 2.0) + call(intrinsic::exp, cast(f, cast(DType::bfloat16(8), x)));
  const Expr z = y + cast(f, cast(DType::float_(16, 8), x));
  return {"mixed", prim_func({a, b}, make<For>(i, int64(0), int64(count / 8), ForKind::parallel,
                                               Stmt(make<BufferStore>(b, z, std::vector<Expr>{at}, inside))))};
}

// Opens the library, fills A with i / 64 - 7, prints B's values in hexadecimal, a line each.
constexpr const char* program = R"(
#include <dlfcn.h>
#include <stdio.h>
#include "abi/artifact.h"
static int32_t all(void* s, LatheParallelBody body, void* c, int64_t n, int64_t g) { (void)s; (void)g; body(c, 0, n / 2); body(c, n / 2, n); return 0; }
int main(int argc, char** argv) {
  static float a[1000], b[1000];
  LatheServices services = {LATHE_SERVICES_VERSION, sizeof(LatheServices), all, 0, 0, 0, 0, 0, 0, 0};
  void* buffers[] = {a, b};
  void* library = dlopen(argv[argc - 1], RTLD_NOW);
  if (!library) return puts(dlerror()), 2;
  const LatheArtifact* artifact = dlsym(library, "lathe_artifact_v1");
  for (int i = 0; i < 1000; ++i) a[i] = (float)i / 64 - 7, b[i] = -1;
  if (artifact->kernels[0](&services, 0, buffers, 0) != 0) return 3;
  for (int i = 0; i < 1000; ++i) printf("%a\n", (double)b[i]);
  return 0;
}
)";

TEST(aarch64, runs_under_qemu_and_agrees) {
  if (std::system("command -v qemu-aarch64 aarch64-linux-gnu-gcc > /dev/null") != 0)
    GTEST_SKIP() << "no qemu-user or cross compiler here";
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("lathe_aarch64_{}", ::getpid());
  fs::create_directories(folder);
  const std::string at = folder.string(),
                    source = fs::path(__FILE__).parent_path().parent_path().parent_path().string();
  const CompiledKernels compiled =
      compile_kernels({mixed()}, target::parse_target("aarch64-linux-gnu").value_or_throw()).value_or_throw();
  const ArtifactContents contents{.kernels = &compiled,
                                  .program = "none",
                                  .metadata = {},
                                  .weights = {},
                                  .weights_bytes = 0,
                                  .weights_file = {},
                                  .runtime_kernels = {}};
  link_artifact(contents, {}, at + "/model.so").value_or_throw();
  std::ofstream(at + "/main.c") << program;
  ASSERT_EQ(std::system(fmt::format("aarch64-linux-gnu-gcc -I {0} -o {1}/main {1}/main.c -ldl", source, at).c_str()),
            0);
  ASSERT_EQ(std::system(
                fmt::format("qemu-aarch64 -L /usr/aarch64-linux-gnu {0}/main {0}/model.so > {0}/out.txt", at).c_str()),
            0);

  std::vector<float> a(count), b(count, -1.0f);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i) / 64 - 7;
  EXPECT_EQ(test::call(test::load({mixed()}), 0, {a.data(), b.data()}), 0);
  std::ifstream out(at + "/out.txt");
  size_t read = 0;
  for (std::string line; std::getline(out, line); ++read) {
    const double there = std::strtod(line.c_str(), nullptr), here = static_cast<double>(b.at(read));
    ASSERT_NEAR(there, here, 1e-6 * (1 + std::fabs(here))) << read;
  }
  EXPECT_EQ(read, static_cast<size_t>(count));
  EXPECT_EQ(b[count - 1], -1.0f);
  fs::remove_all(folder);
}

// Opens the library, fills A, B and C with bytes that go up and wrap, prints C's four values.
constexpr const char* dot_program = R"(
#include <dlfcn.h>
#include <stdio.h>
#include "abi/artifact.h"
int main(int argc, char** argv) {
  static unsigned char a[4], b[16];
  static int c[4];
  LatheServices services = {LATHE_SERVICES_VERSION, sizeof(LatheServices), 0, 0, 0, 0, 0, 0, 0, 0};
  void* buffers[] = {a, b, c};
  void* library = dlopen(argv[argc - 1], RTLD_NOW);
  if (!library) return puts(dlerror()), 2;
  const LatheArtifact* artifact = dlsym(library, "lathe_artifact_v1");
  for (uint64_t k = 0; k < artifact->kernel_count; ++k) {
    for (int i = 0; i < 4; ++i) a[i] = (unsigned char)(77 * i + 200), c[i] = 1000 * i - 7;
    for (int i = 0; i < 16; ++i) b[i] = (unsigned char)(91 * i + 3);
    if (artifact->kernels[k](&services, 0, buffers, 0) != 0) return 3;
    for (int i = 0; i < 4; ++i) printf("%d\n", c[i]);
  }
  return 0;
}
)";

TEST(aarch64, dot_products_under_qemu_are_what_they_describe) {
  if (std::system("command -v qemu-aarch64 aarch64-linux-gnu-gcc > /dev/null") != 0)
    GTEST_SKIP() << "no qemu-user or cross compiler here";
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("lathe_aarch64_dot_{}", ::getpid());
  fs::create_directories(folder);
  const std::string at = folder.string(),
                    source = fs::path(__FILE__).parent_path().parent_path().parent_path().string();
  const auto target = target::parse_target("aarch64-linux-gnu -mattr=+dotprod").value_or_throw();
  const std::vector<std::string> names = offered_intrins(target);
  ASSERT_EQ(names, (std::vector<std::string>{"dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8u32_udot"}));
  std::vector<Kernel> kernels;
  std::vector<int64_t> expected;
  for (const std::string& name : names) {
    const TensorIntrin intrin = *library_intrin(name);
    IRModule module;
    module.set(name, intrin.implementation);
    for (const auto pass : {lower_init, convert_blocks, flatten_buffers})
      module = pass(std::move(module), {}).value_or_throw();
    kernels.push_back({name, module.find_as<PrimFunc>(name)});
    std::vector<TensorBuffer> data;
    for (const auto& [handle, buffer] : intrin.description->buffer_map) {
      std::vector<int64_t> shape;
      for (const Expr& extent : buffer->shape) shape.push_back(*as_int(extent));
      data.push_back(TensorBuffer::zeros(buffer->dtype, shape));
    }
    for (int64_t i = 0; i < 4; ++i) {
      data[0].bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(77 * i + 200);
      data[2].set_int(i, 1000 * i - 7);
    }
    for (int64_t i = 0; i < 16; ++i) data[1].bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(91 * i + 3);
    ASSERT_TRUE(interpret(intrin.description, data).ok());
    for (int64_t i = 0; i < 4; ++i) expected.push_back(static_cast<int32_t>(data[2].int_at(i)));
  }
  const CompiledKernels compiled = compile_kernels(kernels, target).value_or_throw();
  const ArtifactContents contents{.kernels = &compiled,
                                  .program = "none",
                                  .metadata = {},
                                  .weights = {},
                                  .weights_bytes = 0,
                                  .weights_file = {},
                                  .runtime_kernels = {}};
  link_artifact(contents, {}, at + "/model.so").value_or_throw();
  std::ofstream(at + "/main.c") << dot_program;
  ASSERT_EQ(std::system(fmt::format("aarch64-linux-gnu-gcc -I {0} -o {1}/main {1}/main.c -ldl", source, at).c_str()),
            0);
  ASSERT_EQ(std::system(fmt::format("qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu {0}/main {0}/model.so > "
                                    "{0}/out.txt",
                                    at)
                            .c_str()),
            0);
  std::ifstream out(at + "/out.txt");
  for (const int64_t value : expected) {
    int64_t found = 0;
    ASSERT_TRUE(out >> found);
    EXPECT_EQ(found, value);
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace lathe::codegen
