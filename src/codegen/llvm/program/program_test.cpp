// The register program as machine code, beside the interpreter: the same results, the same errors with the same words.
#include <gtest/gtest.h>

#include <random>

#include "codegen/llvm/program/compile_into_test.h"
#include "runtime/core/every_instruction_fixture.h"

namespace lathe::codegen {
namespace {

using abi::FunctionWriter;
using abi::Opcode;
using abi::ProgramWriter;
using abi::ValueKind;
using namespace runtime::testing;  // NOLINT
using runtime::testing::Value;     // where ir::Value is in view as well
using test::compile_into;

size_t compiled_functions(const LoadedKernels& loaded) {
  return static_cast<size_t>(
      std::count_if(loaded.program().begin(), loaded.program().end(), [](const auto f) { return f != nullptr; }));
}

// What a run gave: its results as numbers, or its error.
std::string outcome(const Context& context, const std::vector<LatheValue*>& inputs, int outputs) {
  const std::vector<runtime::testing::Value> results = run_values(context, inputs, outputs);
  const LatheError& error = *lathe_last_error();
  if (results.empty())
    return fmt::format("error {} at '{}': {}", error.code, error.node ? error.node : "", error.message);
  std::string text;
  for (const runtime::testing::Value& value : results) {
    if (lathe_value_kind(value.get()) == LATHE_SCALAR) {
      text += fmt::format(" {}", lathe_value_scalar(value.get()));
    } else if (const DLTensor* tensor = lathe_value_tensor(value.get())) {
      text += fmt::format(" {}", fmt::join(shape_of(*tensor), "x"));
      text += fmt::format(":{}", fmt::join(elements_of<int64_t>(*tensor), ","));
    }
  }
  return text;
}

// ---- random programs ----

// Numbers, tensors of planned and of dynamic memory, of the constants and of a parameter, loops, branches and checks,
// some of which fail. Registers are written again and again, in branches and in loops too.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed), main_(program_.function("main")) {
    for (int i = 0; i < 3; ++i) {
      program_.input({.name = fmt::format("s{}", i), .kind = ValueKind::scalar});
      scalars_.push_back(main_.parameter(ValueKind::scalar));
    }
    program_.input({.name = "x", .dtype = i64, .dims = {{-1, "N"}}});
    parameter_ = main_.parameter(ValueKind::tensor, i64, 1);
    program_.output({.name = "s", .kind = ValueKind::scalar});
    program_.output({.name = "t", .dtype = i64, .dims = {{-1}}});
    arena_ = program_.arena({.bytes = 8192});
    clear_ = program_.kernel({.name = "clear", .buffer_count = 1, .scalar_count = 1});
    add_ = program_.kernel({.name = "add", .buffer_count = 2, .scalar_count = 3});
    artifact.kernels = {[](const LatheServices*, void*, void* const* buffers, const int64_t* scalars) {
                          std::fill_n(static_cast<int64_t*>(buffers[0]), scalars[0], 0);
                          return int32_t{0};
                        },
                        [](const LatheServices* services, void* state, void* const* buffers, const int64_t* scalars) {
                          if (scalars[0] > 0 && scalars[2] % 97 == 13)
                            return services->raise_error(state, 5, "the kernel does not like that number", nullptr);
                          for (int64_t i = 0; i < std::min(scalars[0], scalars[1]); ++i)
                            static_cast<uint64_t*>(buffers[1])[i] =
                                static_cast<uint64_t*>(buffers[0])[i] + static_cast<uint64_t>(scalars[2]);
                          return int32_t{0};
                        }};
    artifact.weights.resize(64);
    for (int64_t i = 0; i < 8; ++i) std::memcpy(artifact.weights.data() + i * 8, &i, 8);
    constant_ = program_.constant({.name = "c", .dtype = i64, .shape = {8}, .bytes = 64});
    for (int i = 0; i < 4; ++i) scalars_.push_back(main_.reg(ValueKind::scalar));
    for (size_t i = 3; i < scalars_.size(); ++i) main_.emit(Opcode::scalar_set, {scalars_[i], small()});
    for (int i = 0; i < 4; ++i) own_.push_back(main_.reg(ValueKind::tensor, i64, 1));
    for (const uint32_t reg : own_) allocate(reg);
    for (int i = 0; i < 2; ++i) any_.push_back(main_.reg(ValueKind::tensor, i64, 1));
    for (const uint32_t reg : any_) main_.emit(Opcode::load_constant, {reg, constant_});
    statements(12, 0);
    const uint32_t out = main_.reg(ValueKind::tensor, i64, 1), count = main_.reg(ValueKind::scalar);
    const uint32_t last = pick(own_);
    main_.emit(Opcode::read_dim, {count, last, program_.immediate(0)});
    main_.emit(Opcode::alloc_tensor, {out, program_.storage({.kind = abi::StorageKind::output, .index = 1}), 1, count});
    main_.emit(Opcode::copy, {out, last}, node());
    main_.emit(Opcode::return_values, {2, any_scalar(true), out});
    program_.finish_function(std::move(main_));
    artifact.program = program_.finish();
  }

