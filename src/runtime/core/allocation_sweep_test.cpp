// Every place where the runtime asks for memory fails once: the C interface gives an error code, nothing leaks, and the
// same call works afterwards. The linker leads the runtime's calls of the C library through here (--wrap).
#include "runtime/core/allocation_sweep.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>

#include "gtest/gtest.h"
#include "runtime/core/every_instruction_fixture.h"
#include "runtime/core/program_fixture.h"

namespace {

// Counted while a sweep is on; `fail_at` is the number of the request that fails, from 0.
struct Requests {
  std::atomic<bool> is_on;
  std::atomic<int64_t> made, fail_at, held;
};
Requests requests;

bool fails() { return requests.is_on && requests.made.fetch_add(1) == requests.fail_at; }

void* held(void* memory) {
  if (requests.is_on && memory != nullptr) ++requests.held;
  return memory;
}

}  // namespace

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
int __real_posix_memalign(void** memory, size_t alignment, size_t bytes);
void __real_free(void* memory);
void* __real_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_memfd_create(const char* name, unsigned flags);

void* __wrap_malloc(size_t bytes) { return fails() ? nullptr : held(__real_malloc(bytes)); }
void* __wrap_calloc(size_t count, size_t bytes) { return fails() ? nullptr : held(__real_calloc(count, bytes)); }
void* __wrap_realloc(void* memory, size_t bytes) {
  if (fails()) return nullptr;
  void* moved = __real_realloc(memory, bytes);
  return memory == nullptr ? held(moved) : moved;
}
int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (fails()) return ENOMEM;
  const int status = __real_posix_memalign(memory, alignment, bytes);
  if (status == 0) held(*memory);
  return status;
}
void __wrap_free(void* memory) {
  if (requests.is_on && memory != nullptr) --requests.held;
  __real_free(memory);
}
void* __wrap_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  return fails() ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, file, offset);
}
int __wrap_memfd_create(const char* name, unsigned flags) { return fails() ? -1 : __real_memfd_create(name, flags); }
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"

