// Limits of a run and its cancellation: each names the node and the limit, and the context runs again.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <functional>
#include <thread>

#include "gtest/gtest.h"
#include "runtime/core/program_fixture.h"
#include "runtime/cpu/deadline.h"

namespace lathe::runtime::testing {
namespace {

using abi::Opcode;
using abi::ValueKind;

constexpr uint64_t millisecond = 1'000'000;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A model of one scalar in and out.
struct OneNumber {
  TestArtifact artifact;
  Model model;

  int32_t run(const Context& context, int64_t n) const {
    const Value input = number(n);
    return run_values(context, {input.get()}, 1).empty() ? lathe_last_error()->code : LATHE_OK;
  }
};

// 0 comes back, everything else loops for ever over what `body` writes.
struct Endless : OneNumber {
  explicit Endless(const std::function<void(abi::ProgramWriter&, abi::FunctionWriter&)>& body) {
    abi::ProgramWriter program;
    program.input({.name = "n", .kind = ValueKind::scalar});
    program.output({.name = "m", .kind = ValueKind::scalar});
    abi::FunctionWriter main = program.function("main");
    const uint32_t n = main.parameter(ValueKind::scalar);
    const uint32_t forever = main.label(), end = main.label();
    main.emit(Opcode::branch, {n, forever, end});
    main.bind(forever);
    body(program, main);
    main.emit(Opcode::jump, {forever}, "Loop_7");
    main.bind(end);
    main.emit(Opcode::return_values, {1, n});
    program.finish_function(std::move(main));
    artifact.program = program.finish();
    model = open(artifact);
  }
};

const auto nothing = [](abi::ProgramWriter&, abi::FunctionWriter&) {};

void expect_said(const char* node, const std::string& words) {
  EXPECT_STREQ(lathe_last_error()->node, node);
  EXPECT_NE(last_message().find(words), std::string::npos) << last_message();
}

TEST(limits, steps_end_a_loop_that_does_not) {
  const Endless endless(nothing);
  const Context context = context_of(endless.model, {.max_steps = 1000});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(endless.run(context, 1), LATHE_LIMIT_REACHED);
    expect_said("Loop_7", "the run passed its limit of 1000 steps");
    EXPECT_EQ(endless.run(context, 0), LATHE_OK) << last_message();
  }
}

TEST(limits, time_ends_a_loop_that_does_not) {
  const Endless endless(nothing);
  const Context context = context_of(endless.model, {.timeout = 30 * millisecond});
  for (int round = 0; round < 3; ++round) {
    const std::clock_t start = std::clock();  // of processor time: the machine may be busy
    const double seconds = seconds_of([&] { EXPECT_EQ(endless.run(context, 1), LATHE_LIMIT_REACHED); });
    expect_said("Loop_7", "the run passed its time limit of 0.03 s");
    EXPECT_GE(seconds, 0.03);
    EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
    EXPECT_EQ(endless.run(context, 0), LATHE_OK) << last_message();
  }
}

TEST(limits, each_run_has_its_own_time) {
  const Endless endless(nothing);
  const Context context = context_of(endless.model, {.timeout = 200 * millisecond});
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&, caller] {
      const Context own = context_of(endless.model, {.timeout = static_cast<uint64_t>(20 + caller * 30) * millisecond});
      const double seconds = seconds_of([&] { EXPECT_EQ(endless.run(own, 1), LATHE_LIMIT_REACHED); });
      EXPECT_GE(seconds, 0.02 + caller * 0.03);
    });
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(250))
    ASSERT_EQ(endless.run(context, 0), LATHE_OK) << last_message();
  for (std::thread& caller : callers) caller.join();
}

// What compiled code does: long loops look at the first word of the call's state.
int32_t polling_kernel(const LatheServices* services, void* state, void* const*, const int64_t* scalars) {
  if (scalars[0] == 0) return 0;
  struct Closure {
    const LatheServices* services;
    void* state;
  } closure = {services, state};
  const auto body = [](void* opaque, int64_t, int64_t) {
    const auto* given = static_cast<const Closure*>(opaque);
    const auto* call = static_cast<const LatheCallState*>(given->state);
    while (__atomic_load_n(&call->stop, __ATOMIC_RELAXED) == 0) {
    }
    given->services->stop(given->state);
  };
  return services->parallel_for(state, body, &closure, 4, 1);
}

