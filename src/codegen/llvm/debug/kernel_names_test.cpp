#include "codegen/llvm/debug/kernel_names.h"

#include <gtest/gtest.h>

#include "codegen/llvm/read_object_test.h"
#include "codegen/llvm/run_kernel_test.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

Kernel filled(const std::string& name, double value) {
  const Buffer b = buffer("B", {int64(8)}, DType::float32());
  const Var i = var("i");
  const Stmt store = make<BufferStore>(b, constant(DType::float32(), value), std::vector<Expr>{Expr(i)});
  return {name, prim_func({b}, make<For>(i, int64(0), int64(8), ForKind::parallel, store))};
}

TEST(kernel_names, symbols_of_one_content_are_named_after_all_its_kernels) {
  const auto compiled =
      compile_kernels({filled("a", 1), filled("b", 2), filled("c", 1)}, test::native()).value_or_throw();
  const KernelNames names(compiled.kernels);
  EXPECT_EQ(names.find(compiled.kernels[0].symbol), "lathe::a|c");
  EXPECT_EQ(names.find(compiled.kernels[1].symbol), "lathe::b");
  EXPECT_EQ(names.find(compiled.kernels[1].symbol + ".parallel"), "lathe::b.parallel");
  EXPECT_EQ(names.find("memcpy"), std::nullopt);
  EXPECT_EQ(names.find("zzz"), std::nullopt);
}

TEST(kernel_names, different_symbols_have_different_names) {
  const std::vector<CompiledKernel> kernels = {{"a-b", "lathe_kernel_1", nullptr}, {"a+b", "lathe_kernel_2", nullptr}};
  const CompiledProgram program{.symbols = {"lathe_program_1", "", "lathe_program_3"}, .object = nullptr};
  const KernelNames names(kernels, &program);
  EXPECT_EQ(names.find("lathe_kernel_1"), "lathe::a_b");
  EXPECT_EQ(names.find("lathe_kernel_2"), "lathe::a_b.lathe_kernel_2");
  EXPECT_EQ(names.find("lathe_program_3"), "lathe::program_2");
}

TEST(kernel_names, objects_have_them_whatever_their_length) {
  const std::string longer(200, 'x');
  const auto compiled = compile_kernels({filled("short", 1), filled(longer, 2)}, test::native()).value_or_throw();
  const KernelNames names(compiled.kernels);
  for (const auto& [name, kernel] :
       {std::pair{std::string("short"), compiled.kernels[0]}, {longer, compiled.kernels[1]}}) {
    const std::string named = with_kernel_names(*kernel.object, names);
    std::map<std::string, uint64_t> functions = test::functions_of(*kernel.object), wanted;
    ASSERT_EQ(functions.size(), 2u);
    for (const auto& [symbol, address] : functions) wanted[*names.find(symbol)] = address;
    EXPECT_TRUE(wanted.count("lathe::" + name) && wanted.count("lathe::" + name + ".parallel"));
    EXPECT_EQ(test::functions_of(named), wanted);
    for (const auto& [section, bytes] : test::loaded_sections(*kernel.object))
      if (section == ".rodata") EXPECT_EQ(test::loaded_sections(named).at(section), bytes);
  }
}

}  // namespace
}  // namespace lathe::codegen
