// Strings, tuples, sequences, optionals and runtime kernels in the register program.
#include <gtest/gtest.h>

#include "runtime/core/program_fixture.h"

namespace lathe::runtime::testing {
namespace {

using abi::FunctionWriter;
using abi::Opcode;
using abi::ProgramWriter;
using abi::ValueKind;

struct ValueProgram {
  ProgramWriter program;
  FunctionWriter main;
  TestArtifact artifact;

  ValueProgram() : main(program.function("main")) {}
  uint32_t input(ValueKind kind, DLDataType dtype = {}) {
    program.input({.name = "in", .kind = kind, .dtype = dtype, .unknown_rank = true});
    return main.parameter(kind, dtype);
  }
  uint32_t imm(int64_t value) { return program.immediate(value); }
  Model finish(const std::vector<std::pair<uint32_t, ValueKind>>& results, DLDataType dtype = {}) {
    std::vector<uint32_t> words = {static_cast<uint32_t>(results.size())};
    for (const auto& [reg, kind] : results) {
      program.output({.name = "out",
                      .kind = kind,
                      .dtype = kind == ValueKind::tensor ? dtype : DLDataType{},
                      .unknown_rank = true});
      words.push_back(reg);
    }
    main.emit(Opcode::return_values, words);
    program.finish_function(std::move(main));
    artifact.program = program.finish();
    Model model = open(artifact);
    EXPECT_NE(model, nullptr) << last_message();
    return model;
  }
};

Value tensor_of(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  HostTensor<float> host(f32, {count}, std::move(values));
  return Value(lathe_value_from_tensor(&host.view));
}
std::vector<float> floats_of(const LatheValue* value) { return elements_of<float>(*lathe_value_tensor(value)); }

std::vector<std::string> strings_of(const LatheValue* value) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < lathe_value_count(value); ++i) {
    uint64_t bytes = 0;
    const char* text = lathe_value_get_string(value, i, &bytes);
    out.emplace_back(text, bytes);
  }
  return out;
}

