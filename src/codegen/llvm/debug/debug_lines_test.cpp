#include "codegen/llvm/debug/debug_lines.h"

#include <gtest/gtest.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>

#include "codegen/llvm/read_object_test.h"
#include "codegen/llvm/run_kernel_test.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

// Sums of rows, where a flag is set: a loop (parallel or not) with scratch memory around a loop, a condition, a check.
Kernel flagged_sums(const std::string& name, ForKind kind) {
  const DType f = DType::float32();
  const Buffer a = buffer("A", {int64(7 * 33)}, f), flag = buffer("flag", {int64(7)}, DType::int64()),
               b = buffer("B", {int64(7)}, f), sum = buffer("total", {int64(1)}, f, "global");
  const Var i = var("i"), j = var("j");
  const auto put = [](const Buffer& to, Expr v, Expr at) {
    return Stmt(make<BufferStore>(to, std::move(v), std::vector<Expr>{std::move(at)}));
  };
  const Stmt step = put(sum, load(sum, {int64(0)}) + load(a, {Expr(i) * 33 + j}), int64(0));
  const Stmt row = seq({put(sum, constant(f, 0.0), int64(0)),
                        make<AssertStmt>(load(flag, {i}) < int64(2), std::string("a flag is 0 or 1")),
                        make<For>(j, int64(0), int64(33), ForKind::serial, step),
                        make<IfThenElse>(eq(load(flag, {i}), int64(1)), put(b, load(sum, {int64(0)}), i),
                                         put(b, constant(f, -1.0), i))});
  const Stmt body = make<Allocate>(sum->data, f, std::vector<Expr>{int64(1)}, std::string("global"), row);
  return {name, prim_func({a, flag, b}, make<For>(i, int64(0), int64(7), kind, body))};
}

std::vector<Kernel> both() {
  return {flagged_sums("serial_sums", ForKind::serial), flagged_sums("parallel_sums", ForKind::parallel)};
}

constexpr const char* text_path = "/somewhere/model.kernels.tir";

std::string line_of(const KernelText& text, size_t number) {  // from 1, without indentation
  std::istringstream all(text.script.text);
  std::string line;
  for (size_t i = 0; i < number; ++i) std::getline(all, line);
  return line.substr(std::min(line.size(), line.find_first_not_of(' ')));
}

// By function: the lines that its code comes from, as text.
std::map<std::string, std::set<std::string>> lines_of_code(const std::string& object, const KernelText& text) {
  const auto read = test::read_object(object);
  const auto dwarf = llvm::DWARFContext::create(*read);
  EXPECT_TRUE(dwarf->verify(llvm::nulls()));
  std::map<std::string, std::set<std::string>> found;
  for (const auto& unit : dwarf->compile_units())
    for (const llvm::DWARFDebugInfoEntry& entry : unit->dies()) {
      const llvm::DWARFDie die(unit.get(), &entry);
      uint64_t low = 0, high = 0, section = 0;
      if (!die.isSubprogramDIE() || !die.getLowAndHighPC(low, high, section)) continue;
      // Each function has a section of its own.
      const llvm::DWARFDebugLine::LineTable& table = *dwarf->getLineTableForUnit(unit.get());
      for (const llvm::DWARFDebugLine::Sequence& sequence : table.Sequences)
        for (unsigned r = sequence.FirstRowIndex; sequence.SectionIndex == section && r < sequence.LastRowIndex; ++r) {
          std::string file;
          EXPECT_TRUE(table.getFileNameByIndex(table.Rows[r].File, unit->getCompilationDir(),
                                               llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath, file));
          EXPECT_EQ(file, text_path);
          if (table.Rows[r].Line > 0) found[die.getShortName()].insert(line_of(text, table.Rows[r].Line));
        }
    }
  return found;
}

