#include "codegen/llvm/load/gdb.h"

#include <gtest/gtest.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h>

#include "codegen/emit/kernel_text.h"
#include "codegen/llvm/read_object_test.h"
#include "codegen/llvm/run_kernel_test.h"

extern "C" jit_descriptor __jit_debug_descriptor;  // NOLINT

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

// What GDB finds: the functions of each object in the list.
std::vector<std::map<std::string, uint64_t>> listed_functions() {
  std::vector<std::map<std::string, uint64_t>> all;
  const jit_code_entry* before = nullptr;
  for (const jit_code_entry* e = __jit_debug_descriptor.first_entry; e; before = e, e = e->next_entry) {
    EXPECT_EQ(e->prev_entry, before);
    all.push_back(test::functions_of({e->symfile_addr, e->symfile_size}));
  }
  return all;
}

Kernel filled_by(const std::string& name, double value) {
  const Buffer b = buffer("B", {int64(8)}, DType::float32());
  const Var i = var("i");
  const Stmt store = make<BufferStore>(b, constant(DType::float32(), value), std::vector<Expr>{Expr(i)});
  return {name, prim_func({b}, make<For>(i, int64(0), int64(8), ForKind::serial, store))};
}

uint64_t address_of(const LatheKernel& function) { return reinterpret_cast<uint64_t>(function); }

TEST(gdb, lists_kernels_by_name_where_they_are_while_they_are_loaded) {
  EXPECT_TRUE(listed_functions().empty());
  auto first = test::load({filled_by("one", 1), filled_by("two", 2), filled_by("again", 1)});
  const auto second = test::load({filled_by("three", 3)});
  const auto all = listed_functions();
  EXPECT_EQ(all.size(), 3u) << "kernels of one content are one object";
  std::map<std::string, uint64_t> functions;
  for (const auto& object : all) functions.insert(object.begin(), object.end());
  EXPECT_EQ(functions, (std::map<std::string, uint64_t>{{"lathe::one|again", address_of(first->functions()[0])},
                                                        {"lathe::two", address_of(first->functions()[1])},
                                                        {"lathe::three", address_of(second->functions()[0])}}));
  first.reset();
  ASSERT_EQ(listed_functions().size(), 1u);
  EXPECT_TRUE(listed_functions()[0].count("lathe::three"));
}

TEST(gdb, lists_line_tables) {
  const std::vector<Kernel> kernels = {filled_by("lined", 1)};
  const KernelText text = kernel_text(kernels, "kernels.tir");
  const auto loaded = test::load(kernels, test::native(), {.text = &text});
  const jit_code_entry* entry = __jit_debug_descriptor.first_entry;
  ASSERT_NE(entry, nullptr);
  const std::string bytes(entry->symfile_addr, entry->symfile_size);  // the object points into them
  const auto object = test::read_object(bytes);
  std::set<std::string> sections;
  for (const auto& section : object->sections()) sections.insert(llvm::cantFail(section.getName()).str());
  EXPECT_TRUE(sections.count(".debug_line") && sections.count(".debug_info"));
  std::vector<float> memory(8);
  EXPECT_EQ(test::call(loaded, 0, {memory.data()}), 0);
  EXPECT_EQ(memory, std::vector<float>(8, 1.0f));
}

TEST(gdb, is_told_from_any_thread) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int k = 0; k < 8; ++k) test::load({filled_by("one", t * 8 + k)});
    });
  for (std::thread& t : threads) t.join();
  EXPECT_TRUE(listed_functions().empty());
}

}  // namespace
}  // namespace lathe::codegen
