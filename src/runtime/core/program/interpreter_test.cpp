// Scalars, control flow and tensors of the register program, each instruction against what instructions.def says.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/core/program_fixture.h"

namespace lathe::runtime::testing {
namespace {

using abi::FunctionWriter;
using abi::Opcode;
using abi::ProgramWriter;
using abi::ValueKind;

// A program from scalars to one scalar, as the body makes it.
struct ScalarProgram {
  ProgramWriter program;
  FunctionWriter main;
  std::vector<uint32_t> in;
  TestArtifact artifact;

  explicit ScalarProgram(int inputs) : main(program.function("main")) {
    for (int i = 0; i < inputs; ++i) {
      program.input({.name = "s" + std::to_string(i), .kind = ValueKind::scalar});
      in.push_back(main.parameter(ValueKind::scalar));
    }
    program.output({.name = "out", .kind = ValueKind::scalar});
  }
  uint32_t reg() { return main.reg(ValueKind::scalar); }
  uint32_t imm(int64_t value) { return program.immediate(value); }
  Model finish(uint32_t result) {
    main.emit(Opcode::return_values, {1, result});
    program.finish_function(std::move(main));
    artifact.program = program.finish();
    return open(artifact);
  }
};

std::optional<int64_t> run_scalars(const Model& model, const std::vector<int64_t>& inputs) {
  const Context context = context_of(model);
  if (context == nullptr) return std::nullopt;
  std::vector<Value> values;
  std::vector<LatheValue*> raw;
  for (const int64_t input : inputs) raw.push_back(values.emplace_back(number(input)).get());
  const std::vector<Value> results = run_values(context, raw, 1);
  if (results.empty()) return std::nullopt;
  return lathe_value_scalar(results[0].get());
}

int64_t floor_divide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  while (quotient * b > a && b > 0) --quotient;
  while (quotient * b < a && b < 0) --quotient;
  return quotient;
}

TEST(interpreter, computes_scalars_as_their_names_say) {
  struct Row {
    Opcode opcode;
    std::function<int64_t(int64_t, int64_t)> reference;
  };
  const Row rows[] = {
      {Opcode::scalar_add, [](int64_t a, int64_t b) { return a + b; }},
      {Opcode::scalar_subtract, [](int64_t a, int64_t b) { return a - b; }},
      {Opcode::scalar_multiply, [](int64_t a, int64_t b) { return a * b; }},
      {Opcode::scalar_floor_divide, floor_divide},
      {Opcode::scalar_floor_modulo, [](int64_t a, int64_t b) { return a - floor_divide(a, b) * b; }},
      {Opcode::scalar_minimum, [](int64_t a, int64_t b) { return std::min(a, b); }},
      {Opcode::scalar_maximum, [](int64_t a, int64_t b) { return std::max(a, b); }},
      {Opcode::scalar_equal, [](int64_t a, int64_t b) { return int64_t{a == b}; }},
      {Opcode::scalar_not_equal, [](int64_t a, int64_t b) { return int64_t{a != b}; }},
      {Opcode::scalar_less, [](int64_t a, int64_t b) { return int64_t{a < b}; }},
      {Opcode::scalar_less_equal, [](int64_t a, int64_t b) { return int64_t{a <= b}; }},
      {Opcode::scalar_and, [](int64_t a, int64_t b) { return int64_t{a != 0 && b != 0}; }},
      {Opcode::scalar_or, [](int64_t a, int64_t b) { return int64_t{a != 0 || b != 0}; }},
  };
  for (const Row& row : rows) {
    ScalarProgram program(2);
    const uint32_t out = program.reg();
    program.main.emit(row.opcode, {out, program.in[0], program.in[1]});
    const Model model = program.finish(out);
    ASSERT_NE(model, nullptr) << last_message();
    for (const int64_t a : {-7, -6, -1, 0, 1, 6, 7, 13})
      for (const int64_t b : {-5, -3, -1, 1, 2, 3, 7}) {
        EXPECT_EQ(run_scalars(model, {a, b}), row.reference(a, b))
            << abi::opcode_rows[static_cast<int>(row.opcode)].name << " " << a << " " << b;
      }
  }
}

TEST(interpreter, wraps_scalars_and_refuses_division_by_zero) {
  for (const auto& [opcode, a, b, expected] :
       {std::tuple{Opcode::scalar_add, INT64_MAX, int64_t{1}, INT64_MIN},
        std::tuple{Opcode::scalar_multiply, INT64_MIN, int64_t{-1}, INT64_MIN},
        std::tuple{Opcode::scalar_floor_divide, INT64_MIN, int64_t{-1}, INT64_MIN},
        std::tuple{Opcode::scalar_floor_modulo, INT64_MIN, int64_t{-1}, int64_t{0}}}) {
    ScalarProgram program(2);
    const uint32_t out = program.reg();
    program.main.emit(opcode, {out, program.in[0], program.in[1]});
    EXPECT_EQ(run_scalars(program.finish(out), {a, b}), expected);
  }
  ScalarProgram program(2);
  const uint32_t out = program.reg();
  program.main.emit(Opcode::scalar_floor_divide, {out, program.in[0], program.in[1]}, "Div_3");
  EXPECT_EQ(run_scalars(program.finish(out), {5, 0}), std::nullopt);
  EXPECT_NE(last_message().find("5 is divided by zero"), std::string::npos) << last_message();
  EXPECT_STREQ(lathe_last_error()->node, "Div_3");
}

TEST(interpreter, selects_sets_and_moves) {
  ScalarProgram program(3);
  const uint32_t chosen = program.reg(), moved = program.reg(), out = program.reg();
  program.main.emit(Opcode::scalar_select, {chosen, program.in[0], program.in[1], program.in[2]});
  program.main.emit(Opcode::move, {moved, chosen});
  program.main.emit(Opcode::scalar_set, {out, moved});
  program.main.emit(Opcode::kill, {moved});
  const Model model = program.finish(out);
  EXPECT_EQ(run_scalars(model, {1, 20, 30}), 20);
  EXPECT_EQ(run_scalars(model, {0, 20, 30}), 30);
}

TEST(interpreter, branches_jumps_and_loops) {
  // sum of i*i for i in [a, b), by loop_begin and loop_next; then by branch and jump; the results must agree.
  for (const bool is_structured : {true, false}) {
    ScalarProgram program(2);
    FunctionWriter& main = program.main;
    const uint32_t i = program.reg(), sum = program.reg(), square = program.reg(), more = program.reg();
    const uint32_t body = main.label(), end = main.label(), test = main.label();
    main.emit(Opcode::scalar_set, {sum, program.imm(0)});
    if (is_structured) {
      main.emit(Opcode::loop_begin, {i, program.in[0], program.in[1], end});
    } else {
      main.emit(Opcode::scalar_set, {i, program.in[0]});
      main.emit(Opcode::jump, {test});
    }
    main.bind(body);
    main.emit(Opcode::scalar_multiply, {square, i, i});
    main.emit(Opcode::scalar_add, {sum, sum, square});
    if (is_structured) {
      main.emit(Opcode::loop_next, {i, program.in[1], body});
      main.bind(test);
    } else {
      main.emit(Opcode::scalar_add, {i, i, program.imm(1)});
      main.bind(test);
      main.emit(Opcode::scalar_less, {more, i, program.in[1]});
      main.emit(Opcode::branch, {more, body, end});
    }
    main.bind(end);
    const Model model = program.finish(sum);
    ASSERT_NE(model, nullptr) << last_message();
    EXPECT_EQ(run_scalars(model, {0, 0}), 0);
    EXPECT_EQ(run_scalars(model, {3, 2}), 0);
    EXPECT_EQ(run_scalars(model, {-2, 5}), 4 + 1 + 0 + 1 + 4 + 9 + 16);
    EXPECT_EQ(run_scalars(model, {INT64_MAX - 1, INT64_MAX}), static_cast<int64_t>(4));  // (2^63 - 2)^2 wraps to 4
  }
}

TEST(interpreter, calls_functions_with_several_results) {
  ScalarProgram program(2);
  FunctionWriter both = program.program.function("both");
  const uint32_t a = both.parameter(ValueKind::scalar), b = both.parameter(ValueKind::scalar);
  const uint32_t sum = both.reg(ValueKind::scalar), difference = both.reg(ValueKind::scalar);
  both.emit(Opcode::scalar_add, {sum, a, b});
  both.emit(Opcode::scalar_subtract, {difference, a, b});
  both.emit(Opcode::return_values, {2, sum, difference});
  const uint32_t callee = ProgramWriter::index_of(both);
  const uint32_t s = program.reg(), d = program.reg(), out = program.reg();
  program.main.emit(Opcode::call_function, {callee, 2, program.in[0], program.in[1], 2, s, d});
  program.main.emit(Opcode::call_function, {callee, 2, s, d, 2, s, d});  // (2a, 2b)
  program.main.emit(Opcode::scalar_multiply, {out, s, d});
  // Functions are finished in the order they were begun.
  program.main.emit(Opcode::return_values, {1, out});
  program.program.finish_function(std::move(program.main));
  program.program.finish_function(std::move(both));
  program.artifact.program = program.program.finish();
  EXPECT_EQ(run_scalars(open(program.artifact), {7, 3}), 14 * 6) << last_message();
}

TEST(interpreter, refuses_a_register_without_a_value) {
  ScalarProgram program(1);
  const uint32_t never = program.reg(), out = program.reg();
  program.main.emit(Opcode::scalar_add, {out, program.in[0], never});
  EXPECT_EQ(run_scalars(program.finish(out), {1}), std::nullopt);
  EXPECT_NE(last_message().find("register 1 is read by scalar_add before it has a value"), std::string::npos)
      << last_message();
}

TEST(interpreter, asserts_with_text_and_node) {
  ScalarProgram program(1);
  program.main.emit(Opcode::assert_true, {program.in[0], program.program.text("the batch must not be empty")},
                    "Squeeze_2");
  const Model model = program.finish(program.in[0]);
  EXPECT_EQ(run_scalars(model, {1}), 1);
  EXPECT_EQ(run_scalars(model, {0}), std::nullopt);
  EXPECT_EQ(last_message(), "the batch must not be empty");
  EXPECT_EQ(lathe_last_error()->code, LATHE_CHECK_FAILED);
  EXPECT_STREQ(lathe_last_error()->node, "Squeeze_2");
}

TEST(interpreter, asserts_with_the_numbers_that_were_met) {
  ScalarProgram program(2);
  const uint32_t same = program.main.reg(ValueKind::scalar);
  program.main.emit(Opcode::scalar_equal, {same, program.in[0], program.in[1]});
  program.main.emit(Opcode::assert_numbers,
                    {same, program.program.text("100%: a is %, it must be b, which is %"), 3,
                     program.program.immediate(7), program.in[0], program.in[1]},
                    "Add_2");
  const Model model = program.finish(program.in[0]);
  EXPECT_EQ(run_scalars(model, {4, 4}), 4);
  EXPECT_EQ(run_scalars(model, {3, -5}), std::nullopt);
  EXPECT_EQ(last_message(), "1007: a is 3, it must be b, which is -5");
  EXPECT_STREQ(lathe_last_error()->node, "Add_2");
}

TEST(interpreter, stops_at_the_limit_of_instructions) {
  ScalarProgram program(1);
  const uint32_t forever = program.main.label();
  program.main.bind(forever);
  program.main.emit(Opcode::jump, {forever});
  const Model model = program.finish(program.in[0]);
  const Context context = context_of(model, {.max_steps = 1000});
  const Value one = number(1);
  EXPECT_TRUE(run_values(context, {one.get()}, 1).empty());
  EXPECT_EQ(lathe_last_error()->code, LATHE_LIMIT_REACHED);
}

// ---- tensors ----

// One tensor in, one value out.
struct TensorProgram {
  ProgramWriter program;
  FunctionWriter main;
  uint32_t x;
  TestArtifact artifact;

