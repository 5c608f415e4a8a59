// Runs through the C interface: what callers may give, what they get, and what they are told.
#include <gtest/gtest.h>

#include <set>

#include "runtime/core/context.h"
#include "runtime/core/program_fixture.h"

namespace lathe::runtime::testing {
namespace {

using abi::Opcode;
using abi::ValueKind;

struct run : ::testing::Test {
  TestArtifact artifact;
  Model model;
  Context context;
  void SetUp() override {
    write_dense(artifact, 3, {-1, 0, 1});
    model = open(artifact);
    ASSERT_NE(model, nullptr) << last_message();
    context = context_of(model);
  }
  int32_t into(const DLTensor& x, const DLTensor& y) {
    const DLTensor *inputs[] = {&x}, *outputs[] = {&y};
    return lathe_run_into(context.get(), inputs, 1, outputs, 1);
  }
};

TEST_F(run, describes_the_model) {
  EXPECT_EQ(lathe_interface_version(), LATHE_INTERFACE_VERSION);
  ASSERT_EQ(lathe_input_count(model.get()), 1);
  ASSERT_EQ(lathe_output_count(model.get()), 1);
  const LatheValueInfo* x = lathe_input(model.get(), 0);
  EXPECT_STREQ(x->name, "x");
  EXPECT_EQ(x->kind, LATHE_TENSOR);
  EXPECT_EQ(x->dtype.code, kDLFloat);
  ASSERT_EQ(x->rank, 2);
  EXPECT_EQ(x->dims[0], -1);
  EXPECT_EQ(x->dims[1], 3);
  EXPECT_STREQ(x->symbols[0], "N");
  EXPECT_STREQ(x->symbols[1], "");
  EXPECT_STREQ(lathe_output(model.get(), 0)->name, "y");
  EXPECT_EQ(lathe_input(model.get(), 1), nullptr);
  EXPECT_EQ(lathe_input(model.get(), -1), nullptr);
  EXPECT_STREQ(lathe_metadata(model.get(), "builder"), "test");
  EXPECT_EQ(lathe_metadata(model.get(), "nothing"), nullptr);
  ASSERT_EQ(lathe_metadata_count(model.get()), 3);
  EXPECT_STREQ(lathe_metadata_key(model.get(), 2), "version");
  uint64_t bytes = 0;
  EXPECT_EQ(lathe_program(model.get(), &bytes), artifact.program.data());
  EXPECT_EQ(bytes, artifact.program.size());
}

TEST_F(run, writes_into_the_callers_tensor) {
  HostTensor<float> x(f32, {2, 3}, {1, 2, 3, -4, -5, -6}), y(f32, {2, 3});
  ASSERT_EQ(into(x.view, y.view), LATHE_OK) << last_message();
  EXPECT_EQ(y.data, (std::vector<float>{0, 2, 4, 0, 0, 0}));
}

TEST_F(run, writes_correctly_over_its_own_input) {
  HostTensor<float> x(f32, {2, 3}, {1, 2, 3, -4, -5, -6});
  ASSERT_EQ(into(x.view, x.view), LATHE_OK) << last_message();
  EXPECT_EQ(x.data, (std::vector<float>{0, 2, 4, 0, 0, 0}));
  // Half over it: rows 1 and 2 of a buffer of three rows are written from rows 0 and 1.
  HostTensor<float> rows(f32, {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  DLTensor from = rows.view, to = rows.view;
  int64_t shape[] = {2, 3};
  from.shape = to.shape = shape;
  to.byte_offset = 12;
  ASSERT_EQ(into(from, to), LATHE_OK) << last_message();
  EXPECT_EQ(rows.data, (std::vector<float>{1, 2, 3, 0, 2, 4, 3, 5, 7}));
}

TEST_F(run, reads_any_strides_offsets_and_alignments) {
  HostTensor<float> columns(f32, {3, 2}, {1, -4, 2, -5, 3, -6}), y(f32, {2, 3});
  int64_t shape[] = {2, 3}, strides[] = {1, 2};
  const DLTensor transposed = {columns.data.data(), {kDLCPU, 0}, 2, f32, shape, strides, 0};
  ASSERT_EQ(into(transposed, y.view), LATHE_OK) << last_message();
  EXPECT_EQ(y.data, (std::vector<float>{0, 2, 4, 0, 0, 0}));

  int64_t backwards[] = {-3, -1};
  HostTensor<float> x(f32, {6}, {-6, -5, -4, 3, 2, 1});
  const DLTensor reversed = {x.data.data(), {kDLCPU, 0}, 2, f32, shape, backwards, 5 * sizeof(float)};
  ASSERT_EQ(into(reversed, y.view), LATHE_OK) << last_message();
  EXPECT_EQ(y.data, (std::vector<float>{0, 2, 4, 0, 0, 0}));

  int64_t zero_strides[] = {0, 0};
  const DLTensor broadcast = {x.data.data(), {kDLCPU, 0}, 2, f32, shape, zero_strides, 3 * sizeof(float)};
  ASSERT_EQ(into(broadcast, y.view), LATHE_OK) << last_message();
  EXPECT_EQ(y.data, (std::vector<float>{2, 3, 4, 2, 3, 4}));

  std::vector<char> bytes(1 + 6 * sizeof(float)), odd(1 + 6 * sizeof(float));
  const float values[] = {1, 2, 3, -4, -5, -6};
  std::memcpy(bytes.data() + 1, values, sizeof(values));
  const DLTensor unaligned = {bytes.data(), {kDLCPU, 0}, 2, f32, shape, nullptr, 1};
  const DLTensor odd_output = {odd.data() + 1, {kDLCPU, 0}, 2, f32, shape, nullptr, 0};
  ASSERT_EQ(into(unaligned, odd_output), LATHE_OK) << last_message();
  float out[6];
  std::memcpy(out, odd.data() + 1, sizeof(out));
  EXPECT_EQ(std::vector<float>(out, out + 6), (std::vector<float>{0, 2, 4, 0, 0, 0}));
}

TEST_F(run, says_what_is_wrong_with_an_input) {
  HostTensor<float> good(f32, {2, 3}), wide(f32, {2, 4}), flat(f32, {6}), y(f32, {2, 3}), tall(f32, {3, 3});
  HostTensor<int64_t> integers(i64, {2, 3});
  const auto message_of = [&](const DLTensor& x, const DLTensor& out) {
    EXPECT_EQ(into(x, out), LATHE_INVALID_ARGUMENT);
    return last_message();
  };
  EXPECT_EQ(message_of(wide.view, y.view), "input 'x' must have the shape [N, 3], it has [2, 4]");
  EXPECT_EQ(message_of(flat.view, y.view), "input 'x' must have the shape [N, 3], it has rank 1");
  EXPECT_EQ(message_of(integers.view, y.view), "input 'x' must be float32, it is int64");
  EXPECT_EQ(message_of(good.view, tall.view), "output 'y' is given as float32[3, 3], but the result is float32[2, 3]");
  EXPECT_EQ(message_of(good.view, integers.view), "output 'y' is float32, it is given as int64");
  DLTensor elsewhere = good.view, empty = good.view, negative = good.view;
  elsewhere.device = {kDLCUDA, 0};
  EXPECT_NE(message_of(elsewhere, y.view).find("must be on the CPU"), std::string::npos);
  empty.data = nullptr;
  EXPECT_EQ(message_of(empty, y.view), "input 'x' has no data");
  int64_t shape[] = {-2, 3};
  negative.shape = shape;
  EXPECT_NE(message_of(negative, y.view).find("[-2, 3]"), std::string::npos);
  const DLTensor *inputs[] = {&good.view, &good.view}, *outputs[] = {&y.view};
  EXPECT_EQ(lathe_run_into(context.get(), inputs, 2, outputs, 1), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), "the model takes 1 inputs, 2 are given");
  EXPECT_EQ(lathe_run_into(context.get(), inputs, 1, outputs, 0), LATHE_INVALID_ARGUMENT);
  inputs[0] = nullptr;
  EXPECT_EQ(lathe_run_into(context.get(), inputs, 1, outputs, 1), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(lathe_run_into(nullptr, inputs, 1, outputs, 1), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(into(good.view, y.view), LATHE_OK) << last_message();  // and goes on
}

TEST(run_symbols, must_have_one_size_each) {
  TestArtifact artifact;
  abi::ProgramWriter program;
  program.input({.name = "a", .dtype = f32, .dims = {{-1, "N"}}});
  program.input({.name = "b", .dtype = f32, .dims = {{2}, {-1, "N"}}});
  program.output({.name = "y", .dtype = f32, .dims = {{-1, "N"}}});
  abi::FunctionWriter main = program.function("main");
  const uint32_t a = main.parameter(ValueKind::tensor, f32, 1);
  main.parameter(ValueKind::tensor, f32, 2);
  main.emit(Opcode::return_values, {1, a});
  program.finish_function(std::move(main));
  artifact.program = program.finish();
  const Model model = open(artifact);
  ASSERT_NE(model, nullptr) << last_message();
  const Context context = context_of(model);
  HostTensor<float> x(f32, {4}), good(f32, {2, 4}), bad(f32, {2, 5}), y(f32, {4});
  const DLTensor *inputs[] = {&x.view, &good.view}, *outputs[] = {&y.view};
  EXPECT_EQ(lathe_run_into(context.get(), inputs, 2, outputs, 1), LATHE_OK) << last_message();
  inputs[1] = &bad.view;
  EXPECT_EQ(lathe_run_into(context.get(), inputs, 2, outputs, 1), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), "input 'b' has size 5 for 'N' (axis 1 of [2, 5]), but input 'a' has 4");
}

TEST(run_outputs, are_distinct_even_where_the_program_returns_one_twice) {
  TestArtifact artifact;
  abi::ProgramWriter program;
  program.input({.name = "x", .dtype = f32, .dims = {{2}}});
  program.output({.name = "y", .dtype = f32, .dims = {{2}}});
  program.output({.name = "z", .dtype = f32, .dims = {{2}}});
  const uint32_t out = program.storage({.kind = abi::StorageKind::output});
  abi::FunctionWriter main = program.function("main");
  const uint32_t x = main.parameter(ValueKind::tensor, f32, 1), y = main.reg(ValueKind::tensor, f32, 1);
  main.emit(Opcode::alloc_tensor, {y, out, 1, program.immediate(2)});
  main.emit(Opcode::copy, {y, x});
  main.emit(Opcode::return_values, {2, y, y});
  program.finish_function(std::move(main));
  artifact.program = program.finish();
  const Model model = open(artifact);
  const Context context = context_of(model);
  HostTensor<float> in(f32, {2}, {1, 2});
  const DLTensor* inputs[] = {&in.view};
  DLManagedTensor* outputs[2] = {};
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, outputs, 2), LATHE_OK) << last_message();
  const Managed first(outputs[0]), second(outputs[1]);
  static_cast<float*>(first->dl_tensor.data)[0] = 9;
  EXPECT_EQ(elements_of<float>(second->dl_tensor), (std::vector<float>{1, 2}));
}

TEST_F(run, gives_results_that_outlive_the_context_and_the_model) {
  HostTensor<float> x(f32, {2, 3}, {1, 2, 3, -4, -5, -6});
  const DLTensor* inputs[] = {&x.view};
  DLManagedTensor* output = nullptr;
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, &output, 1), LATHE_OK) << last_message();
  const Managed held(output);
  model.reset();  // the context keeps what it needs
  DLManagedTensor* again = nullptr;
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, &again, 1), LATHE_OK) << last_message();
  const Managed also(again);
  context.reset();
  EXPECT_EQ(elements_of<float>(held->dl_tensor), (std::vector<float>{0, 2, 4, 0, 0, 0}));
  EXPECT_EQ(elements_of<float>(also->dl_tensor), elements_of<float>(held->dl_tensor));
}

