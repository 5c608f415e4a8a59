#include "codegen/llvm/load/jit.h"

#include <gtest/gtest.h>

#include "codegen/llvm/run_kernel_test.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

Buffer flat(const char* name, int64_t n, DType t = DType::float32()) { return buffer(name, {int64(n)}, t); }

// C[i] = A[i] + B[i], by vectors of `lanes` with a serial tail.
Kernel add_kernel(int64_t n, int lanes, ForKind kind = ForKind::serial) {
  const Buffer a = flat("A", n), b = flat("B", n), c = flat("C", n);
  const Var i = var("i"), j = var("j");
  const int64_t whole = n / lanes;
  const Expr at = lanes == 1 ? Expr(i) : Expr(make<Ramp>(Expr(i * lanes), int64(1), int64_t{lanes}));
  const Stmt main = make<For>(i, int64(0), int64(whole), kind,
                              Stmt(make<BufferStore>(c, load(a, {at}) + load(b, {at}), std::vector<Expr>{at})));
  const Stmt tail = make<For>(j, int64(whole * lanes), int64(n - whole * lanes), ForKind::serial,
                              Stmt(make<BufferStore>(c, load(a, {j}) + load(b, {j}), std::vector<Expr>{j})));
  return {"add", prim_func({a, b, c}, seq({main, tail}), {}, {{"global_symbol", "add"}})};
}

TEST(jit, adds_vectors_of_every_length) {
  for (const int64_t n : {0, 1, 7, 16, 33, 128})
    for (const int lanes : {1, 4, 16, 5})
      for (const ForKind kind : {ForKind::serial, ForKind::parallel}) {
        const auto loaded = test::load({add_kernel(n, lanes, kind)});
        std::vector<float> a(static_cast<size_t>(n) + 1), b(a), c(a, {});
        for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i), b[i] = 0.5f * static_cast<float>(i) - 3;
        c.assign(a.size(), -1.0f);
        EXPECT_EQ(test::call(loaded, 0, {a.data(), b.data(), c.data()}), 0);
        for (size_t i = 0; i < static_cast<size_t>(n); ++i) EXPECT_EQ(c[i], a[i] + b[i]) << i;
        EXPECT_EQ(c[static_cast<size_t>(n)], -1.0f) << "written past the end";
      }
}

// Sums of rows through scratch memory of each iteration: a parallel loop with captures.
Kernel row_sums(const Var& n) {
  const Buffer a = buffer("A", {Expr(n) * 33}, DType::float32()), b = buffer("B", {n}, DType::float32());
  const Buffer sum = buffer("sum", {int64(1)}, DType::float32(), "global");
  const Var i = var("i"), j = var("j");
  const Stmt step =
      make<BufferStore>(sum, load(sum, {int64(0)}) + load(a, {Expr(i) * 33 + j}), std::vector<Expr>{int64(0)});
  const Stmt row = seq({make<BufferStore>(sum, constant(DType::float32(), 0.0), std::vector<Expr>{int64(0)}),
                        make<For>(j, int64(0), int64(33), ForKind::serial, step),
                        make<BufferStore>(b, load(sum, {int64(0)}), std::vector<Expr>{i})});
  const Stmt body =
      make<Allocate>(sum->data, DType::float32(), std::vector<Expr>{int64(1)}, std::string("global"), row);
  return {"row_sums", prim_func({a, b}, make<For>(i, int64(0), Expr(n), ForKind::parallel, body), {n})};
}

TEST(jit, gives_the_same_bits_on_any_number_of_threads) {
  const auto loaded = test::load({row_sums(size_var("n"))});
  for (const size_t rows : {0u, 1u, 7u, 64u}) {
    std::vector<float> a(rows * 33 + 1);
    for (size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<float>(i)) * 1e3f;
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 5}) {
      test::CallState state;
      state.threads = threads;
      std::vector<float> b(rows + 1, -1.0f);
      EXPECT_EQ(test::call(loaded, 0, {a.data(), b.data()}, {static_cast<int64_t>(rows)}, &state), 0);
      EXPECT_EQ(b[rows], -1.0f);
      EXPECT_TRUE(state.memory.empty()) << "scratch memory is left over";
      EXPECT_LE(state.allocations, threads) << "once for all rows of a thread";
      results.push_back(b);
    }
    EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), rows * 4), 0);
    EXPECT_EQ(std::memcmp(results[0].data(), results[2].data(), rows * 4), 0);
  }
}

