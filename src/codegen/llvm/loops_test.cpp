// Loops that ask whether the call is to end: they end when it is, and compute the same where it is not.
#include <gtest/gtest.h>

#include <ctime>

#include "codegen/emit/polls.h"
#include "codegen/llvm/compile.h"
#include "codegen/llvm/run_kernel_test.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

const Buffer counted = buffer("C", {int64(1)}, DType::int_(64));

Stmt add_one() {
  return make<BufferStore>(counted, load(counted, {int64(0)}) + Expr(int64(1)), std::vector<Expr>{int64(0)});
}
// Work that no optimiser sums up: each value depends on the last one.
Stmt mix(const Var& i) {
  const Expr old = load(counted, {int64(0)});
  return make<BufferStore>(counted, old * Expr(int64(6364136223846793005)) + Expr(i), std::vector<Expr>{int64(0)});
}

int64_t mixed(int64_t times) {
  uint64_t value = 0;
  for (int64_t i = 0; i < times; ++i) value = value * 6364136223846793005u + static_cast<uint64_t>(i);
  return static_cast<int64_t>(value);
}

Kernel kernel_of(const Stmt& body, const std::vector<Var>& scalars = {}) {
  const Function shell = prim_func({counted}, body);
  std::vector<Var> params = shell->params;
  params.insert(params.end(), scalars.begin(), scalars.end());
  return {"long", with(*shell, [&](PrimFunc& f) { f.params = params; })};
}

const Var n = var("n"), m = var("m"), i = var("i"), j = var("j");

// n times by runs; n times m times by single questions; the same on threads.
Stmt by_runs() { return make<For>(i, int64(0), n, ForKind::serial, mix(i)); }
Stmt by_turns() {
  return make<For>(j, int64(0), m, ForKind::serial, Stmt(make<For>(i, int64(0), n, ForKind::serial, mix(i))));
}

TEST(long_loops, compute_what_they_did) {
  const Stmt one = by_runs();
  const int64_t every = plan_polls(one).begin()->second.every;
  ASSERT_GT(every, 1);
  const auto loaded = test::load({kernel_of(one, {n})});
  for (const int64_t times : {int64_t{0}, int64_t{1}, every - 1, every, every + 1, 2 * every, 3 * every + 7}) {
    int64_t value = 0;
    EXPECT_EQ(test::call(loaded, 0, {&value}, {times}), 0);
    EXPECT_EQ(value, mixed(times)) << times;
  }
}

TEST(long_loops, ask_and_leave) {
  const auto loaded = test::load({kernel_of(by_runs(), {n}), kernel_of(by_turns(), {n, m})});
  const int64_t huge = int64_t{1} << 50;
  for (const std::vector<int64_t>& scalars : {std::vector<int64_t>{huge}, {huge, 1}, {1, huge}, {huge, huge}}) {
    test::CallState state;
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      state.shared.stop = 1;
    });
    int64_t value = 0;
    const std::clock_t start = std::clock();
    EXPECT_EQ(test::call(loaded, scalars.size() - 1, {&value}, scalars, &state), 99);
    EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);  // of processor time
    EXPECT_EQ(state.message, "stopped");
    stopper.join();
  }
}

TEST(long_loops, leave_on_every_thread) {
  const Stmt body = make<For>(j, int64(0), int64(64), ForKind::parallel,
                              Stmt(make<For>(i, int64(0), n, ForKind::serial, Stmt(add_one()))));
  const auto loaded = test::load({kernel_of(body, {n})});
  test::CallState state;
  state.threads = 2;
  state.shared.stop = 1;  // the first question ends it
  int64_t value = 0;
  EXPECT_EQ(test::call(loaded, 0, {&value}, {int64_t{1} << 50}, &state), 99);
}

TEST(long_loops, a_while_that_never_ends_asks_too) {
  const Stmt forever = make<While>(load(counted, {int64(0)}) < Expr(int64(int64_t{1} << 60)),
                                   Stmt(make<BufferStore>(counted, Expr(int64(5)), std::vector<Expr>{int64(0)})));
  test::CallState state;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    state.shared.stop = 1;
  });
  int64_t value = 0;
  EXPECT_EQ(test::call(test::load({kernel_of(forever)}), 0, {&value}, {}, &state), 99);
  stopper.join();
  EXPECT_EQ(value, 5);
}

TEST(long_loops, short_ones_ask_nothing) {
  const Stmt body = make<For>(i, int64(0), int64(1000), ForKind::serial, mix(i));
  const std::string text = emit_llvm({kernel_of(body)}, test::native(), {.kind = EmitKind::llvm_ir}).value_or_throw();
  EXPECT_EQ(text.find("volatile"), std::string::npos) << text;
  const std::string long_text =
      emit_llvm({kernel_of(by_runs(), {n})}, test::native(), {.kind = EmitKind::llvm_ir}).value_or_throw();
  EXPECT_NE(long_text.find("load volatile i32"), std::string::npos) << long_text;
}

// The addresses of what a thread's iteration does are sums of the loops inside it: LLVM is not told how it is counted.
TEST(parallel_loops, hide_how_iterations_are_counted_where_there_are_loops_inside) {
  const auto hidden = [](const Stmt& body) {
    const Stmt parallel = make<For>(j, int64(0), m, ForKind::parallel, body);
    CompileOptions options;
    const std::string text =
        emit_llvm({kernel_of(parallel, {n, m})}, test::native(), {.kind = EmitKind::llvm_ir}).value_or_throw();
    return text.find(" asm ") != std::string::npos;
  };
  EXPECT_TRUE(hidden(by_runs()));
  EXPECT_FALSE(hidden(mix(j)));
}

}  // namespace
}  // namespace lathe::codegen