  TestArtifact artifact;

 private:
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  bool in(int64_t n) { return below(n) == 0; }
  uint32_t pick(const std::vector<uint32_t>& from) {
    return from[static_cast<size_t>(below(static_cast<int64_t>(from.size())))];
  }
  std::string node() { return fmt::format("Node_{}", nodes_++); }

  uint32_t any_scalar(bool is_register = false) {
    if (is_register || !in(3)) return pick(scalars_);
    static constexpr int64_t nasty[] = {0, 1, 2, 3, 5, 7, 8, -1, -4, INT64_MAX, INT64_MIN, int64_t{1} << 40};
    return program_.immediate(nasty[below(std::size(nasty))]);
  }
  uint32_t small() { return program_.immediate(below(9)); }
  uint32_t any_tensor() { return in(4) ? parameter_ : in(3) ? pick(any_) : pick(own_); }

  void clear(uint32_t reg) {
    const uint32_t count = main_.reg(ValueKind::scalar);
    main_.emit(Opcode::read_dim, {count, reg, program_.immediate(0)});
    main_.emit(Opcode::call_kernel, {clear_, 1, reg, 1, count}, node());
  }

  void allocate(uint32_t reg) {
    const uint32_t dim = in(40) ? any_scalar() : small();
    uint32_t storage = 0;
    if (in(2)) {
      storage = program_.storage({.index = arena_, .offset = static_cast<uint64_t>(below(64)) * 64, .bytes = 64});
    } else {
      storage = program_.storage({.kind = abi::StorageKind::dynamic});
      const uint32_t bytes = main_.reg(ValueKind::scalar);
      main_.emit(Opcode::scalar_multiply, {bytes, dim, program_.immediate(in(40) ? 4 : 8)});
      const uint32_t most = program_.immediate(1024);  // what may be asked for
      main_.emit(Opcode::scalar_minimum, {bytes, bytes, most});
      main_.emit(Opcode::reserve_storage, {storage, bytes}, node());
    }
    main_.emit(Opcode::alloc_tensor, {reg, storage, 1, dim}, node());
    clear(reg);
  }

  void statements(int count, int depth) {
    for (int i = 0; i < count; ++i) statement(depth);
  }