// A check inside a loop: the code, message and node reach the services table, and the kernel stops.
Kernel checked_copy(ForKind kind) {
  const Buffer a = flat("A", 8, DType::int64()), b = flat("B", 8, DType::int64());
  const Var i = var("i");
  const auto place = std::make_shared<const support::Place>(support::ModelNode{"m.onnx", "Gather_3", "Gather"});
  const Stmt check =
      with_origin(Stmt(make<AssertStmt>(load(a, {i}) < int64(100), std::string("index out of range"))), place);
  const Stmt body = seq({check, make<BufferStore>(b, load(a, {i}), std::vector<Expr>{i})});
  return {"checked", prim_func({a, b}, make<For>(i, int64(0), int64(8), kind, body))};
}

TEST(jit, a_failed_check_is_raised_with_message_and_node) {
  for (const ForKind kind : {ForKind::serial, ForKind::parallel}) {
    const auto loaded = test::load({checked_copy(kind)});
    std::vector<int64_t> a = {1, 2, 3, 4, 500, 6, 7, 8}, b(8, -1);
    test::CallState state;
    EXPECT_EQ(test::call(loaded, 0, {a.data(), b.data()}, {}, &state), 5);
    EXPECT_EQ(state.code, 5);
    EXPECT_EQ(state.message, "index out of range");
    EXPECT_EQ(state.node, "Gather_3");
    EXPECT_EQ(b[3], 4);
    EXPECT_EQ(b[4], -1);
    a[4] = 5;
    test::CallState fine;
    EXPECT_EQ(test::call(loaded, 0, {a.data(), b.data()}, {}, &fine), 0);
    EXPECT_EQ(b, a);
  }
}

TEST(jit, raise_error_and_ret_leave_the_kernel) {
  const Buffer a = flat("A", 1, DType::int64());
  const auto run = [&](const Expr& statement) {
    const Stmt after = make<BufferStore>(a, int64(9), std::vector<Expr>{int64(0)});
    const auto loaded = test::load({{"leave", prim_func({a}, seq({make<Evaluate>(statement), after}))}});
    int64_t memory = 0;
    test::CallState state;
    const int32_t code = test::call(loaded, 0, {&memory}, {}, &state);
    EXPECT_EQ(memory, 0) << "a statement ran after the kernel was left";
    return std::pair{code, state.message};
  };
  EXPECT_EQ(run(call(DType::int32(), intrinsic::raise_error, {int32(7), make<StringImm>("why")})),
            (std::pair{7, std::string("why")}));
  EXPECT_EQ(run(call(DType::int32(), intrinsic::ret, {int32(0)})).first, 0);
}

// The arms of a choice with a condition a lane read only where they are chosen: the buffer ends where a page that may
// not be read begins, in effect; here the poison is an index far outside.
TEST(jit, a_choice_by_lanes_reads_only_what_is_chosen) {
  const Buffer a = flat("A", 8), b = flat("B", 8);
  const Expr at = make<Ramp>(int64(0), int64(1), int64_t{8});
  const Expr inside = at < constant(at->dtype, 3);
  const Expr far = select(inside, at, at * constant(at->dtype, int64_t{1} << 40));
  const Expr chosen = if_then_else(inside, load(a, {far}), constant(DType::float_(32, 8), 7.0));
  const auto loaded = test::load({{"choice", prim_func({a, b}, make<BufferStore>(b, chosen, std::vector<Expr>{at}))}});
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, y(8);
  EXPECT_EQ(test::call(loaded, 0, {x.data(), y.data()}), 0);
  EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 7, 7, 7, 7, 7}));
}

