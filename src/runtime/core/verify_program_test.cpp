// Programs that must be refused, each for its reason; and programs damaged at random, which must be refused or run
// within bounds (the address sanitizer watches).
#include "runtime/core/verify_program.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "abi/program_printer.h"
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

// A program with every instruction in it. Kernels touch nothing, as a damaged program may hand them too little memory.
void write_everything(TestArtifact& made) {
  made.weights.resize(256);
  made.kernels = {[](const LatheServices*, void*, void* const* buffers, const int64_t* scalars) {
    return static_cast<int32_t>((buffers[0] == nullptr) + 0 * scalars[0]);
  }};
  made.runtime_kernels = {{"pass", [](const LatheRuntimeCall* call) {
                             for (int64_t i = 0; i < call->output_count; ++i)
                               call->outputs[i] = i < call->input_count ? call->values->retain(call->inputs[i])
                                                                        : call->values->make_scalar(i);
                             return int32_t{0};
                           }}};
  ProgramWriter p;
  const auto imm = [&](int64_t value) { return p.immediate(value); };
  p.input({.name = "x", .dtype = i64, .dims = {{-1, "N"}, {3}}});
  p.output({.name = "y", .dtype = i64, .dims = {{-1, "N"}, {3}}});
  p.output({.name = "s", .kind = ValueKind::scalar});
  p.output({.name = "q", .kind = ValueKind::sequence});
  p.output({.name = "w", .kind = ValueKind::strings});
  p.output({.name = "u", .kind = ValueKind::tuple});
  p.output({.name = "o", .kind = ValueKind::optional});
  const uint32_t constant = p.constant({.name = "c", .dtype = i64, .shape = {3}, .offset = 64, .bytes = 24});
  const uint32_t strings = p.string_constant("words", {2}, {"ab", "cde"});
  const uint32_t kernel = p.kernel({.name = "kernel", .buffer_count = 2, .scalar_count = 1});
  const uint32_t pass = p.runtime_kernel("pass");
  const uint32_t slice = p.slice("attributes", 10);
  const uint32_t arena = p.arena({.bytes = 4096});
  const uint32_t planned = p.storage({.index = arena, .offset = 1024, .bytes = 1024});
  const uint32_t dynamic = p.storage({.kind = abi::StorageKind::dynamic});
  const uint32_t out = p.storage({.kind = abi::StorageKind::output});
  FunctionWriter f = p.function("main");
  FunctionWriter g = p.function("twice");
  const uint32_t ga = g.parameter(ValueKind::scalar), gb = g.reg(ValueKind::scalar);
  g.emit(Opcode::scalar_add, {gb, ga, ga});
  g.emit(Opcode::return_values, {1, gb});
  const uint32_t x = f.parameter(ValueKind::tensor, i64, 2);
  const uint32_t n = f.reg(ValueKind::scalar), s = f.reg(ValueKind::scalar), i = f.reg(ValueKind::scalar),
                 c = f.reg(ValueKind::scalar);
  const uint32_t t = f.reg(ValueKind::tensor, i64, 2), y = f.reg(ValueKind::tensor, i64, 2),
                 k = f.reg(ValueKind::tensor, i64, 1), d = f.reg(ValueKind::tensor, i64, 2),
                 v = f.reg(ValueKind::tensor, i64, 1), h = f.reg(ValueKind::tensor, i64, 1);
  const uint32_t w = f.reg(ValueKind::strings), w2 = f.reg(ValueKind::strings), w3 = f.reg(ValueKind::strings);
  const uint32_t u = f.reg(ValueKind::tuple), q = f.reg(ValueKind::sequence), q2 = f.reg(ValueKind::sequence),
                 o = f.reg(ValueKind::optional);
  f.emit(Opcode::match_shape, {x, p.text("x"), 2, abi::absent, imm(3)}, "Match");
  f.emit(Opcode::read_dim, {n, x, imm(0)});
  f.emit(Opcode::read_rank, {s, x});
  f.emit(Opcode::assert_true, {s, p.text("rank")});
  for (const Opcode opcode : {Opcode::scalar_add, Opcode::scalar_subtract, Opcode::scalar_multiply,
                              Opcode::scalar_floor_divide, Opcode::scalar_floor_modulo, Opcode::scalar_minimum,
                              Opcode::scalar_maximum, Opcode::scalar_equal, Opcode::scalar_not_equal,
                              Opcode::scalar_less, Opcode::scalar_less_equal, Opcode::scalar_and, Opcode::scalar_or})
    f.emit(opcode, {c, n, imm(2)});
  f.emit(Opcode::scalar_select, {c, c, n, imm(1)});
  f.emit(Opcode::scalar_multiply, {c, n, imm(24)});
  f.emit(Opcode::reserve_storage, {dynamic, c});
  f.emit(Opcode::alloc_tensor, {d, dynamic, 2, n, imm(3)});
  f.emit(Opcode::alloc_tensor, {t, planned, 2, n, imm(3)});
  f.emit(Opcode::alloc_tensor, {h, abi::absent, 1, imm(5)});
  f.emit(Opcode::alloc_tensor, {y, out, 2, n, imm(3)});
  f.emit(Opcode::load_constant, {k, constant});
  f.emit(Opcode::load_constant, {w, strings});
  f.emit(Opcode::copy, {d, x});
  f.emit(Opcode::copy, {y, d});
  f.emit(Opcode::view, {v, x, imm(0), 1, imm(3)});
  f.emit(Opcode::load_scalar, {s, k, imm(1)});
  f.emit(Opcode::store_scalar, {h, imm(4), s});
  f.emit(Opcode::call_kernel, {kernel, 2, v, h, 1, n}, "Kernel");
  f.emit(Opcode::call_function, {1, 1, s, 1, s});
  f.emit(Opcode::make_sequence, {q, 2, v, h});
  const uint32_t body = f.label(), end = f.label(), yes = f.label(), no = f.label();
  f.emit(Opcode::loop_begin, {i, imm(0), imm(4), end});
  f.bind(body);
  f.emit(Opcode::sequence_insert, {q, q, i, h});
  f.emit(Opcode::loop_next, {i, imm(4), body});
  f.bind(end);
  f.emit(Opcode::sequence_erase, {q2, q, imm(-1)});
  f.emit(Opcode::sequence_at, {h, q, imm(1)});
  f.emit(Opcode::sequence_length, {c, q2});
  f.emit(Opcode::make_optional, {o, h});
  f.emit(Opcode::optional_has, {c, o});
  f.emit(Opcode::branch, {c, yes, no});
  f.bind(yes);
  f.emit(Opcode::optional_get, {h, o});
  f.emit(Opcode::jump, {no});
  f.bind(no);
  f.emit(Opcode::alloc_strings, {w2, 1, imm(2)});
  f.emit(Opcode::copy_strings, {w3, w});
  f.emit(Opcode::call_runtime_kernel, {pass, slice, 2, w3, h, 2, w2, h}, "Pass");
  f.emit(Opcode::make_tuple, {u, 3, h, s, w2});
  f.emit(Opcode::tuple_get, {s, u, imm(1)});
  f.emit(Opcode::move, {q2, q});
  f.emit(Opcode::kill, {t});
  f.emit(Opcode::return_values, {6, y, s, q2, w2, u, o});
  p.finish_function(std::move(f));
  p.finish_function(std::move(g));
  made.program = p.finish();
}

// Opens and runs whatever this is; true when it ran to its end.
bool try_to_run(TestArtifact& artifact) {
  const Model model = open(artifact);
  if (model == nullptr) return false;
  const Context context = context_of(model, {.threads = 1, .memory_limit = 16 << 20, .instruction_limit = 2000});
  if (context == nullptr) return false;
  HostTensor<int64_t> x(i64, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Value value(lathe_value_from_tensor(&x.view));
  const int inputs = lathe_input_count(model.get()), outputs = lathe_output_count(model.get());
  if (inputs > 16 || outputs > 1000) return false;
  return !run_values(context, std::vector<LatheValue*>(static_cast<size_t>(inputs), value.get()), outputs).empty();
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
        case 4:
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