namespace lathe::runtime::testing {
namespace {

using abi::Opcode;
using abi::ValueKind;

}  // namespace

Swept sweep(const std::function<int32_t()>& work) {
  EXPECT_EQ(work(), LATHE_OK) << last_message();  // what is made once for the process is there
  Swept swept;
  for (;; ++swept.places) {
    requests.made = 0;
    requests.held = 0;
    requests.fail_at = swept.places;
    requests.is_on = true;
    const int32_t status = work();
    requests.is_on = false;
    EXPECT_EQ(requests.held, 0) << "request " << swept.places << " failed and " << requests.held << " stay allocated";
    if (requests.made <= swept.places) {
      EXPECT_EQ(status, LATHE_OK) << last_message();
      break;
    }
    if (status == LATHE_OK) continue;  // done without: the work has looked at its results
    ++swept.refused;
    EXPECT_TRUE(status == LATHE_OUT_OF_MEMORY || status == LATHE_IO_ERROR) << status << ": " << last_message();
    EXPECT_EQ(lathe_last_error()->code, status);
    EXPECT_NE(last_message(), "");
    EXPECT_EQ(work(), LATHE_OK) << "after request " << swept.places << " had failed: " << last_message();
  }
  return swept;
}

namespace {

int32_t status_of(bool is_good) { return is_good ? int32_t{LATHE_OK} : lathe_last_error()->code; }

TEST(allocation_sweep, of_opening_a_model_and_making_a_context) {
  TestArtifact made;
  write_everything(made);
  const Swept opening = sweep([&] { return status_of(open(made) != nullptr); });
  EXPECT_GE(opening.refused, 8);
  EXPECT_EQ(opening.refused, opening.places) << "a model lacks something that it could not allocate";
  const Model model = open(made);
  const Swept contexts = sweep([&] { return status_of(context_of(model) != nullptr); });
  EXPECT_GE(contexts.refused, 6);
  EXPECT_EQ(contexts.refused, contexts.places);
}

TEST(allocation_sweep, of_a_run_with_every_instruction) {
  TestArtifact made;
  write_everything(made);
  const Model model = open(made);
  HostTensor<int64_t> x(i64, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Value value(lathe_value_from_tensor(&x.view));
  const auto run = [&](const Context& context) {
    if (context == nullptr) return lathe_last_error()->code;
    const std::vector<Value> results = run_values(context, {value.get()}, 6);
    if (results.empty()) return lathe_last_error()->code;
    EXPECT_EQ(elements_of<int64_t>(*lathe_value_tensor(results[0].get())), x.data);
    EXPECT_EQ(lathe_value_count(results[2].get()), 6);
    return int32_t{LATHE_OK};
  };
  // Fresh contexts, and one whose registers, storages and lists are there already.
  EXPECT_GE(sweep([&] { return run(context_of(model, {.threads = 1})); }).refused, 40);
  const Context context = context_of(model, {.threads = 1});
  EXPECT_GE(sweep([&] { return run(context); }).refused, 20);
}

TEST(allocation_sweep, of_runs_on_tensors) {
  TestArtifact made;
  write_dense(made, 3, {1, 1, 1});
  const Model model = open(made);
  // Strides make the input be copied; a new size makes the storage grow.
  HostTensor<float> x(f32, {2, 3}, {1, 2, 3, -4, -5, -6}), y(f32, {3, 2});
  HostTensor<float> transposed(f32, {2, 3});
  int64_t strides[] = {1, 2};
  transposed.data = {1, -4, 2, -5, 3, -6};
  transposed.view.strides = strides;
  const std::vector<float> expected = {2, 3, 4, 0, 0, 0};
  for (const DLTensor* input : {&x.view, &transposed.view}) {
    const DLTensor* inputs[] = {input};
    const Swept fresh = sweep([&]() -> int32_t {
      const Context context = context_of(model, {.threads = 2});
      if (context == nullptr) return lathe_last_error()->code;
      DLManagedTensor* output = nullptr;
      const int32_t status = lathe_run(context.get(), inputs, 1, &output, 1);
      EXPECT_EQ(status == LATHE_OK, output != nullptr);
      if (output == nullptr) return status;
      EXPECT_EQ(elements_of<float>(output->dl_tensor), expected);
      output->deleter(output);
      return status;
    });
    EXPECT_EQ(fresh.refused, fresh.places);
    const Context context = context_of(model, {.threads = 2});
    const Swept queued = sweep([&]() -> int32_t {
      LatheQueue* queue = nullptr;
      if (const int32_t status = lathe_create_queue(context.get(), &queue)) return status;
      HostTensor<float> result(f32, {2, 3});
      const DLTensor* outputs[] = {&result.view};
      lathe_run_async(context.get(), queue, inputs, 1, outputs, 1);
      const int32_t status = lathe_wait(queue);
      lathe_destroy_queue(queue);
      if (status == LATHE_OK) EXPECT_EQ(result.data, expected);
      return status;
    });
    EXPECT_GE(queued.refused, 1);
  }
}

TEST(allocation_sweep, of_a_profiled_run_with_scratch_memory) {
  TestArtifact made;
  write_dense(made, 3, {1, 1, 1});
  made.kernels[0] = [](const LatheServices* services, void* state, void* const* at, const int64_t* scalars) {
    services->profile_begin(state, "packing");
    void* kept = services->allocate(state, 100, 64);
    void* freed = kept == nullptr ? nullptr : services->allocate(state, 100, 64);
    services->release(state, freed);
    services->profile_end(state);
    if (freed == nullptr) return int32_t{LATHE_OUT_OF_MEMORY};
    for (int64_t i = 0; i < scalars[0] * scalars[1]; ++i) static_cast<float*>(at[2])[i] = 5;
    return int32_t{0};
  };
  const Model model = open(made);
  HostTensor<float> x(f32, {2, 3});
  const DLTensor* inputs[] = {&x.view};
  const Swept swept = sweep([&]() -> int32_t {
    const Context context = context_of(model, {.threads = 1});
    if (context == nullptr) return lathe_last_error()->code;
    lathe_profile(context.get(), 1);  // without memory for it, nothing is profiled
    DLManagedTensor* output = nullptr;
    const int32_t status = lathe_run(context.get(), inputs, 1, &output, 1);
    if (output == nullptr) return status;
    EXPECT_EQ(elements_of<float>(output->dl_tensor), std::vector<float>(6, 5));
    output->deleter(output);
    return status;
  });
  EXPECT_GE(swept.refused, 8);
  EXPECT_LT(swept.refused, swept.places) << "a profile is not worth a failed run";
}

TEST(allocation_sweep, of_values) {
  HostTensor<float> x(f32, {2, 3}, {1, 2, 3, -4, -5, -6});
  const Swept swept = sweep([&]() -> int32_t {
    const Value tensor(lathe_value_from_tensor(&x.view)), scalar = number(3);
    const int64_t two[] = {2};
    const Value strings(lathe_value_make_strings(1, two));
    if (tensor == nullptr || scalar == nullptr || strings == nullptr) return LATHE_OUT_OF_MEMORY;
    for (const char* text : {"first", "second", "third"})
      if (const int32_t status = lathe_value_set_string(strings.get(), 1, text, 5)) return status;
    LatheValue* const members[] = {tensor.get(), strings.get(), scalar.get()};
    const Value sequence(lathe_value_make(LATHE_SEQUENCE, members, 3));
    LatheValue* const inner[] = {sequence.get()};
    const Value optional(sequence == nullptr ? nullptr : lathe_value_make(LATHE_OPTIONAL, inner, 1));
    if (optional == nullptr) return lathe_last_error()->code;
    EXPECT_EQ(lathe_value_count(sequence.get()), 3);
    return LATHE_OK;
  });
  EXPECT_EQ(swept.refused, swept.places);
  EXPECT_GE(swept.refused, 12);
}

TEST(allocation_sweep, of_loops_and_calls_with_results_of_their_own) {
  TestArtifact made;
  abi::ProgramWriter program;
  program.input({.name = "n", .kind = ValueKind::scalar});
  program.output({.name = "q", .kind = ValueKind::sequence});
  abi::FunctionWriter main = program.function("main"), turn = program.function("turn");
  const uint32_t q0 = turn.parameter(ValueKind::sequence), i0 = turn.parameter(ValueKind::scalar),
                 t = turn.reg(ValueKind::tensor, i64, 1), q1 = turn.reg(ValueKind::sequence);
  turn.emit(Opcode::alloc_tensor, {t, abi::absent, 1, program.immediate(1)});
  turn.emit(Opcode::store_scalar, {t, program.immediate(0), i0});
  turn.emit(Opcode::sequence_insert, {q1, q0, abi::absent, t}, "Insert");
  turn.emit(Opcode::return_values, {1, q1});
  const uint32_t n = main.parameter(ValueKind::scalar), i = main.reg(ValueKind::scalar),
                 q = main.reg(ValueKind::sequence);
  const uint32_t body = main.label(), end = main.label();
  main.emit(Opcode::make_sequence, {q, 0});
  main.emit(Opcode::loop_begin, {i, program.immediate(0), n, end});
  main.bind(body);
  main.emit(Opcode::call_function, {1, 2, q, i, 1, q});
  main.emit(Opcode::loop_next, {i, n, body});
  main.bind(end);
  main.emit(Opcode::return_values, {1, q});
  program.finish_function(std::move(main));
  program.finish_function(std::move(turn));
  made.program = program.finish();
  const Model model = open(made);
  ASSERT_NE(model, nullptr) << last_message();
  const Context context = context_of(model, {.max_memory = 1 << 20});
  const Value turns = number(12);
  const Swept swept = sweep([&]() -> int32_t {
    const std::vector<Value> results = run_values(context, {turns.get()}, 1);
    if (results.empty()) return lathe_last_error()->code;
    EXPECT_EQ(lathe_value_count(results[0].get()), 12);
    const Value last(lathe_value_get(results[0].get(), 11));
    EXPECT_EQ(elements_of<int64_t>(*lathe_value_tensor(last.get())), std::vector<int64_t>{11});
    return LATHE_OK;
  });
  EXPECT_GE(swept.refused, 24);
}

}  // namespace
}  // namespace lathe::runtime::testing
