#include "abi/program_writer.h"

#include <gtest/gtest.h>

#include "abi/program_printer.h"

namespace lathe::abi {
namespace {

constexpr DLDataType f32 = {kDLFloat, 32, 1};

std::vector<char> small_program() {
  ProgramWriter program;
  program.input({.name = "x", .dtype = f32, .dims = {{-1, "N"}, {3}}});
  program.output({.name = "y", .dtype = f32, .unknown_rank = true});
  program.string_constant("names", {2}, {"cat", "dog"});
  const uint32_t kernel = program.kernel({.name = "fused_relu", .buffer_count = 1, .scalar_count = 1});
  FunctionWriter main = program.function("main");
  const uint32_t x = main.parameter(ValueKind::tensor, f32, 2, "x"), n = main.reg(ValueKind::scalar);
  const uint32_t end = main.label();
  main.emit(Opcode::read_dim, {n, x, program.immediate(0)});
  main.emit(Opcode::branch, {n, end, end});
  main.emit(Opcode::call_kernel, {kernel, 1, x, 1, n}, "Relu_4");
  main.bind(end);
  main.emit(Opcode::return_values, {1, x});
  program.finish_function(std::move(main));
  return program.finish();
}

TEST(program_writer, writes_the_same_bytes_every_time) { EXPECT_EQ(small_program(), small_program()); }

TEST(program_writer, shares_equal_texts_and_integers) {
  ProgramWriter program;
  EXPECT_EQ(program.text("a"), program.text("a"));
  EXPECT_NE(program.text("a"), program.text("b"));
  EXPECT_EQ(program.immediate(7), program.immediate(7));
  EXPECT_NE(program.immediate(7), program.immediate(-7));
}

TEST(program_writer, lays_out_sections_that_parse) {
  const std::vector<char> bytes = small_program();
  ProgramView view;
  ASSERT_EQ(view.parse(bytes.data(), bytes.size()), nullptr);
  EXPECT_EQ(view.functions.count, 1u);
  EXPECT_EQ(view.functions[0].parameter_count, 1u);
  EXPECT_EQ(view.functions[0].result_count, 1u);
  EXPECT_EQ(view.instructions.count, 4u);
  EXPECT_EQ(view.outputs[0].rank, -1);
  const InstructionRecord& branch = view.instructions[1];
  EXPECT_EQ(view.operands[branch.first_operand + 1], 3u);  // the label is the instruction it was bound before
  EXPECT_STREQ(view.text(view.instructions[2].node), "Relu_4");
  EXPECT_EQ(view.constants[0].kind, ValueKind::strings);
  EXPECT_EQ(view.constants[0].bytes, 3 * 8u + 6);
}

TEST(program_view, refuses_sections_outside_of_the_bytes) {
  const std::vector<char> good = small_program();
  for (uint32_t section = 0; section < static_cast<uint32_t>(Section::count); ++section)
    for (const bool is_offset : {true, false})
      for (const uint64_t value : {uint64_t{1} << 63, UINT64_MAX - 7, uint64_t{1} << 61, uint64_t{good.size()} + 8}) {
        std::vector<char> bytes = good;
        auto& at = reinterpret_cast<ProgramHeader*>(bytes.data())->sections[section];
        (is_offset ? at.offset : at.count) = value;
        ProgramView view;
        EXPECT_NE(view.parse(bytes.data(), bytes.size()), nullptr) << section << " " << value;
      }
  ProgramView view;
  EXPECT_NE(view.parse(nullptr, 0), nullptr);
  EXPECT_NE(view.parse(good.data(), 7), nullptr);
  EXPECT_NE(view.parse(good.data() + 4, good.size() - 4), nullptr);
}

TEST(program_printer, prints_one_line_an_instruction) {
  const std::vector<char> bytes = small_program();
  ProgramView view;
  ASSERT_EQ(view.parse(bytes.data(), bytes.size()), nullptr);
  EXPECT_EQ(print_program(view), R"(program version 2
input x: float32[N, 3]
output y: float32[...]
constant 0 names: strings[2] at data + 0, 30 bytes

fn main(%0 x: tensor float32 rank 2) -> 1
  let %1: scalar
    0  read_dim %1 %0 0
    1  branch %1 -> 3 -> 3
    2  call_kernel @fused_relu (%0) (%1)                           ; Relu_4
    3  return_values (%0)
)");
}

}  // namespace
}  // namespace lathe::abi