TEST(jit, integer_division_never_traps) {
  for (const int lanes : {1, 4}) {
    const DType t = DType::int32();
    const Buffer a = flat("A", 4, t), b = flat("B", 4, t), c = flat("C", 16, t);
    const Var i = var("i");
    const auto at = [&](int64_t offset) -> Expr {
      return lanes == 1 ? Expr(i) + offset : Expr(make<Ramp>(int64(offset), int64(1), int64_t{4}));
    };
    const Expr x = load(a, {at(0)}), y = load(b, {at(0)});
    const auto store = [&](int64_t offset, Expr v) {
      return Stmt(make<BufferStore>(c, v, std::vector<Expr>{at(offset)}));
    };
    Stmt body = seq({store(0, div(x, y)), store(4, mod(x, y)), store(8, floordiv(x, y)), store(12, floormod(x, y))});
    if (lanes == 1) body = make<For>(i, int64(0), int64(4), ForKind::serial, body);
    const auto loaded = test::load({{"divide", prim_func({a, b, c}, body)}});
    const int32_t least = std::numeric_limits<int32_t>::min();
    std::vector<int32_t> p = {7, least, -7, 5}, q = {0, -1, 2, -3}, r(16);
    EXPECT_EQ(test::call(loaded, 0, {p.data(), q.data(), r.data()}), 0);
    EXPECT_EQ(r, (std::vector<int32_t>{0, least, -3, -1, 7, 0, -1, 2, 0, least, -4, -2, 7, 0, 1, -1}));
  }
}

TEST(jit, integer_powers_and_float_remainders) {
  const Buffer a = flat("A", 8, DType::int64()), b = flat("B", 8, DType::int64()), c = flat("C", 8, DType::int64());
  const Buffer x = flat("X", 8, DType::float_(64)), y = flat("Y", 8, DType::float_(64)),
               z = flat("Z", 16, DType::float_(64));
  const Var i = var("i");
  const Stmt body =
      make<For>(i, int64(0), int64(8), ForKind::serial,
                seq({make<BufferStore>(c, call(DType::int64(), intrinsic::pow, {load(a, {i}), load(b, {i})}),
                                       std::vector<Expr>{i}),
                     make<BufferStore>(z, mod(load(x, {i}), load(y, {i})), std::vector<Expr>{i}),
                     make<BufferStore>(z, floormod(load(x, {i}), load(y, {i})), std::vector<Expr>{Expr(i) + 8})}));
  const auto loaded = test::load({{"powers", prim_func({a, b, c, x, y, z}, body)}});
  std::vector<int64_t> p = {2, 3, -2, 5, -1, -1, 7, 1}, q = {10, 0, 63, -1, -3, -4, 30, -9}, r(8);
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> u = {7.5, -7.5, 1e300, 5e-324, 0.1, 3, infinity, -0.0},
                      v = {2, 2, 3e-300, 1e-323, 0.01, infinity, 2, 5}, w(16);
  EXPECT_EQ(test::call(loaded, 0, {p.data(), q.data(), r.data(), u.data(), v.data(), w.data()}), 0);
  uint64_t seven = 1;
  for (int k = 0; k < 30; ++k) seven *= 7;
  EXPECT_EQ(r, (std::vector<int64_t>{1024, 1, std::numeric_limits<int64_t>::min(), 0, -1, 1,
                                     static_cast<int64_t>(seven), 1}));
  for (size_t k = 0; k < 8; ++k) {
    const double wanted = std::fmod(u[k], v[k]);
    if (std::isnan(wanted))
      EXPECT_TRUE(std::isnan(w[k]));
    else
      EXPECT_TRUE(w[k] == wanted && std::signbit(w[k]) == std::signbit(wanted))
          << k << ": " << w[k] << " is not " << wanted;
  }
  EXPECT_EQ(w[9], 0.5);
}