TEST(debug_lines, point_to_the_statements_of_the_printed_program) {
  for (const size_t most_full : {size_t{256}, size_t{0}}) {
    const std::vector<Kernel> kernels = both();
    const KernelText text = kernel_text(kernels, text_path);
    const CompiledKernels compiled =
        compile_kernels(kernels, test::native(), {.most_full = most_full, .text = &text}).value_or_throw();
    std::map<std::string, std::set<std::string>> found;
    for (const CompiledKernel& kernel : compiled.kernels) found.merge(lines_of_code(*kernel.object, text));
    const std::set<std::string> inside = {
        "assert flag[i] < 2, \"a flag is 0 or 1\"",
        "for j in range(33):",
        "total_1[0] = total_1[0] + A[i * 33 + j]",
        "if flag[i] == 1:",
        "B[i] = total_1[0]",
        "B[i] = T.float32(-1.0)",
    };
    ASSERT_EQ(found.size(), 3u);
    for (const char* function : {"serial_sums", "parallel_sums.parallel"})
      for (const std::string& line : inside)
        EXPECT_TRUE(found.at(function).count(line)) << function << ": " << line << "\n" << text.script.text;
    EXPECT_TRUE(found.at("serial_sums").count("for i in range(7):"));
    EXPECT_TRUE(found.at("parallel_sums").count("for i in T.parallel(7):"));
    EXPECT_FALSE(found.at("parallel_sums").count("B[i] = total_1[0]"));
  }
}

// Instructions whatever their order: those of AArch64 have four bytes.
std::map<std::string, std::multiset<std::string>> instructions_of(const std::string& object) {
  std::map<std::string, std::multiset<std::string>> all;
  for (const auto& [section, bytes] : test::loaded_sections(object))
    for (size_t at = 0; at < bytes.size(); at += 4) all[section].insert(bytes.substr(at, 4));
  return all;
}

// A debugger's unwinding needs marks in a function's first instructions, across which LLVM's scheduler for AArch64
// moves nothing: they may come in another order there.
TEST(debug_lines, reorder_at_most_how_functions_of_aarch64_begin) {
  const std::vector<Kernel> kernels = both();
  const KernelText text = kernel_text(kernels, text_path);
  const target::Target machine = target::parse_target("aarch64-linux-gnu").value_or_throw();
  const auto plain = compile_kernels(kernels, machine).value_or_throw();
  const auto lined = compile_kernels(kernels, machine, {.text = &text}).value_or_throw();
  for (size_t k = 0; k < kernels.size(); ++k)
    EXPECT_EQ(instructions_of(*plain.kernels[k].object), instructions_of(*lined.kernels[k].object));
}

TEST(debug_lines, change_no_code) {
  for (const char* target : {"x86-64-v2", "x86-64-v3", "x86-64-v4"})
    for (const size_t most_full : {size_t{256}, size_t{0}}) {
      const std::vector<Kernel> kernels = both();
      const KernelText text = kernel_text(kernels, text_path);
      const target::Target machine = target::parse_target(target).value_or_throw();
      const auto plain = compile_kernels(kernels, machine, {.most_full = most_full}).value_or_throw();
      const auto lined = compile_kernels(kernels, machine, {.most_full = most_full, .text = &text}).value_or_throw();
      for (size_t k = 0; k < kernels.size(); ++k) {
        EXPECT_EQ(plain.kernels[k].symbol, lined.kernels[k].symbol);
        EXPECT_EQ(test::loaded_sections(*plain.kernels[k].object), test::loaded_sections(*lined.kernels[k].object));
        EXPECT_NE(*plain.kernels[k].object, *lined.kernels[k].object);
      }
    }
}

TEST(debug_lines, are_neither_kept_nor_found_in_the_cache) {
  const std::vector<Kernel> kernels = both();
  const KernelText text = kernel_text(kernels, text_path);
  KernelCache cache("");
  compile_kernels(kernels, test::native(), {.cache = &cache}).value_or_throw();
  const auto lined = compile_kernels(kernels, test::native(), {.cache = &cache, .text = &text}).value_or_throw();
  EXPECT_FALSE(lined.kernels[0].from_cache);
  const auto plain = compile_kernels(kernels, test::native(), {.cache = &cache}).value_or_throw();
  EXPECT_TRUE(plain.kernels[0].from_cache);
  EXPECT_NE(*plain.kernels[0].object, *lined.kernels[0].object);
}

TEST(debug_lines, kernels_of_one_content_point_to_the_first) {
  const std::vector<Kernel> kernels = {flagged_sums("first", ForKind::serial), flagged_sums("second", ForKind::serial)};
  const KernelText text = kernel_text(kernels, text_path);
  const auto compiled = compile_kernels(kernels, test::native(), {.text = &text}).value_or_throw();
  EXPECT_EQ(compiled.kernels[0].object, compiled.kernels[1].object);
  const auto found = lines_of_code(*compiled.kernels[0].object, text);
  EXPECT_EQ(found.size(), 1u);
  EXPECT_TRUE(found.count("first"));
}

}  // namespace
}  // namespace lathe::codegen
