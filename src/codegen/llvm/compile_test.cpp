#include "codegen/llvm/compile.h"

#include <gtest/gtest.h>

#include "codegen/llvm/run_kernel_test.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT
namespace fs = std::filesystem;

Kernel offset_kernel(const std::string& name, double offset) {
  const Buffer a = buffer("A", {int64(64)}, DType::float32()), b = buffer("B", {int64(64)}, DType::float32());
  const Var i = var("i");
  const Expr at = make<Ramp>(Expr(i * 16), int64(1), int64_t{16});
  const Stmt body =
      make<For>(i, int64(0), int64(4), ForKind::parallel,
                Stmt(make<BufferStore>(b, call(intrinsic::exp, load(a, {at})) + constant(DType::float_(32, 16), offset),
                                       std::vector<Expr>{at})));
  return {name, prim_func({a, b}, body, {}, {{"global_symbol", name}})};
}

std::vector<Kernel> some_kernels() {
  std::vector<Kernel> kernels;
  for (int k = 0; k < 12; ++k) kernels.push_back(offset_kernel(fmt::format("k{}", k), k % 5));
  return kernels;
}

void expect_same(const CompiledKernels& a, const CompiledKernels& b) {
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (size_t k = 0; k < a.kernels.size(); ++k) {
    EXPECT_EQ(a.kernels[k].symbol, b.kernels[k].symbol);
    EXPECT_TRUE(*a.kernels[k].object == *b.kernels[k].object) << a.kernels[k].name;
  }
}

TEST(compile_kernels, gives_the_same_bytes_on_any_number_of_threads) {
  const CompiledKernels one = compile_kernels(some_kernels(), test::native(), {.threads = 1}).value_or_throw();
  expect_same(one, compile_kernels(some_kernels(), test::native(), {.threads = 1}).value_or_throw());
  expect_same(one, compile_kernels(some_kernels(), test::native(), {.threads = 4}).value_or_throw());
}

TEST(compile_kernels, shares_the_code_of_equal_kernels) {
  const CompiledKernels compiled = compile_kernels(some_kernels(), test::native()).value_or_throw();
  EXPECT_EQ(compiled.kernels[0].object.get(), compiled.kernels[5].object.get());
  EXPECT_NE(compiled.kernels[0].symbol, compiled.kernels[1].symbol);
  EXPECT_EQ(compiled.kernels[7].name, "k7");
}

// Kernel k computes offset k; the one in the middle does it a hundred times as often.
std::vector<Kernel> many_kernels(int count) {
  std::vector<Kernel> kernels;
  for (int k = 0; k < count; ++k) {
    kernels.push_back(offset_kernel(fmt::format("k{}", k), k));
    if (k != count / 2) continue;
    const Var again = var("again");
    kernels.back().function = with(*kernels.back().function, [&](PrimFunc& f) {
      f.body = make<For>(again, int64(0), int64(100), ForKind::serial, f.body);
    });
  }
  return kernels;
}

TEST(compile_kernels, of_many_those_that_do_least_are_made_quickly_together) {
  const std::vector<Kernel> kernels = many_kernels(70);
  const CompileOptions options{.threads = 1, .most_full = 2};
  const CompiledKernels compiled = compile_kernels(kernels, test::native(), options).value_or_throw();
  std::map<const std::string*, int> kernels_of;
  for (const CompiledKernel& kernel : compiled.kernels) ++kernels_of[kernel.object.get()];
  const auto is_full = [&](size_t k) { return compiled.kernels[k].symbol.starts_with("lathe_kernel_"); };
  for (size_t k = 0; k < kernels.size(); ++k) {
    EXPECT_EQ(is_full(k), k == 35 || k == 0) << k;  // of equal work, the first
    if (is_full(k)) EXPECT_EQ(kernels_of[compiled.kernels[k].object.get()], 1);
  }
  EXPECT_EQ(kernels_of.size(), 2u + 9u);  // 68 by eight
  expect_same(compiled, compile_kernels(kernels, test::native(), {.threads = 3, .most_full = 2}).value_or_throw());

  const auto loaded = load_kernels(compiled).value_or_throw();
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::vector<float> a(64, 0.0f), b(64, -1.0f);
    ASSERT_EQ(test::call(loaded, k, {a.data(), b.data()}), 0);
    for (const float x : b) ASSERT_EQ(x, static_cast<float>(k) + 1.0f) << k;
  }
}

TEST(compile_kernels, what_names_instructions_is_never_made_quickly) {
  const Buffer a = buffer("A", {int64(1)}, DType::float32());
  const Expr root =
      call(DType::float32(), intrinsic::call_llvm_pure_intrin, {make<StringImm>("llvm.sqrt"), load(a, {int64(0)})});
  const Kernel named{"named", prim_func({a}, make<BufferStore>(a, root, std::vector<Expr>{int64(0)}))};
  const CompiledKernels compiled =
      compile_kernels({named, offset_kernel("plain", 1)}, test::native(), {.most_full = 0}).value_or_throw();
  EXPECT_TRUE(compiled.kernels[0].symbol.starts_with("lathe_kernel_"));
  EXPECT_TRUE(compiled.kernels[1].symbol.starts_with("lathe_brief_kernel_"));
}

TEST(compile_kernels, refuses_every_illegal_kernel_at_once) {
  Kernel bad = offset_kernel("bad", 1), worse = offset_kernel("worse", 2);
  for (Kernel* k : {&bad, &worse}) k->function = with(*k->function, [](PrimFunc& f) { f.body = root_block(f.body); });
  const auto refused = compile_kernels({bad, worse}, test::native());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().size(), 2u);
  EXPECT_EQ(refused.diagnostics()[0].code.name, "codegen-illegal-kernel");
}