TEST_F(run, keeps_the_first_failure_of_a_queue_for_the_wait) {
  LatheQueue* queue = nullptr;
  ASSERT_EQ(lathe_create_queue(context.get(), &queue), LATHE_OK);
  HostTensor<float> x(f32, {2, 3}, {1, 2, 3, -4, -5, -6}), wide(f32, {2, 4}), y(f32, {2, 3});
  const DLTensor *good[] = {&x.view}, *bad[] = {&wide.view}, *outputs[] = {&y.view};
  EXPECT_EQ(lathe_run_async(context.get(), queue, good, 1, outputs, 1), LATHE_OK);
  EXPECT_EQ(lathe_wait(queue), LATHE_OK);
  EXPECT_EQ(y.data[2], 4);
  lathe_run_async(context.get(), queue, bad, 1, outputs, 1);
  lathe_run_async(context.get(), queue, good, 2, outputs, 1);
  EXPECT_EQ(lathe_wait(queue), LATHE_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("[2, 4]"), std::string::npos);
  EXPECT_EQ(lathe_wait(queue), LATHE_OK);
  lathe_destroy_queue(queue);
}

TEST_F(run, stays_within_its_memory_limit) {
  const Context small = context_of(model, {.max_memory = 4096});
  HostTensor<float> x(f32, {10, 3}), large(f32, {1000, 3});
  const DLTensor* inputs[] = {&x.view};
  DLManagedTensor* output = nullptr;
  for (int round = 0; round < 100; ++round) {  // results that are given back do not count any more
    ASSERT_EQ(lathe_run(small.get(), inputs, 1, &output, 1), LATHE_OK) << last_message();
    output->deleter(output);
  }
  EXPECT_GE(lathe_peak_heap_bytes(small.get()), 120u);
  inputs[0] = &large.view;
  EXPECT_EQ(lathe_run(small.get(), inputs, 1, &output, 1), LATHE_LIMIT_REACHED);
  EXPECT_EQ(output, nullptr);
}