  void statement(int depth) {
    const uint32_t s = pick(scalars_);
    switch (below(depth < 2 ? 12 : 10)) {
      case 0:
      case 1:
      case 2: {
        const auto first = static_cast<int64_t>(Opcode::scalar_add), last = static_cast<int64_t>(Opcode::scalar_or);
        main_.emit(static_cast<Opcode>(first + below(last - first + 1)), {s, any_scalar(), any_scalar()}, node());
        return;
      }
      case 3:
        if (in(2)) return main_.emit(Opcode::scalar_select, {s, any_scalar(), any_scalar(), any_scalar()});
        return main_.emit(Opcode::move, {s, any_scalar(true)});
      case 4:
        return allocate(pick(own_));
      case 5: {
        const uint32_t to = pick(own_), from = pick(own_);
        const uint32_t first = in(30) ? any_scalar() : program_.immediate(0);
        if (in(2)) return main_.emit(Opcode::move, {to, from});
        return main_.emit(Opcode::view, {to, from, first, 1, in(20) ? any_scalar() : program_.immediate(below(3))},
                          node());
      }
      case 6: {
        const uint32_t to = pick(any_);
        if (in(3)) return main_.emit(Opcode::load_constant, {to, constant_});
        if (in(2)) return main_.emit(Opcode::move, {to, any_tensor()});
        return main_.emit(Opcode::view, {to, any_tensor(), program_.immediate(0), 1, program_.immediate(below(2))},
                          node());
      }
      case 7: {
        const uint32_t from = any_tensor(), to = pick(own_);
        const uint32_t a = main_.reg(ValueKind::scalar), b = main_.reg(ValueKind::scalar);
        main_.emit(Opcode::read_dim, {a, from, program_.immediate(0)});
        main_.emit(Opcode::read_dim, {b, to, program_.immediate(0)});
        return main_.emit(Opcode::call_kernel, {add_, 2, from, to, 3, a, b, any_scalar()}, node());
      }
      case 8:
        if (in(3)) return main_.emit(Opcode::read_rank, {s, any_tensor()});
        if (in(2))
          return main_.emit(Opcode::load_scalar, {s, any_tensor(), in(15) ? any_scalar() : program_.immediate(0)},
                            node());
        return main_.emit(Opcode::store_scalar,
                          {pick(own_), in(15) ? any_scalar() : program_.immediate(0), any_scalar()}, node());
      case 9: {
        const uint32_t count = main_.reg(ValueKind::scalar), tensor = any_tensor();
        main_.emit(Opcode::read_dim, {count, tensor, program_.immediate(0)});
        const uint32_t expected = in(40) ? any_scalar() : in(3) ? abi::absent : count;
        main_.emit(Opcode::match_shape, {tensor, program_.text("a shape"), 1, expected}, node());
        if (!in(12)) return;
        return main_.emit(Opcode::assert_numbers, {any_scalar(), program_.text("% and %"), 2, any_scalar(), count},
                          node());
      }
      case 10: {
        const uint32_t counter = main_.reg(ValueKind::scalar);
        const uint32_t body = main_.label(), end = main_.label();
        const uint32_t turns = program_.immediate(below(4));
        main_.emit(Opcode::loop_begin, {counter, program_.immediate(0), turns, end});
        main_.bind(body);
        statements(3, depth + 1);
        main_.emit(Opcode::loop_next, {counter, turns, body});
        main_.bind(end);
        return;
      }
      default: {
        const uint32_t yes = main_.label(), no = main_.label(), after = main_.label();
        main_.emit(Opcode::branch, {any_scalar(), yes, no});
        main_.bind(yes);
        statements(2, depth + 1);
        main_.emit(Opcode::jump, {after});
        main_.bind(no);
        statements(2, depth + 1);
        main_.bind(after);
      }
    }
  }

  std::mt19937_64 random_;
  ProgramWriter program_;
  FunctionWriter main_;
  std::vector<uint32_t> scalars_;
  std::vector<uint32_t> own_;  // in memory that kernels may write to
  std::vector<uint32_t> any_;  // of constants, of the parameter, of the others
  uint32_t parameter_ = 0, arena_ = 0, clear_ = 0, add_ = 0, constant_ = 0;
  int nodes_ = 0;
};