TEST(compile_kernels, stops_between_kernels_when_the_user_does) {
  int asked = 0;
  CompileOptions options{.threads = 1};
  options.cancelled = [&] { return ++asked > 1; };
  const auto stopped = compile_kernels(some_kernels(), test::native(), options);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.diagnostics()[0].code.name, "ir-cancelled");
  EXPECT_EQ(asked, 2);
}

TEST(compile_kernels, refuses_a_triple_without_code_generator) {
  target::Target strange = test::native();
  strange.triple = "pdp11-unknown-unix";
  const auto refused = compile_kernels(some_kernels(), strange);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, "codegen-unsupported-target");
}

class Cache : public testing::Test {
 protected:
  void SetUp() override { folder = fs::path(testing::TempDir()) / fmt::format("lathe_cache_{}", ::getpid()); }
  void TearDown() override { fs::remove_all(folder); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }
  fs::path folder;
};

int hits(const CompiledKernels& compiled) {
  return static_cast<int>(
      std::count_if(compiled.kernels.begin(), compiled.kernels.end(), [](const auto& k) { return k.from_cache; }));
}

TEST_F(Cache, keeps_objects_across_processes) {
  KernelCache first(folder), second(folder);
  const CompiledKernels fresh = compile_kernels(some_kernels(), test::native(), {.cache = &first}).value_or_throw();
  EXPECT_EQ(hits(fresh), 0);
  EXPECT_EQ(files().size(), 5u);
  const CompiledKernels again = compile_kernels(some_kernels(), test::native(), {.cache = &second}).value_or_throw();
  EXPECT_EQ(hits(again), 12);
  expect_same(fresh, again);
  EXPECT_EQ(hits(compile_kernels(some_kernels(), target::parse_target("x86-64-v2").value_or_throw(), {.cache = &second})
                     .value_or_throw()),
            0)
      << "another target found this one's code";
}

TEST_F(Cache, keeps_what_is_made_quickly_apart) {
  KernelCache cache(folder);
  const auto compiled = [&](size_t most_full) {
    return compile_kernels(some_kernels(), test::native(), {.cache = &cache, .most_full = most_full}).value_or_throw();
  };
  EXPECT_EQ(hits(compiled(0)), 0);
  EXPECT_EQ(files().size(), 1u);
  EXPECT_EQ(hits(compiled(5)), 0) << "code that was made quickly is no replacement";
  EXPECT_EQ(hits(compiled(0)), 12);
}

TEST_F(Cache, drops_damaged_entries) {
  KernelCache first(folder);
  const CompiledKernels fresh = compile_kernels(some_kernels(), test::native(), {.cache = &first}).value_or_throw();
  int turn = 0;
  for (const fs::path& file : files()) {
    if (turn++ % 2)
      fs::resize_file(file, fs::file_size(file) / 2);
    else
      std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
          .seekp(static_cast<std::streamoff>(fs::file_size(file) / 2))
          .put('~');
  }
  KernelCache second(folder);
  const CompiledKernels again = compile_kernels(some_kernels(), test::native(), {.cache = &second}).value_or_throw();
  EXPECT_EQ(hits(again), 0);
  expect_same(fresh, again);
  KernelCache third(folder);
  EXPECT_EQ(hits(compile_kernels(some_kernels(), test::native(), {.cache = &third}).value_or_throw()), 12)
      << "a damaged entry stayed";
}

TEST_F(Cache, many_writers_do_not_disturb_each_other) {
  std::vector<std::thread> writers;
  const CompiledKernels wanted = compile_kernels(some_kernels(), test::native()).value_or_throw();
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&] {
      KernelCache mine(folder);
      expect_same(compile_kernels(some_kernels(), test::native(), {.cache = &mine}).value_or_throw(), wanted);
    });
  for (std::thread& w : writers) w.join();
  EXPECT_EQ(files().size(), 5u) << "a partial file is left";
}

TEST_F(Cache, works_where_the_folder_cannot_be_written) {
  KernelCache nowhere("/proc/lathe_no_such_folder");
  EXPECT_TRUE(compile_kernels(some_kernels(), test::native(), {.cache = &nowhere}).ok());
  EXPECT_EQ(hits(compile_kernels(some_kernels(), test::native(), {.cache = &nowhere}).value_or_throw()), 12)
      << "memory holds them";
}

TEST(emit_llvm, prints_ir_and_assembly_of_all_kernels) {
  const std::vector<Kernel> kernels = {offset_kernel("first", 1), offset_kernel("second", 2)};
  const std::string text = emit_llvm(kernels, test::native(), {.kind = EmitKind::llvm_ir}).value_or_throw();
  EXPECT_NE(text.find("@first("), std::string::npos);
  EXPECT_NE(text.find("@second("), std::string::npos);
  EXPECT_EQ(text.find("expf"), std::string::npos) << "the C library is called";
  const std::string assembly =
      emit_llvm(kernels, target::parse_target("aarch64-linux-gnu").value_or_throw(), {.kind = EmitKind::assembly})
          .value_or_throw();
  EXPECT_NE(assembly.find("second:"), std::string::npos);
  EXPECT_NE(assembly.find("fmla"), std::string::npos);
}

}  // namespace
}  // namespace lathe::codegen