TEST_F(run, uses_the_memory_of_a_large_result_again) {
  HostTensor<float> x(f32, {10000, 3}), longer(f32, {20000, 3});
  const DLTensor* inputs[] = {&x.view};
  DLManagedTensor *first = nullptr, *second = nullptr, *third = nullptr;
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, &first, 1), LATHE_OK);
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, &second, 1), LATHE_OK);
  EXPECT_NE(first->dl_tensor.data, second->dl_tensor.data) << "both are in use";
  void* const freed = first->dl_tensor.data;
  first->deleter(first);
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, &third, 1), LATHE_OK);
  EXPECT_EQ(third->dl_tensor.data, freed);
  third->deleter(third);
  inputs[0] = &longer.view;
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, &third, 1), LATHE_OK);
  EXPECT_NE(third->dl_tensor.data, freed) << "another size";
  context.reset();  // results outlive their context
  second->deleter(second);
  third->deleter(third);
}

TEST_F(run, gives_up_kept_memory_before_the_limit_refuses) {
  HostTensor<float> x(f32, {10000, 3}), longer(f32, {20000, 3});
  const Context limited = context_of(model, {.max_memory = 600'000});  // either result fits, not both
  const DLTensor* inputs[] = {&x.view};
  DLManagedTensor* output = nullptr;
  for (int round = 0; round < 4; ++round) {
    inputs[0] = round % 2 ? &longer.view : &x.view;
    ASSERT_EQ(lathe_run(limited.get(), inputs, 1, &output, 1), LATHE_OK) << last_message();
    output->deleter(output);
  }
  EXPECT_LE(lathe_peak_heap_bytes(limited.get()), 600'000u);
}

TEST_F(run, gives_kernels_scratch_memory_and_takes_it_back) {
  TestArtifact made;
  const auto kernel = [](const LatheServices* services, void* state, void* const*, const int64_t* scalars) {
    void* kept = services->allocate(state, 1000, 256);
    void* freed = services->allocate(state, scalars[0], 64);
    if (kept == nullptr || freed == nullptr) return int32_t{LATHE_LIMIT_REACHED};
    std::memset(kept, 1, 1000);
    services->release(state, freed);
    services->release(state, nullptr);
    return reinterpret_cast<uintptr_t>(kept) % 256 == 0 ? int32_t{0} : int32_t{55};
  };
  write_call(made, kernel, "MatMul_3");
  const Model scratch = open(made);
  ASSERT_NE(scratch, nullptr) << last_message();
  const Context limited = context_of(scratch, {.max_memory = 10000});
  for (int round = 0; round < 30; ++round) {
    const Value little = number(5000), much = number(9500);
    EXPECT_EQ(run_values(limited, {little.get()}, 1).size(), 1u) << last_message();
    EXPECT_TRUE(run_values(limited, {much.get()}, 1).empty());
    EXPECT_EQ(lathe_last_error()->code, LATHE_LIMIT_REACHED) << last_message();
  }
}

TEST_F(run, keeps_large_scratch_memory_while_runs_use_it) {
  static std::vector<void*> given;
  given.clear();
  TestArtifact made;
  const auto kernel = [](const LatheServices* services, void* state, void* const*, const int64_t* scalars) {
    void* const blocks[] = {services->allocate(state, scalars[0], 64), services->allocate(state, scalars[0], 256)};
    for (void* block : blocks) {
      if (block == nullptr) return int32_t{LATHE_LIMIT_REACHED};
      std::memset(block, 1, static_cast<size_t>(scalars[0]));
      given.push_back(block);
    }
    for (void* block : blocks) services->release(state, block);
    return int32_t{0};
  };
  write_call(made, kernel, "MatMul_3");
  const Model scratch = open(made);
  ASSERT_NE(scratch, nullptr) << last_message();
  Context context = context_of(scratch);
  const auto run_with = [&](int64_t bytes) {
    const Value n = number(bytes);
    return run_values(context, {n.get()}, 1).size() == 1;
  };
  ASSERT_TRUE(run_with(3 << 20) && run_with(3 << 20)) << last_message();
  ASSERT_EQ(given.size(), 4u);
  EXPECT_EQ(std::set(given.begin(), given.begin() + 2), std::set(given.begin() + 2, given.end()));
  ASSERT_TRUE(run_with(2 << 20)) << last_message();  // fits what is there
  EXPECT_EQ(std::set(given.begin(), given.begin() + 2), std::set(given.begin() + 4, given.end()));
  context = context_of(scratch, {.max_memory = 9 << 20});
  ASSERT_TRUE(run_with(3 << 20) && run_with(4 << 20)) << last_message();  // what is too small goes
  const auto held = [&] { return context->account->bytes.load(); };
  EXPECT_GE(held(), 8u << 20);
  ASSERT_TRUE(run_with(100)) << last_message();
  EXPECT_EQ(held(), 0u) << "what a run does not use goes";
  EXPECT_FALSE(run_with(5 << 20));
  EXPECT_EQ(lathe_last_error()->code, LATHE_LIMIT_REACHED) << last_message();
  EXPECT_TRUE(run_with(4 << 20)) << last_message();
}

TEST_F(run, profiles_by_instruction_and_span) {
  TestArtifact made;
  write_dense(made, 3, {1, 1, 1});
  made.kernels[0] = [](const LatheServices* services, void* state, void* const*, const int64_t*) {
    services->profile_begin(state, "packing");
    services->profile_end(state);
    return int32_t{0};
  };
  const Model profiled = open(made);
  const Context at = context_of(profiled);
  HostTensor<float> x(f32, {2, 3}), y(f32, {2, 3});
  const DLTensor *inputs[] = {&x.view}, *outputs[] = {&y.view};
  EXPECT_EQ(lathe_run_into(at.get(), inputs, 1, outputs, 1), LATHE_OK);
  EXPECT_EQ(lathe_profile_count(at.get()), 0);
  lathe_profile(at.get(), 1);
  for (int round = 0; round < 5; ++round) EXPECT_EQ(lathe_run_into(at.get(), inputs, 1, outputs, 1), LATHE_OK);
  bool has_relu = false, has_span = false;
  for (int32_t i = 0; i < lathe_profile_count(at.get()); ++i) {
    LatheProfileEntry entry;
    ASSERT_EQ(lathe_profile_entry(at.get(), i, &entry), LATHE_OK);
    EXPECT_EQ(entry.calls, 5u) << entry.name;
    has_relu = has_relu || (std::string(entry.name) == "relu" && std::string(entry.node) == "Relu_1");
    has_span = has_span || std::string(entry.name) == "packing";
  }
  EXPECT_TRUE(has_relu && has_span);
  LatheProfileEntry entry;
  EXPECT_NE(lathe_profile_entry(at.get(), 99, &entry), LATHE_OK);
  lathe_profile_reset(at.get());
  EXPECT_EQ(lathe_profile_count(at.get()), 0);
}

TEST(values, refuse_what_they_are_not) {
  const Value scalar = number(3);
  EXPECT_EQ(lathe_value_tensor(scalar.get()), nullptr);
  EXPECT_EQ(lathe_value_get(scalar.get(), 0), nullptr);
  EXPECT_EQ(lathe_value_kind(nullptr), LATHE_EMPTY);
  uint64_t bytes = 0;
  EXPECT_EQ(lathe_value_get_string(scalar.get(), 0, &bytes), nullptr);
  EXPECT_EQ(lathe_value_make(LATHE_TENSOR, nullptr, 0), nullptr);
  const int64_t negative[] = {-1}, huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(lathe_value_make_tensor(f32, 1, negative), nullptr);
  EXPECT_EQ(lathe_value_make_tensor(f32, 2, huge), nullptr);
  EXPECT_EQ(lathe_value_make_strings(2, huge), nullptr);
  const int64_t no_machine_has[] = {int64_t{1} << 55};
  EXPECT_EQ(lathe_value_make_tensor(f32, 1, no_machine_has), nullptr);
  EXPECT_EQ(lathe_last_error()->code, LATHE_OUT_OF_MEMORY);
  const int64_t one[] = {1};
  const Value strings(lathe_value_make_strings(1, one));
  EXPECT_EQ(lathe_value_set_string(strings.get(), 1, "x", 1), LATHE_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace lathe::runtime::testing