// NaN wins on either side, as a constant's other operand too, and in every lane.
TEST(jit, the_larger_and_the_smaller_of_floats_keep_nan) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {nan, -infinity, -1.5, 0, 2.5, infinity};
  for (const int lanes : {1, 3, 16}) {
    const int64_t n = 48;
    const Buffer a = flat("A", n), b = flat("B", n), c = flat("C", 4 * n);
    const Var i = var("i");
    const auto at = [&](int64_t from) -> Expr {
      const Expr first = Expr(i) * lanes + from;
      return lanes == 1 ? first : Expr(make<Ramp>(first, int64(1), int64_t{lanes}));
    };
    const auto put = [&](int64_t k, const Expr& value) {
      return Stmt(make<BufferStore>(c, value, std::vector<Expr>{at(k * n)}));
    };
    const Expr x = load(a, {at(0)}), y = load(b, {at(0)}), one = constant(x->dtype, 1.0);
    const Stmt body = make<For>(i, int64(0), int64(n / lanes), ForKind::serial,
                                seq({put(0, max(x, y)), put(1, min(x, y)), put(2, max(one, x)), put(3, min(x, one))}));
    const auto loaded = test::load({{"extremes", prim_func({a, b, c}, body)}});
    std::vector<float> u(n), v(n), w(4 * n);
    for (size_t k = 0; k < n; ++k) {
      u[k] = static_cast<float>(values[k % values.size()]);
      v[k] = static_cast<float>(values[k / values.size() % values.size()]);
    }
    EXPECT_EQ(test::call(loaded, 0, {u.data(), v.data(), w.data()}), 0);
    for (size_t k = 0; k < n; ++k) {
      const bool any = std::isnan(u[k]) || std::isnan(v[k]);
      const float wanted[] = {any ? NAN : std::max(u[k], v[k]), any ? NAN : std::min(u[k], v[k]),
                              std::isnan(u[k]) ? NAN : std::max(u[k], 1.0f),
                              std::isnan(u[k]) ? NAN : std::min(u[k], 1.0f)};
      for (size_t each = 0; each < 4; ++each)
        EXPECT_TRUE(std::isnan(wanted[each]) ? std::isnan(w[each * n + k]) : w[each * n + k] == wanted[each])
            << lanes << " lanes, " << each << " of " << u[k] << " and " << v[k] << ": " << w[each * n + k];
    }
  }
}

TEST(jit, parameters_that_may_share_memory_are_not_assumed_apart) {
  // B[i] = A[i + 1] + B[i - 1]-like recurrences are right only when the sharing is respected.
  const Buffer a = flat("A", 16), b = flat("B", 16);
  const Var i = var("i");
  const Stmt body = make<For>(
      i, int64(0), int64(15), ForKind::serial,
      Stmt(make<BufferStore>(b, load(a, {Expr(i)}) + constant(DType::float32(), 1.0), std::vector<Expr>{Expr(i) + 1})));
  const Attributes shared{{"inplace", Value(Value::List{Value(Value::List{Value(0), Value(1)})})}};
  const auto loaded = test::load({{"chain", prim_func({a, b}, body, {}, shared)}});
  std::vector<float> memory(16, 0);
  EXPECT_EQ(test::call(loaded, 0, {memory.data(), memory.data()}), 0);
  for (size_t k = 0; k < 16; ++k) EXPECT_EQ(memory[k], static_cast<float>(k));
}

TEST(jit, refuses_code_for_another_machine) {
  const CompiledKernels arm =
      compile_kernels({add_kernel(8, 4)}, target::parse_target("aarch64-linux-gnu").value_or_throw()).value_or_throw();
  const CompiledKernels intel =
      compile_kernels({add_kernel(8, 4)}, target::parse_target("x86-64-v2").value_or_throw()).value_or_throw();
  const bool here_is_arm = test::native().triple.starts_with("aarch64");
  const auto refused = load_kernels(here_is_arm ? intel : arm);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, "codegen-unsupported-target");
}

}  // namespace
}  // namespace lathe::codegen