  TensorProgram(DLDataType dtype, std::vector<abi::DimSpec> dims, abi::PortSpec output)
      : main(program.function("main")) {
    program.input({.name = "x", .dtype = dtype, .dims = dims});
    program.output(output);
    x = main.parameter(ValueKind::tensor, dtype, static_cast<int16_t>(dims.size()), "x");
  }
  uint32_t imm(int64_t value) { return program.immediate(value); }
  Model finish(uint32_t result) {
    main.emit(Opcode::return_values, {1, result});
    program.finish_function(std::move(main));
    artifact.program = program.finish();
    Model model = open(artifact);
    EXPECT_NE(model, nullptr) << last_message();
    return model;
  }
};

Managed run_tensor(const Context& context, const DLTensor& x) {
  const DLTensor* inputs[] = {&x};
  DLManagedTensor* output = nullptr;
  lathe_run(context.get(), inputs, 1, &output, 1);
  return Managed(output);
}

TEST(interpreter, views_parts_of_a_tensor) {
  TensorProgram program(f32, {{4}, {3}}, {.name = "y", .dtype = f32, .dims = {{3}, {2}}});
  const uint32_t y = program.main.reg(ValueKind::tensor, f32, 2);
  program.main.emit(Opcode::view, {y, program.x, program.imm(6), 2, program.imm(3), program.imm(2)});
  const Model model = program.finish(y);
  HostTensor<float> x(f32, {4, 3});
  std::iota(x.data.begin(), x.data.end(), 0.0f);
  const Managed out = run_tensor(context_of(model), x.view);
  ASSERT_NE(out, nullptr) << last_message();
  EXPECT_EQ(elements_of<float>(out->dl_tensor), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_NE(out->dl_tensor.data, x.data.data() + 6);  // a result never lies in the caller's input
}

TEST(interpreter, refuses_a_view_past_the_end) {
  for (const auto& [first, rows] : {std::pair{7, 3}, std::pair{-1, 1}, std::pair{13, 0}, std::pair{0, -1}}) {
    TensorProgram program(f32, {{4}, {3}}, {.name = "y", .dtype = f32, .dims = {{-1}, {2}}});
    const uint32_t y = program.main.reg(ValueKind::tensor, f32, 2);
    program.main.emit(Opcode::view, {y, program.x, program.imm(first), 2, program.imm(rows), program.imm(2)});
    const Model model = program.finish(y);
    HostTensor<float> x(f32, {4, 3});
    EXPECT_EQ(run_tensor(context_of(model), x.view), nullptr) << first;
    EXPECT_EQ(lathe_last_error()->code, LATHE_CHECK_FAILED);
  }
}

TEST(interpreter, reads_dims_and_elements_and_writes_elements) {
  // y = [rank, dim 0, dim 1, x[0], x[5]]
  for (const DLDataType dtype : {i64, i32, u8, DLDataType{kDLInt, 8, 1}, DLDataType{kDLInt, 16, 1}}) {
    TensorProgram program(dtype, {{-1, "N"}, {3}}, {.name = "y", .dtype = i64, .dims = {{5}}});
    FunctionWriter& main = program.main;
    const uint32_t y = main.reg(ValueKind::tensor, i64, 1), s = main.reg(ValueKind::scalar);
    main.emit(Opcode::alloc_tensor, {y, abi::absent, 1, program.imm(5)});
    main.emit(Opcode::read_rank, {s, program.x});
    main.emit(Opcode::store_scalar, {y, program.imm(0), s});
    for (int axis = 0; axis < 2; ++axis) {
      main.emit(Opcode::read_dim, {s, program.x, program.imm(axis)});
      main.emit(Opcode::store_scalar, {y, program.imm(1 + axis), s});
    }
    main.emit(Opcode::load_scalar, {s, program.x, program.imm(0)});
    main.emit(Opcode::store_scalar, {y, program.imm(3), s});
    main.emit(Opcode::load_scalar, {s, program.x, program.imm(5)});
    main.emit(Opcode::store_scalar, {y, program.imm(4), s});
    const Model model = program.finish(y);
    HostTensor<uint8_t> bytes(u8, {2 * 3 * dtype.bits / 8});
    bytes.data[0] = 100;
    const size_t size = dtype.bits / 8;
    for (size_t i = 0; i < size; ++i) bytes.data[5 * size + i] = 0xFF;  // -1 or 255
    int64_t shape[] = {2, 3};
    const DLTensor x = {bytes.data.data(), {kDLCPU, 0}, 2, dtype, shape, nullptr, 0};
    const Managed out = run_tensor(context_of(model), x);
    ASSERT_NE(out, nullptr) << last_message();
    EXPECT_EQ(elements_of<int64_t>(out->dl_tensor),
              (std::vector<int64_t>{2, 2, 3, 100, dtype.code == kDLUInt ? 255 : -1}));
  }
}

TEST(interpreter, refuses_elements_and_axes_that_are_not_there) {
  for (const bool is_axis : {true, false})
    for (const int64_t at : {-1, 6, 2000}) {
      TensorProgram program(i64, {{2}, {3}}, {.name = "y", .kind = ValueKind::scalar});
      const uint32_t s = program.main.reg(ValueKind::scalar);
      program.main.emit(is_axis ? Opcode::read_dim : Opcode::load_scalar, {s, program.x, program.imm(at)});
      const Model model = program.finish(s);
      HostTensor<int64_t> x(i64, {2, 3});
      const Value value(lathe_value_from_tensor(&x.view));
      EXPECT_TRUE(run_values(context_of(model), {value.get()}, 1).empty());
      EXPECT_EQ(lathe_last_error()->code, LATHE_CHECK_FAILED);
    }
}

TEST(interpreter, matches_shapes_or_says_both) {
  TensorProgram program(f32, {{-1}, {-1}}, {.name = "y", .dtype = f32, .dims = {{-1}, {-1}}});
  program.main.emit(Opcode::match_shape,
                    {program.x, program.program.text("cannot add bias"), 2, abi::absent, program.imm(3)}, "Add_9");
  const Model model = program.finish(program.x);
  const Context context = context_of(model);
  HostTensor<float> good(f32, {5, 3}), bad(f32, {5, 4});
  EXPECT_NE(run_tensor(context, good.view), nullptr) << last_message();
  EXPECT_EQ(run_tensor(context, bad.view), nullptr);
  EXPECT_EQ(last_message(), "cannot add bias: the shape is [5, 4] where [-1, 3] was expected");
  EXPECT_STREQ(lathe_last_error()->node, "Add_9");
}

TEST(interpreter, copies_between_storages_and_devices) {
  // x -> the null device -> an arena of the host -> the result
  TensorProgram program(f32, {{7}}, {.name = "y", .dtype = f32, .dims = {{7}}});
  FunctionWriter& main = program.main;
  const uint32_t far_arena = program.program.arena({.bytes = 64, .device = abi::Backend::null});
  const uint32_t near_arena = program.program.arena({.bytes = 128});
  const uint32_t far = program.program.storage({.index = far_arena, .bytes = 64, .device = abi::Backend::null});
  const uint32_t near = program.program.storage({.index = near_arena, .offset = 64, .bytes = 64});
  const uint32_t kernel = program.program.kernel({.name = "nothing", .buffer_count = 1, .device = abi::Backend::null});
  program.artifact.kernels = {[](const LatheServices*, void*, void* const*, const int64_t*) { return int32_t{99}; }};
  const uint32_t a = main.reg(ValueKind::tensor, f32, 1), b = main.reg(ValueKind::tensor, f32, 1);
  main.emit(Opcode::alloc_tensor, {a, far, 1, program.imm(7)});
  main.emit(Opcode::copy, {a, program.x});
  main.emit(Opcode::call_kernel, {kernel, 1, a, 0});  // recorded, not run
  main.emit(Opcode::alloc_tensor, {b, near, 1, program.imm(7)});
  main.emit(Opcode::copy, {b, a});
  const Model model = program.finish(b);
  HostTensor<float> x(f32, {7}, {1, 2, 3, 4, 5, 6, 7});
  const Context context = context_of(model);
  EXPECT_EQ(lathe_arena_bytes(context.get()), 64u + 128u);
  for (int round = 0; round < 3; ++round) {
    const Managed out = run_tensor(context, x.view);
    ASSERT_NE(out, nullptr) << last_message();
    EXPECT_EQ(elements_of<float>(out->dl_tensor), x.data);
  }
}

TEST(interpreter, brings_a_result_home_from_its_device) {
  TensorProgram program(f32, {{7}}, {.name = "y", .dtype = f32, .dims = {{7}}});
  const uint32_t arena = program.program.arena({.bytes = 64, .device = abi::Backend::null});
  const uint32_t far = program.program.storage({.index = arena, .bytes = 64, .device = abi::Backend::null});
  const uint32_t a = program.main.reg(ValueKind::tensor, f32, 1);
  program.main.emit(Opcode::alloc_tensor, {a, far, 1, program.imm(7)});
  program.main.emit(Opcode::copy, {a, program.x});
  const Model model = program.finish(a);
  HostTensor<float> x(f32, {7}, {1, 2, 3, 4, 5, 6, 7}), into(f32, {7});
  const Context context = context_of(model);
  const Managed out = run_tensor(context, x.view);
  ASSERT_NE(out, nullptr) << last_message();
  EXPECT_EQ(elements_of<float>(out->dl_tensor), x.data);
  const DLTensor *inputs[] = {&x.view}, *outputs[] = {&into.view};
  ASSERT_EQ(lathe_run_into(context.get(), inputs, 1, outputs, 1), LATHE_OK) << last_message();
  EXPECT_EQ(into.data, x.data);
}

TEST(interpreter, refuses_a_tensor_larger_than_its_storage) {
  TensorProgram program(f32, {{-1, "N"}}, {.name = "y", .dtype = f32, .dims = {{-1, "N"}}});
  const uint32_t arena = program.program.arena({.bytes = 64});
  const uint32_t storage = program.program.storage({.index = arena, .bytes = 16});
  const uint32_t y = program.main.reg(ValueKind::tensor, f32, 1), n = program.main.reg(ValueKind::scalar);
  program.main.emit(Opcode::read_dim, {n, program.x, program.imm(0)});
  program.main.emit(Opcode::alloc_tensor, {y, storage, 1, n});
  program.main.emit(Opcode::copy, {y, program.x});
  const Model model = program.finish(y);
  const Context context = context_of(model);
  HostTensor<float> fits(f32, {4}, {1, 2, 3, 4}), larger(f32, {5});
  const Managed out = run_tensor(context, fits.view);
  ASSERT_NE(out, nullptr) << last_message();
  EXPECT_EQ(elements_of<float>(out->dl_tensor), fits.data);
  EXPECT_EQ(run_tensor(context, larger.view), nullptr);
  EXPECT_NE(last_message().find("needs 20 bytes, but its storage has 16"), std::string::npos) << last_message();
}

TEST(interpreter, runs_kernels_on_dynamic_shapes) {
  TestArtifact artifact;
  write_dense(artifact, 3, {-1, 0, 1});
  const Model model = open(artifact);
  ASSERT_NE(model, nullptr) << last_message();
  const Context context = context_of(model);
  for (const int64_t rows : {2, 0, 1, 37, 5}) {
    HostTensor<float> x(f32, {rows, 3});
    std::vector<float> expected;
    for (size_t i = 0; i < x.data.size(); ++i) {
      x.data[i] = static_cast<float>(i % 4) - 1.5f;
      expected.push_back(std::max(0.0f, x.data[i] + static_cast<float>(i % 3) - 1));
    }
    const Managed out = run_tensor(context, x.view);
    ASSERT_NE(out, nullptr) << last_message();
    EXPECT_EQ(shape_of(out->dl_tensor), (std::vector<int64_t>{rows, 3}));
    EXPECT_EQ(elements_of<float>(out->dl_tensor), expected);
  }
}

TEST(interpreter, fills_a_register_anew_whatever_filled_it_before) {
  // One register is a constant, another constant, a planned tensor or a view, as x[0] says; runs follow in every order.
  TensorProgram program(i64, {{3}}, {.name = "y", .dtype = i64, .dims = {{3}}});
  FunctionWriter& main = program.main;
  program.artifact.weights.resize(48);
  const int64_t weights[] = {10, 11, 12, 20, 21, 22};
  std::memcpy(program.artifact.weights.data(), weights, sizeof(weights));
  const auto constant = [&](uint64_t offset) {
    return program.program.constant({.name = "c", .dtype = i64, .shape = {3}, .offset = offset, .bytes = 24});
  };
  const uint32_t arena = program.program.arena({.bytes = 64});
  const uint32_t storage = program.program.storage({.index = arena, .bytes = 64});
  const uint32_t y = main.reg(ValueKind::tensor, i64, 1), which = main.reg(ValueKind::scalar);
  const uint32_t is_it = main.reg(ValueKind::scalar), end = main.label();
  main.emit(Opcode::load_scalar, {which, program.x, program.imm(0)});
  const auto when = [&](int64_t number, Opcode opcode, const std::vector<uint32_t>& operands, bool is_copied) {
    const uint32_t yes = main.label(), no = main.label();
    main.emit(Opcode::scalar_equal, {is_it, which, program.imm(number)});
    main.emit(Opcode::branch, {is_it, yes, no});
    main.bind(yes);
    main.emit(opcode, operands);
    if (is_copied) main.emit(Opcode::copy, {y, program.x});
    main.emit(Opcode::jump, {end});
    main.bind(no);
  };
  when(0, Opcode::load_constant, {y, constant(0)}, false);
  when(1, Opcode::load_constant, {y, constant(24)}, false);
  when(2, Opcode::alloc_tensor, {y, storage, 1, program.imm(3)}, true);
  when(3, Opcode::view, {y, program.x, program.imm(0), 1, program.imm(3)}, false);
  main.emit(Opcode::move, {y, program.x});
  main.bind(end);
  const Model model = program.finish(y);
  const Context context = context_of(model);
  for (int64_t first = 0; first < 5; ++first)
    for (int64_t second = 0; second < 5; ++second)
      for (const int64_t chosen : {first, second, second, first}) {
        HostTensor<int64_t> x(i64, {3}, {chosen, 5, 6});
        const Managed out = run_tensor(context, x.view);
        ASSERT_NE(out, nullptr) << last_message();
        const std::vector<int64_t> expected =
            chosen > 1 ? x.data : std::vector<int64_t>(weights + 3 * chosen, weights + 3 * chosen + 3);
        EXPECT_EQ(elements_of<int64_t>(out->dl_tensor), expected) << first << " " << second;
      }
}

TEST(interpreter, reports_what_a_kernel_raised) {
  const LatheKernel raising = [](const LatheServices* services, void* state, void* const*, const int64_t*) {
    const auto body = [](void* opaque, int64_t begin, int64_t) {
      auto& [table, call] = *static_cast<std::pair<const LatheServices*, void*>*>(opaque);
      if (begin == 0) table->raise_error(call, LATHE_CHECK_FAILED, "index 9 is out of range [0, 4)", "Gather_5");
    };
    std::pair<const LatheServices*, void*> closure = {services, state};
    return services->parallel_for(state, body, &closure, 100, 1);
  };
  const LatheKernel silent = [](const LatheServices*, void*, void* const*, const int64_t*) { return int32_t{77}; };
  for (const bool has_text : {true, false}) {
    TensorProgram program(f32, {{1}}, {.name = "y", .dtype = f32, .dims = {{1}}});
    const uint32_t kernel = program.program.kernel({.name = "gather", .buffer_count = 1});
    program.artifact.kernels = {has_text ? raising : silent};
    program.main.emit(Opcode::call_kernel, {kernel, 1, program.x, 0}, "group_3");
    const Model model = program.finish(program.x);
    HostTensor<float> x(f32, {1});
    EXPECT_EQ(run_tensor(context_of(model), x.view), nullptr);
    EXPECT_EQ(last_message(), has_text ? "index 9 is out of range [0, 4)" : "kernel 'gather' failed with code 77");
    EXPECT_STREQ(lathe_last_error()->node, has_text ? "Gather_5" : "group_3");
  }
}

TEST(interpreter, keeps_constants_from_being_written) {
  TensorProgram program(i64, {{2}}, {.name = "y", .dtype = i64, .dims = {{2}}});
  program.main.emit(Opcode::store_scalar, {program.x, program.imm(0), program.imm(7)});
  const Model model = program.finish(program.x);
  HostTensor<int64_t> x(i64, {2}, {1, 2});
  EXPECT_EQ(run_tensor(context_of(model), x.view), nullptr);
  EXPECT_EQ(x.data, (std::vector<int64_t>{1, 2}));
}

}  // namespace
}  // namespace lathe::runtime::testing
