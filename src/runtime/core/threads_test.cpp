// Several models, callers and processes at once; the same bits on any number of threads.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "runtime/core/program_fixture.h"
#include "runtime/cpu/float_mode.h"

namespace lathe::runtime::testing {
namespace {

struct Dense {
  TestArtifact artifact;
  Model model;
  std::vector<float> weights;

  explicit Dense(int64_t width) {
    for (int64_t i = 0; i < width; ++i) weights.push_back(static_cast<float>(i % 5) - 2);
    write_dense(artifact, width, weights);
    model = open(artifact);
  }
  // One run on random rows; whether every element is right.
  bool is_right(const Context& context, unsigned seed) const {
    std::mt19937 random(seed);
    const auto rows = static_cast<int64_t>(random() % 60);
    const auto width = static_cast<int64_t>(weights.size());
    HostTensor<float> x(f32, {rows, width}), y(f32, {rows, width});
    for (float& value : x.data) value = static_cast<float>(random() % 100) / 10 - 5;
    const DLTensor *inputs[] = {&x.view}, *outputs[] = {&y.view};
    if (lathe_run_into(context.get(), inputs, 1, outputs, 1) != LATHE_OK) return false;
    for (size_t i = 0; i < y.data.size(); ++i)
      if (y.data[i] != std::max(0.0f, x.data[i] + weights[i % weights.size()])) return false;
    return true;
  }
};

// Eight callers, half of them on each model, each with its own context.
int wrong_runs(const Dense& a, const Dense& b, int rounds) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (unsigned caller = 0; caller < 8; ++caller)
    callers.emplace_back([&, caller] {
      const Dense& dense = caller % 2 == 0 ? a : b;
      const Context context = context_of(dense.model, {.threads = 1 + static_cast<int32_t>(caller % 3)});
      for (int round = 0; round < rounds; ++round)
        if (!dense.is_right(context, caller * 1000 + static_cast<unsigned>(round))) ++wrong;
    });
  for (std::thread& caller : callers) caller.join();
  return wrong;
}

TEST(threads, two_models_and_eight_callers_and_a_fork) {
  const Dense a(7), b(64);
  ASSERT_NE(a.model, nullptr);
  ASSERT_NE(b.model, nullptr);
  EXPECT_EQ(wrong_runs(a, b, 100), 0);
  // The fork happens while other threads are inside of regions.
  std::atomic<bool> is_done = false;
  std::thread busy([&] {
    const Context context = context_of(b.model, {.threads = 3});
    for (unsigned round = 0; !is_done; ++round) EXPECT_TRUE(b.is_right(context, round));
  });
  for (int child_count = 0; child_count < 5; ++child_count) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      const Context context = context_of(a.model, {.threads = 3});
      bool is_right = true;
      for (unsigned round = 0; round < 20; ++round) is_right = is_right && a.is_right(context, round);
      _exit(is_right ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  is_done = true;
  busy.join();
  EXPECT_EQ(wrong_runs(a, b, 20), 0);
}

TEST(threads, a_context_in_use_is_refused) {
  // A kernel that runs its own context again finds it busy.
  static LatheContext* own = nullptr;
  static int32_t inner = 0;
  TestArtifact artifact;
  artifact.kernels = {[](const LatheServices*, void*, void* const*, const int64_t*) {
    inner = lathe_run(own, nullptr, 0, nullptr, 0);
    return int32_t{0};
  }};
  abi::ProgramWriter program;
  const uint32_t kernel = program.kernel({.name = "again"});
  abi::FunctionWriter main = program.function("main");
  main.emit(abi::Opcode::call_kernel, {kernel, 0, 0});
  main.emit(abi::Opcode::return_values, {0});
  program.finish_function(std::move(main));
  artifact.program = program.finish();
  const Model model = open(artifact);
  const Context context = context_of(model);
  own = context.get();
  EXPECT_EQ(lathe_run(own, nullptr, 0, nullptr, 0), LATHE_OK) << last_message();
  EXPECT_EQ(inner, LATHE_INVALID_ARGUMENT);
}

TEST(threads, errors_belong_to_their_thread) {
  const Dense dense(3);
  HostTensor<int64_t> wrong(i64, {1, 3});
  HostTensor<float> y(f32, {1, 3});
  const Context context = context_of(dense.model);
  const DLTensor *inputs[] = {&wrong.view}, *outputs[] = {&y.view};
  EXPECT_NE(lathe_run_into(context.get(), inputs, 1, outputs, 1), LATHE_OK);
  std::thread([] { EXPECT_EQ(last_message(), ""); }).join();
  EXPECT_NE(last_message(), "");
}

TEST(threads, float_mode_is_set_for_a_run_and_put_back) {
  const FloatControl before = read_float_control();
  TestArtifact artifact;
  static FloatControl seen = 0;
  artifact.kernels = {[](const LatheServices*, void*, void* const*, const int64_t*) {
    seen = read_float_control();
    return int32_t{0};
  }};
  abi::ProgramWriter program;
  const uint32_t kernel = program.kernel({.name = "mode"});
  abi::FunctionWriter main = program.function("main");
  main.emit(abi::Opcode::call_kernel, {kernel, 0, 0});
  main.emit(abi::Opcode::return_values, {0});
  program.finish_function(std::move(main));
  artifact.program = program.finish();
  const Model model = open(artifact);
  for (const bool flushes : {true, false}) {
    const Context context = context_of(model, {.flush_denormals = flushes});
    write_float_control(float_control(!flushes));
    EXPECT_EQ(lathe_run(context.get(), nullptr, 0, nullptr, 0), LATHE_OK) << last_message();
    EXPECT_EQ(seen, float_control(flushes));
    EXPECT_EQ(read_float_control(), float_control(!flushes));
  }
  write_float_control(before);
}

}  // namespace
}  // namespace lathe::runtime::testing