struct LongKernel : OneNumber {
  LongKernel() {
    write_call(artifact, polling_kernel, "MatMul_3");
    model = open(artifact);
  }
};

TEST(limits, time_ends_a_kernel_on_every_thread) {
  const LongKernel kernel;
  for (const int32_t threads : {1, 4}) {
    const Context context = context_of(kernel.model, {.threads = threads, .timeout = 20 * millisecond});
    EXPECT_EQ(kernel.run(context, 1), LATHE_LIMIT_REACHED);
    expect_said("MatMul_3", "the run passed its time limit of 0.02 s");
    EXPECT_EQ(kernel.run(context, 0), LATHE_OK) << last_message();
  }
}

TEST(limits, a_run_is_cancelled_from_another_thread) {
  const LongKernel kernel;
  const Endless endless(nothing);
  const Context in_kernel = context_of(kernel.model, {.threads = 2}), between = context_of(endless.model);
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> is_done = false;
    std::thread canceller([&] {  // again and again: a run that has not begun is not cancelled
      while (!is_done) {
        lathe_cancel(in_kernel.get());
        lathe_cancel(between.get());
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    EXPECT_EQ(kernel.run(in_kernel, 1), LATHE_CANCELLED);
    expect_said("MatMul_3", "the run was cancelled");
    EXPECT_EQ(endless.run(between, 1), LATHE_CANCELLED);
    EXPECT_STREQ(lathe_last_error()->node, "Loop_7");
    is_done = true;
    canceller.join();
  }
  lathe_cancel(in_kernel.get());
  EXPECT_EQ(kernel.run(in_kernel, 0), LATHE_OK) << "no run was in progress when it was cancelled";
  lathe_cancel(nullptr);
}

LatheContext* signalled = nullptr;

TEST(limits, a_run_is_cancelled_from_a_signal_handler) {
  const LongKernel kernel;
  const Context context = context_of(kernel.model);
  signalled = context.get();
  void (*const before)(int) = std::signal(SIGALRM, [](int) { lathe_cancel(signalled); });
  ualarm(20'000, 20'000);
  EXPECT_EQ(kernel.run(context, 1), LATHE_CANCELLED);
  ualarm(0, 0);
  std::signal(SIGALRM, before);
}

TEST(limits, memory_ends_a_sequence_that_grows_without_end) {
  // Empty tensors: what a value takes beside its elements counts too.
  for (const int64_t size : {0, 1000}) {
    const Endless endless([&](abi::ProgramWriter& program, abi::FunctionWriter& main) {
      const uint32_t q = main.reg(ValueKind::sequence), t = main.reg(ValueKind::tensor, f32, 1);
      const uint32_t again = main.label();
      main.emit(Opcode::make_sequence, {q, 0});
      main.bind(again);
      main.emit(Opcode::alloc_tensor, {t, abi::absent, 1, program.immediate(size)}, "Tensor_1");
      main.emit(Opcode::sequence_insert, {q, q, abi::absent, t}, "Insert_2");
      main.emit(Opcode::jump, {again});
    });
    const Context context = context_of(endless.model, {.max_memory = 4 << 20, .timeout = 10'000 * millisecond});
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(endless.run(context, 1), LATHE_LIMIT_REACHED);
      EXPECT_NE(last_message().find("memory limit of 4194304 bytes"), std::string::npos) << last_message();
      EXPECT_TRUE(std::string(lathe_last_error()->node) == "Tensor_1" ||
                  std::string(lathe_last_error()->node) == "Insert_2")
          << lathe_last_error()->node;
      EXPECT_EQ(endless.run(context, 0), LATHE_OK) << last_message();
    }
  }
}

TEST(limits, one_tensor_again_and_again_counts_too) {
  const Endless endless([&](abi::ProgramWriter& program, abi::FunctionWriter& main) {
    const uint32_t q = main.reg(ValueKind::sequence), t = main.reg(ValueKind::tensor, f32, 1);
    const uint32_t again = main.label();
    main.emit(Opcode::make_sequence, {q, 0});
    main.emit(Opcode::alloc_tensor, {t, abi::absent, 1, program.immediate(1)});
    main.bind(again);
    main.emit(Opcode::sequence_insert, {q, q, abi::absent, t}, "Insert_2");
    main.emit(Opcode::jump, {again});
  });
  const Context context = context_of(endless.model, {.max_memory = 1 << 20, .timeout = 10'000 * millisecond});
  EXPECT_EQ(endless.run(context, 1), LATHE_LIMIT_REACHED);
  expect_said("Insert_2", "memory limit of 1048576 bytes");
  EXPECT_EQ(endless.run(context, 0), LATHE_OK) << last_message();
}

TEST(limits, strings_count_and_are_given_back) {
  const Endless endless([&](abi::ProgramWriter& program, abi::FunctionWriter& main) {
    const uint32_t q = main.reg(ValueKind::sequence), s = main.reg(ValueKind::strings);
    const uint32_t again = main.label();
    main.emit(Opcode::make_sequence, {q, 0});
    main.bind(again);
    main.emit(Opcode::alloc_strings, {s, 1, program.immediate(100)}, "Strings_1");
    main.emit(Opcode::sequence_insert, {q, q, abi::absent, s});
    main.emit(Opcode::jump, {again});
  });
  const Context context = context_of(endless.model, {.max_memory = 1 << 20, .timeout = 10'000 * millisecond});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(endless.run(context, 1), LATHE_LIMIT_REACHED);
    expect_said("Strings_1", "memory limit of 1048576 bytes");
    EXPECT_EQ(endless.run(context, 0), LATHE_OK) << last_message();
  }
}

TEST(limits, an_arena_too_large_names_the_node_that_needs_most) {
  abi::ProgramWriter program;
  program.output({.name = "y", .dtype = f32, .dims = {{1}}});
  const uint32_t arena = program.arena({.bytes = 1 << 20});
  const uint32_t little = program.storage({.kind = abi::StorageKind::planned, .index = arena, .bytes = 64});
  const uint32_t much =
      program.storage({.kind = abi::StorageKind::planned, .index = arena, .offset = 64, .bytes = 1 << 19});
  abi::FunctionWriter main = program.function("main");
  const uint32_t a = main.reg(ValueKind::tensor, f32, 1), b = main.reg(ValueKind::tensor, f32, 1);
  main.emit(Opcode::alloc_tensor, {a, little, 1, program.immediate(1)}, "Little_0");
  main.emit(Opcode::alloc_tensor, {b, much, 1, program.immediate(1)}, "Much_1");
  main.emit(Opcode::return_values, {1, b});
  program.finish_function(std::move(main));
  TestArtifact made;
  made.program = program.finish();
  const Model model = open(made);
  ASSERT_NE(model, nullptr) << last_message();
  EXPECT_EQ(context_of(model, {.max_memory = 1000}), nullptr);
  EXPECT_EQ(lathe_last_error()->code, LATHE_LIMIT_REACHED);
  expect_said("Much_1", "memory limit of 1000 bytes");
  const Context context = context_of(model, {.max_memory = 2 << 20});
  EXPECT_EQ(run_values(context, {}, 1).size(), 1u) << last_message();
  LatheContextOptions lower = {.size = sizeof(lower), .max_memory = 1000};
  EXPECT_EQ(lathe_set_limits(context.get(), &lower), LATHE_OK);
  EXPECT_TRUE(run_values(context, {}, 1).empty());
  expect_said("", "the context holds 1048576 bytes, more than its memory limit of 1000 bytes");
}

TEST(limits, change_between_runs) {
  TestArtifact made;
  write_dense(made, 3, {1, 1, 1});
  const Model model = open(made);
  const Context context = context_of(model);
  HostTensor<float> x(f32, {10, 3}), large(f32, {100'000, 3});
  const DLTensor* inputs[] = {&large.view};
  DLManagedTensor* output = nullptr;
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, &output, 1), LATHE_OK) << last_message();
  output->deleter(output);
  // The storage that the large input needed is let go.
  LatheContextOptions limits = {.size = sizeof(limits), .max_memory = 4096, .max_steps = 100};
  ASSERT_EQ(lathe_set_limits(context.get(), &limits), LATHE_OK);
  EXPECT_EQ(lathe_run(context.get(), inputs, 1, &output, 1), LATHE_LIMIT_REACHED);
  EXPECT_STREQ(lathe_last_error()->node, "") << "what a shape takes belongs to no node of this program";
  inputs[0] = &x.view;
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, &output, 1), LATHE_OK) << last_message();
  output->deleter(output);
  limits.max_steps = 2;
  ASSERT_EQ(lathe_set_limits(context.get(), &limits), LATHE_OK);
  EXPECT_EQ(lathe_run(context.get(), inputs, 1, &output, 1), LATHE_LIMIT_REACHED);
  ASSERT_EQ(lathe_set_limits(context.get(), nullptr), LATHE_OK);
  inputs[0] = &large.view;
  ASSERT_EQ(lathe_run(context.get(), inputs, 1, &output, 1), LATHE_OK) << last_message();
  output->deleter(output);
  EXPECT_EQ(lathe_set_limits(nullptr, nullptr), LATHE_INVALID_ARGUMENT);
}

TEST(limits, of_an_older_caller_are_read_as_far_as_they_go) {
  const Endless endless(nothing);
  LatheContextOptions options = {
      .size = offsetof(LatheContextOptions, timeout), .max_steps = 100, .timeout = 1};  // the last one lies beyond
  LatheContext* made = nullptr;
  ASSERT_EQ(lathe_create_context(endless.model.get(), &options, &made), LATHE_OK);
  const Context context(made);
  EXPECT_EQ(endless.run(context, 1), LATHE_LIMIT_REACHED);
  expect_said("Loop_7", "100 steps");
}

TEST(limits, do_not_change_during_a_run) {
  const Endless endless(nothing);
  const Context context = context_of(endless.model, {.timeout = 300 * millisecond});
  std::thread caller([&] { EXPECT_EQ(endless.run(context, 1), LATHE_LIMIT_REACHED); });
  int32_t status = LATHE_OK;
  for (int attempt = 0; attempt < 200 && status == LATHE_OK; ++attempt) {  // until the run has begun
    const LatheContextOptions same = {.size = sizeof(same), .timeout = 300 * millisecond};
    status = lathe_set_limits(context.get(), &same);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(status, LATHE_INVALID_ARGUMENT);
  caller.join();
}

TEST(deadline, tells_only_what_is_armed_and_late) {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now = time.tv_sec * 1'000'000'000 + time.tv_nsec, each = 20'000'000;
  std::atomic<int> told[3] = {0, 0, 0};
  const auto late = [](void* owner) { ++*static_cast<std::atomic<int>*>(owner); };
  // The later one first: the thread has to wake earlier than it planned to.
  Deadline third = {now + 1000 * each, late, &told[2], nullptr}, first = {now + each, late, &told[0], nullptr},
           second = {now + 2 * each, late, &told[1], nullptr};
  for (Deadline* deadline : {&third, &first, &second}) ASSERT_TRUE(arm(*deadline));
  disarm(second);
  for (int wait = 0; wait < 2000 && told[0] == 0; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  disarm(third);
  disarm(first);
  disarm(second);
  EXPECT_EQ(told[0], 1) << "once";
  EXPECT_EQ(told[1], 0) << "it was disarmed";
  EXPECT_EQ(told[2], 0) << "it is far away";
}

TEST(limits, hold_in_a_forked_child) {
  const Endless endless(nothing);
  const Context context = context_of(endless.model, {.timeout = 20 * millisecond});
  EXPECT_EQ(endless.run(context, 1), LATHE_LIMIT_REACHED);  // the parent's thread is there
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(endless.run(context, 1) == LATHE_LIMIT_REACHED && endless.run(context, 0) == LATHE_OK ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lathe::runtime::testing