TEST(compiled_program, does_what_the_interpreter_does) {
  int fine = 0, refused = 0;
  std::mt19937_64 random(7);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomProgram program(seed);
    const Model model = open(program.artifact);
    ASSERT_NE(model, nullptr) << seed << ": " << last_message();
    const auto loaded = compile_into(program.artifact);
    ASSERT_EQ(compiled_functions(*loaded), 1u) << seed;
    const Context interpreted = context_of(model), compiled = context_of(open(program.artifact));
    for (int run = 0; run < 6; ++run) {
      std::vector<runtime::testing::Value> held;
      for (int i = 0; i < 3; ++i) held.push_back(number(static_cast<int64_t>(random() % 12) - 2));
      HostTensor<int64_t> x(i64, {static_cast<int64_t>(random() % 6)});
      std::iota(x.data.begin(), x.data.end(), 10);
      held.emplace_back(lathe_value_from_tensor(&x.view));
      std::vector<LatheValue*> inputs;
      for (const runtime::testing::Value& value : held) inputs.push_back(value.get());
      const std::string expected = outcome(interpreted, inputs, 2);
      const std::string got = outcome(compiled, inputs, 2);
      ASSERT_EQ(got, expected) << "seed " << seed << ", run " << run;
      ++(expected.starts_with("error") ? refused : fine);
    }
  }
  std::cout << "random programs: " << fine << " runs to the end, " << refused << " refused\n";
  EXPECT_GT(fine, 400);
  EXPECT_GT(refused, 400);
}

// ---- by hand ----

TEST(compiled_program, runs_every_instruction) {
  TestArtifact artifact;
  write_everything(artifact);
  const auto loaded = compile_into(artifact);
  const Model model = open(artifact);
  EXPECT_EQ(compiled_functions(*loaded), 2u);
  const Context context = context_of(model);
  for (const int64_t rows : {2, 1, 5, 2}) {
    HostTensor<int64_t> x(i64, {rows, 3});
    const runtime::testing::Value value(lathe_value_from_tensor(&x.view));
    EXPECT_EQ(run_values(context, {value.get()}, 6).size(), 6u) << last_message();
  }
}

TEST(compiled_program, runs_a_model_of_any_size_again_and_again) {
  TestArtifact artifact;
  write_dense(artifact, 4, {1, -2, 3, -4});
  const auto loaded = compile_into(artifact);
  const Model model = open(artifact);
  const Context context = context_of(model, {.threads = 2});
  for (const int64_t rows : {3, 0, 1, 50, 7}) {
    HostTensor<float> x(f32, {rows, 4});
    std::iota(x.data.begin(), x.data.end(), -20.0f);
    const runtime::testing::Value value(lathe_value_from_tensor(&x.view));
    const std::vector<runtime::testing::Value> results = run_values(context, {value.get()}, 1);
    ASSERT_EQ(results.size(), 1u) << last_message();
    const auto y = elements_of<float>(*lathe_value_tensor(results[0].get()));
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y[i], std::max(0.0f, x.data[i] + std::vector<float>{1, -2, 3, -4}[i % 4]));
  }
}

TEST(compiled_program, leaves_to_the_interpreter_what_may_read_a_register_without_a_value) {
  ProgramWriter program;
  FunctionWriter main = program.function("main");
  program.input({.name = "s", .kind = ValueKind::scalar});
  program.output({.name = "out", .kind = ValueKind::scalar});
  const uint32_t s = main.parameter(ValueKind::scalar), maybe = main.reg(ValueKind::scalar);
  const uint32_t yes = main.label(), after = main.label();
  main.emit(Opcode::branch, {s, yes, after});
  main.bind(yes);
  main.emit(Opcode::scalar_set, {maybe, s});
  main.bind(after);
  main.emit(Opcode::return_values, {1, maybe});
  program.finish_function(std::move(main));
  TestArtifact artifact;
  artifact.program = program.finish();
  const auto loaded = compile_into(artifact);
  const Model model = open(artifact);
  EXPECT_EQ(compiled_functions(*loaded), 0u);
  const Context context = context_of(model);
  EXPECT_EQ(outcome(context, {number(4).get()}, 1), " 4");
  EXPECT_NE(outcome(context, {number(0).get()}, 1).find("before it has a value"), std::string::npos);
}