TEST(interpreter_values, makes_and_reads_tuples) {
  ValueProgram p;
  const uint32_t a = p.input(ValueKind::tensor, f32), b = p.input(ValueKind::scalar);
  const uint32_t tuple = p.main.reg(ValueKind::tuple), x = p.main.reg(ValueKind::tensor, f32),
                 s = p.main.reg(ValueKind::scalar);
  p.main.emit(Opcode::make_tuple, {tuple, 2, a, b});
  p.main.emit(Opcode::tuple_get, {x, tuple, p.imm(0)});
  p.main.emit(Opcode::tuple_get, {s, tuple, p.imm(1)});
  const Model model = p.finish({{x, ValueKind::tensor}, {s, ValueKind::scalar}, {tuple, ValueKind::tuple}}, f32);
  const Value first = tensor_of({1, 2, 3}), second = number(42);
  const std::vector<Value> out = run_values(context_of(model), {first.get(), second.get()}, 3);
  ASSERT_EQ(out.size(), 3u) << last_message();
  EXPECT_EQ(floats_of(out[0].get()), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(lathe_value_scalar(out[1].get()), 42);
  EXPECT_EQ(lathe_value_count(out[2].get()), 2);
  const Value member(lathe_value_get(out[2].get(), 1));
  EXPECT_EQ(lathe_value_scalar(member.get()), 42);
}

TEST(interpreter_values, refuses_a_member_of_another_kind_or_none) {
  for (const int position : {1, 5, -1}) {
    ValueProgram p;
    const uint32_t a = p.input(ValueKind::tensor, f32), b = p.input(ValueKind::scalar);
    const uint32_t tuple = p.main.reg(ValueKind::tuple), x = p.main.reg(ValueKind::tensor, f32);
    p.main.emit(Opcode::make_tuple, {tuple, 2, a, b});
    p.main.emit(Opcode::tuple_get, {x, tuple, p.imm(position)});
    const Model model = p.finish({{x, ValueKind::tensor}}, f32);
    const Value first = tensor_of({1}), second = number(42);
    EXPECT_TRUE(run_values(context_of(model), {first.get(), second.get()}, 1).empty());
    EXPECT_EQ(lathe_last_error()->code, LATHE_CHECK_FAILED) << last_message();
  }
}

TEST(interpreter_values, inserts_into_sequences_and_erases) {
  ValueProgram p;
  const uint32_t a = p.input(ValueKind::tensor, f32), b = p.input(ValueKind::tensor, f32),
                 c = p.input(ValueKind::tensor, f32);
  const uint32_t q = p.main.reg(ValueKind::sequence), more = p.main.reg(ValueKind::sequence),
                 fewer = p.main.reg(ValueKind::sequence);
  const uint32_t x = p.main.reg(ValueKind::tensor, f32), n = p.main.reg(ValueKind::scalar);
  p.main.emit(Opcode::make_sequence, {q, 1, a});                     // a
  p.main.emit(Opcode::sequence_insert, {q, q, abi::absent, b});      // a b
  p.main.emit(Opcode::sequence_insert, {more, q, p.imm(-1), c});     // a c b
  p.main.emit(Opcode::sequence_erase, {fewer, more, p.imm(0)});      // c b
  p.main.emit(Opcode::sequence_erase, {fewer, fewer, abi::absent});  // c
  p.main.emit(Opcode::sequence_at, {x, more, p.imm(-2)});            // c
  p.main.emit(Opcode::sequence_length, {n, more});
  const Model model = p.finish({{q, ValueKind::sequence},
                                {more, ValueKind::sequence},
                                {fewer, ValueKind::sequence},
                                {x, ValueKind::tensor},
                                {n, ValueKind::scalar}},
                               f32);
  const Value va = tensor_of({1}), vb = tensor_of({2, 2}), vc = tensor_of({3, 3, 3});
  const Context context = context_of(model);
  for (int round = 0; round < 2; ++round) {
    const std::vector<Value> out = run_values(context, {va.get(), vb.get(), vc.get()}, 5);
    ASSERT_EQ(out.size(), 5u) << last_message();
    const auto sizes = [](const LatheValue* sequence) {
      std::vector<size_t> sizes;
      for (int64_t i = 0; i < lathe_value_count(sequence); ++i) {
        const Value member(lathe_value_get(sequence, i));
        sizes.push_back(floats_of(member.get()).size());
      }
      return sizes;
    };
    EXPECT_EQ(sizes(out[0].get()), (std::vector<size_t>{1, 2}));
    EXPECT_EQ(sizes(out[1].get()), (std::vector<size_t>{1, 3, 2}));
    EXPECT_EQ(sizes(out[2].get()), (std::vector<size_t>{3}));
    EXPECT_EQ(floats_of(out[3].get()), (std::vector<float>{3, 3, 3}));
    EXPECT_EQ(lathe_value_scalar(out[4].get()), 3);
  }
}

TEST(interpreter_values, keeps_what_it_put_into_a_sequence) {
  // One tensor in an arena is written again and again and collected each time: the sequence holds what it was.
  ValueProgram p;
  const uint32_t n = p.input(ValueKind::scalar);
  const uint32_t arena = p.program.arena({.bytes = 64}), storage = p.program.storage({.index = arena, .bytes = 64});
  const uint32_t t = p.main.reg(ValueKind::tensor, i64), q = p.main.reg(ValueKind::sequence),
                 i = p.main.reg(ValueKind::scalar);
  const uint32_t body = p.main.label(), end = p.main.label();
  p.main.emit(Opcode::make_sequence, {q, 0});
  p.main.emit(Opcode::alloc_tensor, {t, storage, 1, p.imm(1)});
  p.main.emit(Opcode::loop_begin, {i, p.imm(0), n, end});
  p.main.bind(body);
  p.main.emit(Opcode::store_scalar, {t, p.imm(0), i});
  p.main.emit(Opcode::sequence_insert, {q, q, abi::absent, t});
  p.main.emit(Opcode::loop_next, {i, n, body});
  p.main.bind(end);
  const Model model = p.finish({{q, ValueKind::sequence}});
  const Value count = number(100);
  const std::vector<Value> out = run_values(context_of(model), {count.get()}, 1);
  ASSERT_EQ(out.size(), 1u) << last_message();
  ASSERT_EQ(lathe_value_count(out[0].get()), 100);
  for (int64_t k = 0; k < 100; ++k) {
    const Value member(lathe_value_get(out[0].get(), k));
    EXPECT_EQ(elements_of<int64_t>(*lathe_value_tensor(member.get())), std::vector<int64_t>{k});
  }
}

TEST(interpreter_values, has_optionals_with_and_without_a_value) {
  for (const bool is_full : {true, false}) {
    ValueProgram p;
    const uint32_t a = p.input(ValueKind::tensor, f32);
    const uint32_t o = p.main.reg(ValueKind::optional), has = p.main.reg(ValueKind::scalar),
                   x = p.main.reg(ValueKind::tensor, f32);
    p.main.emit(Opcode::make_optional, {o, is_full ? a : abi::absent});
    p.main.emit(Opcode::optional_has, {has, o});
    const uint32_t full = p.main.label(), end = p.main.label();
    p.main.emit(Opcode::branch, {has, full, end});
    p.main.bind(full);
    p.main.emit(Opcode::optional_get, {x, o});
    p.main.bind(end);
    const Model model = p.finish({{has, ValueKind::scalar}, {o, ValueKind::optional}});
    const Value va = tensor_of({5});
    const std::vector<Value> out = run_values(context_of(model), {va.get()}, 2);
    ASSERT_EQ(out.size(), 2u) << last_message();
    EXPECT_EQ(lathe_value_scalar(out[0].get()), is_full ? 1 : 0);
    EXPECT_EQ(lathe_value_count(out[1].get()), is_full ? 1 : 0);
  }
  ValueProgram p;
  const uint32_t o = p.input(ValueKind::optional), x = p.main.reg(ValueKind::tensor, f32);
  p.main.emit(Opcode::optional_get, {x, o});
  const Model model = p.finish({{x, ValueKind::tensor}}, f32);
  const Value nothing(lathe_value_make(LATHE_OPTIONAL, nullptr, 0));
  EXPECT_TRUE(run_values(context_of(model), {nothing.get()}, 1).empty());
  EXPECT_EQ(last_message(), "an optional without a value is read");
}

TEST(interpreter_values, bounds_how_deep_values_nest) {
  ValueProgram p;
  const uint32_t n = p.input(ValueKind::scalar), i = p.main.reg(ValueKind::scalar), u = p.main.reg(ValueKind::tuple);
  const uint32_t body = p.main.label(), end = p.main.label();
  p.main.emit(Opcode::make_tuple, {u, 0});
  p.main.emit(Opcode::loop_begin, {i, p.imm(0), n, end});
  p.main.bind(body);
  p.main.emit(Opcode::make_tuple, {u, 1, u});
  p.main.emit(Opcode::loop_next, {i, n, body});
  p.main.bind(end);
  const Model model = p.finish({{u, ValueKind::tuple}});
  const Context context = context_of(model);
  const Value few = number(30), many = number(1000000);
  EXPECT_EQ(run_values(context, {few.get()}, 1).size(), 1u) << last_message();
  EXPECT_TRUE(run_values(context, {many.get()}, 1).empty());
  EXPECT_EQ(lathe_last_error()->code, LATHE_LIMIT_REACHED);
}

TEST(interpreter_values, loads_allocates_and_copies_strings) {
  ValueProgram p;
  const uint32_t constant =
      p.program.string_constant("words", {2, 2}, {"a", "", "long enough to be on the heap", "zwölf"});
  const uint32_t words = p.main.reg(ValueKind::strings), copy = p.main.reg(ValueKind::strings),
                 empty = p.main.reg(ValueKind::strings);
  p.main.emit(Opcode::load_constant, {words, constant});
  p.main.emit(Opcode::copy_strings, {copy, words});
  p.main.emit(Opcode::alloc_strings, {empty, 1, p.imm(3)});
  const Model model = p.finish({{words, ValueKind::strings}, {copy, ValueKind::strings}, {empty, ValueKind::strings}});
  const std::vector<Value> out = run_values(context_of(model), {}, 3);
  ASSERT_EQ(out.size(), 3u) << last_message();
  const std::vector<std::string> expected = {"a", "", "long enough to be on the heap", "zwölf"};
  EXPECT_EQ(strings_of(out[0].get()), expected);
  EXPECT_EQ(strings_of(out[1].get()), expected);
  EXPECT_EQ(strings_of(out[2].get()), std::vector<std::string>(3));
  int32_t rank = 0;
  const int64_t* shape = nullptr;
  ASSERT_EQ(lathe_value_strings_shape(out[1].get(), &rank, &shape), LATHE_OK);
  EXPECT_EQ(std::vector<int64_t>(shape, shape + rank), (std::vector<int64_t>{2, 2}));
}

TEST(interpreter_values, strings_are_numbers_inside_of_a_run) {
  constexpr DLDataType handle = {kDLOpaqueHandle, 64, 1};
  ValueProgram p;
  const uint32_t in = p.input(ValueKind::sequence), constant = p.program.string_constant("w", {3}, {"b", "", "a"});
  const uint32_t words = p.main.reg(ValueKind::strings), a = p.main.reg(ValueKind::tensor, handle),
                 b = p.main.reg(ValueKind::tensor, handle), q = p.main.reg(ValueKind::sequence),
                 back = p.main.reg(ValueKind::sequence), v = p.main.reg(ValueKind::tensor, i64, 1);
  p.main.emit(Opcode::load_constant, {words, constant});
  p.main.emit(Opcode::take_strings, {a, words});
  p.main.emit(Opcode::take_strings, {q, in});
  p.main.emit(Opcode::sequence_at, {b, q, p.imm(0)});
  p.main.emit(Opcode::sequence_insert, {q, q, p.imm(0), a});
  p.main.emit(Opcode::give_strings, {back, q});
  p.main.emit(Opcode::view, {v, b, p.imm(0), 1, p.imm(2)});
  const Model model = p.finish({{back, ValueKind::sequence}, {v, ValueKind::tensor}}, i64);
  const int64_t two[] = {2};
  const Value given(lathe_value_make_strings(1, two));
  lathe_value_set_string(given.get(), 0, "a", 1);
  lathe_value_set_string(given.get(), 1, "new", 3);
  LatheValue* const members[] = {given.get()};
  const Value sequence(lathe_value_make(LATHE_SEQUENCE, members, 1));
  const Context context = context_of(model);
  for (int round = 0; round < 2; ++round) {  // numbers begin anew with each run
    const std::vector<Value> out = run_values(context, {sequence.get()}, 2);
    ASSERT_EQ(out.size(), 2u) << last_message();
    const Value first(lathe_value_get(out[0].get(), 0)), second(lathe_value_get(out[0].get(), 1));
    EXPECT_EQ(strings_of(first.get()), (std::vector<std::string>{"b", "", "a"}));
    EXPECT_EQ(strings_of(second.get()), (std::vector<std::string>{"a", "new"}));
    EXPECT_EQ(elements_of<int64_t>(*lathe_value_tensor(out[1].get())), (std::vector<int64_t>{2, 3}));
  }
}

TEST(interpreter_values, a_number_that_no_string_has_is_refused) {
  ValueProgram p;
  const uint32_t in = p.input(ValueKind::tensor, i64), out = p.main.reg(ValueKind::strings),
                 handles = p.main.reg(ValueKind::tensor, {kDLOpaqueHandle, 64, 1}, 1);
  p.main.emit(Opcode::view, {handles, in, p.imm(0), 1, p.imm(1)});
  p.main.emit(Opcode::give_strings, {out, handles}, "Give_2");
  const Model model = p.finish({{out, ValueKind::strings}});
  for (const int64_t wrong : {int64_t{1}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    HostTensor<int64_t> host(i64, {1}, {wrong});
    const Value value(lathe_value_from_tensor(&host.view));
    EXPECT_TRUE(run_values(context_of(model), {value.get()}, 1).empty());
    EXPECT_EQ(lathe_last_error()->code, LATHE_CHECK_FAILED);
    EXPECT_NE(last_message().find("no string's number"), std::string::npos) << last_message();
    EXPECT_STREQ(lathe_last_error()->node, "Give_2");
  }
}

// Repeats its input string as often as its attributes say.
int32_t repeat_kernel(const LatheRuntimeCall* call) {
  const LatheValueTable& values = *call->values;
  if (values.kind(call->inputs[0]) != LATHE_STRINGS || call->attribute_bytes != sizeof(int64_t))
    return call->services->raise_error(call->call_state, LATHE_INVALID_ARGUMENT, "repeat takes strings", call->node);
  int32_t rank = 0;
  const int64_t* shape = nullptr;
  values.strings_shape(call->inputs[0], &rank, &shape);
  LatheValue* out = call->outputs[0] = values.make_strings(rank, shape);
  for (int64_t i = 0; i < values.count(out); ++i) {
    uint64_t bytes = 0;
    const char* text = values.get_string(call->inputs[0], i, &bytes);
    std::string repeated;
    for (int64_t k = 0; k < *static_cast<const int64_t*>(call->attributes); ++k) repeated += std::string(text, bytes);
    values.set_string(out, i, repeated.data(), repeated.size());
  }
  return 0;
}

TEST(interpreter_values, calls_runtime_kernels_from_the_artifact_or_a_table) {
  const LatheRuntimeKernelEntry entry = {"strings.repeat", repeat_kernel};
  const LatheRuntimeKernelTable table = {LATHE_VALUE_TABLE_VERSION, sizeof(LatheRuntimeKernelTable), "strings", &entry,
                                         1};
  const LatheRuntimeKernelTable* tables[] = {&table};
  for (const bool is_in_artifact : {true, false}) {
    ValueProgram p;
    const uint32_t in = p.input(ValueKind::strings), out = p.main.reg(ValueKind::strings);
    const int64_t times = 3;
    const uint32_t attributes = p.program.slice(&times, sizeof(times));
    p.main.emit(Opcode::call_runtime_kernel, {p.program.runtime_kernel("strings.repeat"), attributes, 1, in, 1, out},
                "Repeat_0");
    p.program.output({.name = "out", .kind = ValueKind::strings, .unknown_rank = true});
    p.main.emit(Opcode::return_values, {1, out});
    p.program.finish_function(std::move(p.main));
    p.artifact.program = p.program.finish();
    p.artifact.runtime_kernels = {{"strings.repeat", is_in_artifact ? repeat_kernel : nullptr}};
    if (!is_in_artifact) {
      EXPECT_EQ(open(p.artifact), nullptr);
      EXPECT_EQ(lathe_last_error()->code, LATHE_MISSING_KERNEL) << last_message();
    }
    LatheOpenOptions options = {.size = sizeof(options),
                                .symbol = nullptr,
                                .weights_path = nullptr,
                                .runtime_kernels = tables,
                                .runtime_kernel_tables = 1};
    const Model model = open(p.artifact, is_in_artifact ? nullptr : &options);
    ASSERT_NE(model, nullptr) << last_message();
    const int64_t shape[] = {2};
    const Value words(lathe_value_make_strings(1, shape));
    lathe_value_set_string(words.get(), 0, "ab", 2);
    const std::vector<Value> result = run_values(context_of(model), {words.get()}, 1);
    ASSERT_EQ(result.size(), 1u) << last_message();
    EXPECT_EQ(strings_of(result[0].get()), (std::vector<std::string>{"ababab", ""}));
  }
}

TEST(interpreter_values, gives_a_kernels_result_memory_of_its_own) {
  // The kernel hands its input on; the input lies in the caller's memory.
  ValueProgram p;
  const uint32_t in = p.input(ValueKind::tensor, f32), out = p.main.reg(ValueKind::tensor, f32);
  p.artifact.runtime_kernels = {{"same", [](const LatheRuntimeCall* call) {
                                   call->outputs[0] = call->values->retain(call->inputs[0]);
                                   return int32_t{0};
                                 }}};
  p.main.emit(Opcode::call_runtime_kernel, {p.program.runtime_kernel("same"), abi::absent, 1, in, 1, out});
  const Model model = p.finish({{out, ValueKind::tensor}}, f32);
  HostTensor<float> x(f32, {3}, {1, 2, 3});
  const DLTensor* inputs[] = {&x.view};
  DLManagedTensor* output = nullptr;
  const Context context = context_of(model);
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, &output, 1), LATHE_OK) << last_message();
  const Managed held(output);
  x.data = {9, 9, 9};
  EXPECT_EQ(elements_of<float>(output->dl_tensor), (std::vector<float>{1, 2, 3}));
}

TEST(interpreter_values, says_when_a_runtime_kernel_sets_no_result) {
  ValueProgram p;
  const uint32_t out = p.main.reg(ValueKind::tensor, f32);
  p.artifact.runtime_kernels = {{"lazy", [](const LatheRuntimeCall*) { return int32_t{0}; }}};
  p.main.emit(Opcode::call_runtime_kernel, {p.program.runtime_kernel("lazy"), abi::absent, 0, 1, out});
  const Model model = p.finish({{out, ValueKind::tensor}}, f32);
  EXPECT_TRUE(run_values(context_of(model), {}, 1).empty());
  EXPECT_EQ(last_message(), "runtime kernel 'lazy' did not set its result 0");
}

}  // namespace
}  // namespace lathe::runtime::testing
