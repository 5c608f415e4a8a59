// Programs that must be refused, each for its reason; and programs damaged at random, which must be refused or run
// within bounds (the address sanitizer watches).
#include "runtime/core/program/verify_program.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "abi/program_printer.h"
#include "runtime/core/every_instruction_fixture.h"
#include "runtime/core/program_fixture.h"

namespace lathe::runtime::testing {
namespace {

using abi::FunctionWriter;
using abi::Opcode;
using abi::ProgramWriter;
using abi::ValueKind;

// One function over a tensor x (register 0), a scalar (1), a sequence (2), a string tensor (3); the body adds more.
std::string refusal_of(const std::function<void(ProgramWriter&, FunctionWriter&)>& body) {
  ProgramWriter program;
  program.input({.name = "x", .dtype = f32, .dims = {{2}, {3}}});
  FunctionWriter main = program.function("main");
  main.parameter(ValueKind::tensor, f32, 2);
  main.reg(ValueKind::scalar);
  main.reg(ValueKind::sequence);
  main.reg(ValueKind::strings);
  body(program, main);
  program.finish_function(std::move(main));
  const std::vector<char> bytes = program.finish();
  abi::ProgramView view;
  const std::vector<char> weights(64);
  if (verify_program(bytes.data(), bytes.size(), {weights.data(), weights.size(), 0}, &view) == 0) return "";
  EXPECT_EQ(lathe_last_error()->code, LATHE_INVALID_ARTIFACT);
  return last_message();
}

TEST(verify_program, accepts_a_program_and_prints_it) {
  TestArtifact artifact;
  write_dense(artifact, 3, {1, 2, 3});
  abi::ProgramView view;
  ASSERT_EQ(verify_program(artifact.program.data(), artifact.program.size(),
                           {artifact.weights.data(), artifact.weights.size(), 2}, &view),
            0)
      << last_message();
  const std::string text = abi::print_program(view);
  for (const char* part :
       {"input x: float32[N, 3]", "output y: float32[N, 3]", "constant 0 w: float32[3] at weights + 0, 12 bytes",
        "fn main(%0 x: tensor float32 rank 2) -> 1", "call_kernel @add (%0, %1, %2) (%4, 3)", "; Relu_1"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(verify_program, refuses_operands_of_the_wrong_kind_count_or_index) {
  struct Row {
    Opcode opcode;
    std::vector<uint32_t> operands;
  };
  const Row rows[] = {
      {Opcode::read_dim, {1, 1, 0}},                          // a scalar where a tensor is read
      {Opcode::read_dim, {0, 0, 1}},                          // a tensor where a scalar is written
      {Opcode::read_dim, {1, 0}},                             // too few
      {Opcode::read_dim, {1, 0, 1, 1}},                       // too many
      {Opcode::read_dim, {1, 99, 1}},                         // no such register
      {Opcode::scalar_set, {1, abi::immediate_bit | 77}},     // no such integer
      {Opcode::make_tuple, {1, 0}},                           // a scalar where a tuple is written
      {Opcode::make_sequence, {2, 4000000000u, 0}},           // a count past the end
      {Opcode::sequence_at, {0, 3, 1}},                       // strings where a sequence is read
      {Opcode::load_constant, {0, 0}},                        // no such constant
      {Opcode::call_kernel, {0, 0, 0}},                       // no such kernel
      {Opcode::call_runtime_kernel, {0, abi::absent, 0, 0}},  // no such runtime kernel
      {Opcode::call_function, {5, 0, 0}},                     // no such function
      {Opcode::call_function, {0, 0, 0}},                     // another count of arguments
      {Opcode::alloc_tensor, {0, 3, 0}},                      // no such storage
      {Opcode::alloc_tensor, {0, abi::absent, 3, 1, 1, 1}},   // another rank than declared
      {Opcode::jump, {1000}},                                 // no such instruction
      {Opcode::move, {0, 1}},                                 // another kind
      {Opcode::assert_true, {1, 12345}},                      // no such text
      {static_cast<Opcode>(abi::opcode_count), {}},           // no such instruction
  };
  for (const Row& row : rows) {
    const std::string refusal = refusal_of([&](ProgramWriter& program, FunctionWriter& main) {
      (void)program.immediate(1);
      // Labels resolve only below their count, so raw numbers pass through.
      if (static_cast<uint32_t>(row.opcode) < abi::opcode_count)
        main.emit(row.opcode, row.operands);
      else
        main.emit(Opcode::kill, {0});
      main.emit(Opcode::return_values, {0});
      if (static_cast<uint32_t>(row.opcode) >= abi::opcode_count) main.emit(Opcode::return_values, {1, 0});
    });
    EXPECT_NE(refusal, "") << static_cast<int>(row.opcode);
  }
}

TEST(verify_program, refuses_functions_that_run_on_or_recurse) {
  EXPECT_NE(
      refusal_of([](ProgramWriter&, FunctionWriter& main) { main.emit(Opcode::kill, {0}); }).find("runs past its end"),
      std::string::npos);
  const std::string cycle = refusal_of([](ProgramWriter& program, FunctionWriter& main) {
    FunctionWriter inner = program.function("inner");
    main.emit(Opcode::call_function, {1, 0, 0});
    main.emit(Opcode::return_values, {0});
    program.finish_function(std::move(main));
    inner.emit(Opcode::call_function, {1, 0, 0});
    inner.emit(Opcode::return_values, {0});
    main = std::move(inner);
  });
  EXPECT_NE(cycle.find("cycle"), std::string::npos) << cycle;
}

TEST(verify_program, refuses_memory_outside_of_its_section) {
  const auto with = [](const std::function<void(ProgramWriter&)>& add) {
    return refusal_of([&](ProgramWriter& program, FunctionWriter& main) {
      add(program);
      main.emit(Opcode::return_values, {0});
    });
  };
  EXPECT_EQ(with([](ProgramWriter& p) { p.constant({.name = "c", .dtype = f32, .shape = {16}, .bytes = 64}); }), "");
  EXPECT_NE(with([](ProgramWriter& p) {
              p.constant({.name = "c", .dtype = f32, .shape = {16}, .offset = 4, .bytes = 64});
            }).find("lies outside of the 64 bytes of weights"),
            std::string::npos);
  EXPECT_NE(with([](ProgramWriter& p) {
              p.constant({.name = "c", .dtype = f32, .shape = {16}, .offset = UINT64_MAX - 3, .bytes = 64});
            }),
            "");
  EXPECT_NE(with([](ProgramWriter& p) { p.constant({.name = "c", .dtype = f32, .shape = {17}, .bytes = 64}); }), "");
  EXPECT_NE(with([](ProgramWriter& p) {
              p.constant({.name = "c", .dtype = f32, .shape = {int64_t{1} << 62, 8}, .bytes = 64});
            }).find("impossible shape"),
            std::string::npos);
  EXPECT_NE(with([](ProgramWriter& p) { p.constant({.name = "c", .dtype = f32, .shape = {-1}, .bytes = 64}); }), "");
  EXPECT_NE(
      with([](ProgramWriter& p) { p.constant({.name = "c", .dtype = f32, .shape = {2}, .offset = 2, .bytes = 8}); }),
      "");
  EXPECT_NE(with([](ProgramWriter& p) { p.arena({.bytes = uint64_t{1} << 60}); }), "");
  EXPECT_NE(with([](ProgramWriter& p) { p.arena({.bytes = 64, .alignment = 48}); }), "");
  EXPECT_NE(with([](ProgramWriter& p) { p.storage({.index = 0, .bytes = 1}); }).find("belongs to no arena"),
            std::string::npos);
  EXPECT_NE(with([](ProgramWriter& p) {
              p.storage({.index = p.arena({.bytes = 128}), .offset = 64, .bytes = 65});
            }).find("does not fit its arena"),
            std::string::npos);
  EXPECT_NE(with([](ProgramWriter& p) { p.storage({.index = p.arena({.bytes = 128}), .offset = 8, .bytes = 8}); }), "");
  EXPECT_NE(with([](ProgramWriter& p) {
              p.storage({.kind = abi::StorageKind::output, .index = 3});
            }).find("no tensor output"),
            std::string::npos);
  EXPECT_NE(with([](ProgramWriter& p) { p.kernel({.name = "k"}); }).find("1 kernels and the artifact 0"),
            std::string::npos);
}

TEST(verify_program, refuses_every_truncation) {
  TestArtifact artifact;
  write_dense(artifact, 3, {1, 2, 3});
  abi::ProgramView view;
  for (size_t size = 0; size < artifact.program.size(); ++size) {
    const std::vector<char> part(artifact.program.begin(), artifact.program.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_NE(verify_program(part.data(), part.size(), {artifact.weights.data(), artifact.weights.size(), 2}, &view), 0)
        << size;
  }
}

TEST(verify_program, runs_a_program_with_every_instruction) {
  TestArtifact artifact;
  write_everything(artifact);
  const Model model = open(artifact);
  ASSERT_NE(model, nullptr) << last_message();
  std::vector<bool> seen(abi::opcode_count);
  for (const abi::InstructionRecord& at : [&] {
         abi::ProgramView view;
         view.parse(artifact.program.data(), artifact.program.size());
         return view.instructions;
       }())
    seen[static_cast<size_t>(at.opcode)] = true;
  seen[static_cast<size_t>(Opcode::scalar_set)] = true;  // in the interpreter's own tests
  for (uint32_t i = 0; i < abi::opcode_count; ++i) EXPECT_TRUE(seen[i]) << abi::opcode_rows[i].name;
  EXPECT_TRUE(try_to_run(artifact)) << last_message();
}

TEST(verify_program, survives_damaged_programs) {
  TestArtifact artifact;
  write_everything(artifact);
  const std::vector<char> good = artifact.program;
  std::mt19937 random(7);
  int ran = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    artifact.program = good;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int change = 0; change < changes; ++change) {
      // Small words are indices, counts and sizes; they are changed to near values and to extremes more often than to
      // noise.
      const size_t at = random() % (good.size() / 4) * 4;
      uint32_t word = 0;
      std::memcpy(&word, artifact.program.data() + at, 4);
      switch (random() % 5) {
        case 0:
          word += 1;
          break;
        case 1:
          word -= 1;
          break;
        case 2:
          word = static_cast<uint32_t>(random());
          break;
        case 3:
          word = random() % 2 == 0 ? 0xFFFFFFFFu : 0x80000000u;
          break;
        default:
          word = static_cast<uint32_t>(random() % 64);
          break;
      }
      std::memcpy(artifact.program.data() + at, &word, 4);
    }
    (try_to_run(artifact) ? ran : refused) += 1;
  }
  std::printf("damaged programs: %d ran, %d were refused\n", ran, refused);
  // Both happen, or the test shows nothing: changes of texts and names do no harm.
  EXPECT_GT(ran, 200);
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace lathe::runtime::testing