// A loop without a kernel in it: it ends because its way back asks.
TEST(compiled_program, ends_at_the_limit_of_time) {
  ProgramWriter program;
  FunctionWriter main = program.function("main");
  program.output({.name = "out", .kind = ValueKind::scalar});
  const uint32_t i = main.reg(ValueKind::scalar);
  const uint32_t body = main.label(), end = main.label();
  main.emit(Opcode::loop_begin, {i, program.immediate(0), program.immediate(INT64_MAX), end});
  main.bind(body);
  main.emit(Opcode::loop_next, {i, program.immediate(INT64_MAX), body}, "Loop_3");
  main.bind(end);
  main.emit(Opcode::return_values, {1, i});
  program.finish_function(std::move(main));
  TestArtifact artifact;
  artifact.program = program.finish();
  const auto loaded = compile_into(artifact);
  const Model model = open(artifact);
  ASSERT_EQ(compiled_functions(*loaded), 1u);
  const Context context = context_of(model, {.timeout = 20'000'000});
  EXPECT_TRUE(run_values(context, {}, 1).empty());
  EXPECT_EQ(lathe_last_error()->code, LATHE_LIMIT_REACHED) << last_message();
  EXPECT_STREQ(lathe_last_error()->node, "Loop_3");
}

TEST(compiled_program, is_interpreted_where_steps_are_counted) {
  RandomProgram program(1);
  const auto loaded = compile_into(program.artifact);
  const Model model = open(program.artifact);
  const Context context = context_of(model, {.max_steps = 3});
  HostTensor<int64_t> x(i64, {2});
  const runtime::testing::Value tensor(lathe_value_from_tensor(&x.view)), one = number(1);
  EXPECT_NE(outcome(context, {one.get(), one.get(), one.get(), tensor.get()}, 2).find("limit of 3 steps"),
            std::string::npos);
}

TEST(compiled_program, of_other_services_is_not_called) {
  TestArtifact artifact;
  write_dense(artifact, 4, {1, 2, 3, 4});
  const auto wrong = [](const LatheProgramRun*) { return int32_t{99}; };
  const LatheProgramFunction functions[] = {wrong};
  artifact.artifact.functions = functions;
  artifact.artifact.function_count = 1;
  artifact.artifact.program_services_version = LATHE_PROGRAM_SERVICES_VERSION + 1;
  artifact.artifact.program_services_size = sizeof(LatheProgramServices);
  const Model model = open(artifact);
  ASSERT_NE(model, nullptr) << last_message();
  HostTensor<float> x(f32, {1, 4});
  const runtime::testing::Value value(lathe_value_from_tensor(&x.view));
  EXPECT_EQ(run_values(context_of(model), {value.get()}, 1).size(), 1u) << last_message();
  artifact.artifact.function_count = 2;
  EXPECT_EQ(open(artifact), nullptr);
  EXPECT_EQ(last_message(), "the artifact has code for 2 functions, its program has 1");
}

TEST(compiled_program, prints_as_assembly_and_ir) {
  TestArtifact artifact;
  write_dense(artifact, 4, {1, 2, 3, 4});
  const std::string_view bytes(artifact.program.data(), artifact.program.size());
  const target::Target target = target::native_target();
  EXPECT_NE(emit_program(bytes, target, EmitKind::llvm_ir).value_or_throw().find("@main"), std::string::npos);
  EXPECT_NE(emit_program(bytes, target, EmitKind::assembly).value_or_throw().find("main:"), std::string::npos);
}

}  // namespace
}  // namespace lathe::codegen
