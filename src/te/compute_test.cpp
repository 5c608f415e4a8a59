// Tensor expressions run by tir's interpreter.
#include <gtest/gtest.h>

#include "te/tensor.h"
#include "te/topi/elementwise.h"
#include "tir/interpret/interpret.h"

namespace lathe::te {
namespace compute_test {

using ir::DType;
using ir::int64;
using tir::TensorBuffer;

TensorBuffer numbers(std::vector<int64_t> shape, const std::function<double(int64_t)>& f,
                     DType dtype = DType::float32()) {
  TensorBuffer b = TensorBuffer::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < b.elements(); ++i)
    dtype.is_floating() ? b.set_float(i, f(i)) : b.set_int(i, static_cast<int64_t>(f(i)));
  return b;
}

// The outputs of the function on `inputs`.
std::vector<TensorBuffer> run(const tir::Function& f, std::vector<TensorBuffer> args,
                              const std::vector<std::pair<DType, std::vector<int64_t>>>& outputs,
                              const std::vector<int64_t>& scalars = {}) {
  const size_t inputs = args.size();
  for (const auto& [dtype, shape] : outputs) args.push_back(TensorBuffer::uninitialised(dtype, shape));
  const support::Status done = tir::interpret(f, args, scalars);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : support::render(done.diagnostics()));
  return {args.begin() + static_cast<int64_t>(inputs), args.end()};
}

TEST(compute, runs_chains_of_tensors) {
  const Tensor a = placeholder({int64(3), int64(4)}, DType::float32(), "A");
  const Tensor b = topi::map(a, [](const Expr& x) { return x * x; }, "B");
  const IterVar k = reduce_axis(int64(0), int64(4));
  const Tensor c = compute({int64(3)}, [&](const auto& i) { return sum(b({i[0], k->var}), {k}); }, {b}, "C");
  const auto out =
      run(create_prim_func({a}, {c}), {numbers({3, 4}, [](int64_t i) { return i; })}, {{DType::float32(), {3}}});
  EXPECT_EQ(out[0].float_at(0), 0 + 1 + 4 + 9);
  EXPECT_EQ(out[0].float_at(2), 64 + 81 + 100 + 121);
}

TEST(compute, reduces_by_every_reducer) {
  const Tensor a = placeholder({int64(5)}, DType::int_(32), "A");
  const IterVar k = reduce_axis(int64(0), int64(5));
  const auto reduced = [&](const std::function<Expr(Expr)>& f) {
    const Tensor c = compute({}, [&](const auto&) { return f(a({k->var})); }, {a}, "C");
    return run(create_prim_func({a}, {c}),
               {numbers(
                   {5}, [](int64_t i) { return 3 - i; }, DType::int_(32))},
               {{DType::int_(32), {}}})[0]
        .int_at(0);
  };
  EXPECT_EQ(reduced([&](Expr x) { return sum(x, {k}); }), 5);
  EXPECT_EQ(reduced([&](Expr x) { return prod(x, {k}); }), 0);
  EXPECT_EQ(reduced([&](Expr x) { return max(x, {k}); }), 3);
  EXPECT_EQ(reduced([&](Expr x) { return min(x, {k}); }), -1);
  EXPECT_EQ(reduced([&](Expr x) { return sum(x, {k}, ir::int32(100)); }), 105) << "from a given start";
}

TEST(compute, reduces_where_a_condition_holds) {
  const Tensor a = placeholder({int64(6)}, DType::int_(32), "A");
  const IterVar k = reduce_axis(int64(1), int64(4));  // 1, 2, 3, 4
  const Tensor c = compute(
      {},
      [&](const auto&) {
        const Expr all = sum(a({k->var}), {k});
        return Expr(ir::with(*all.as<ir::Reduce>(), [&](ir::Reduce& r) { r.condition = ir::ne(k->var, int64(2)); }));
      },
      {a}, "C");
  const auto out = run(create_prim_func({a}, {c}),
                       {numbers({6}, [](int64_t i) { return i; }, DType::int_(32))}, {{DType::int_(32), {}}});
  EXPECT_EQ(out[0].int_at(0), 1 + 3 + 4);
}

TEST(compute, reduces_several_values_at_once) {
  const Tensor a = placeholder({int64(2), int64(4)}, DType::float32(), "A");
  const IterVar k = reduce_axis(int64(0), int64(4));
  const ir::CommReducer largest = comm_reducer(
      [](const auto& l, const auto& r) {
        const Expr left = l[1] >= r[1];
        return std::vector{ir::select(left, l[0], r[0]), ir::select(left, l[1], r[1])};
      },
      [](const auto&) { return std::vector{int64(-1), ir::constant(DType::float32(), -1e9)}; },
      {DType::int64(), DType::float32()});
  const auto both = compute_all(
      {int64(2)},
      [&](const auto& i) {
        std::vector<Expr> bodies;
        for (const int64_t which : {0, 1})
          bodies.push_back(ir::make<ir::Reduce>(largest, std::vector{k}, std::vector<Expr>{k->var, a({i[0], k->var})},
                                                Expr{}, which));
        return bodies;
      },
      {a}, "largest");
  const auto out = run(create_prim_func({a}, {both[0], both[1]}),
                       {numbers({2, 4}, [](int64_t i) { return (i * 5) % 8; })},  // 0 5 2 7 | 4 1 6 3
                       {{DType::int64(), {2}}, {DType::float32(), {2}}});
  EXPECT_EQ(out[0].int_at(0), 3);
  EXPECT_EQ(out[0].int_at(1), 2);
  EXPECT_EQ(out[1].float_at(1), 6);
}

TEST(compute, wraps_a_statement_over_whole_buffers) {
  const Tensor a = placeholder({int64(4)}, DType::float32(), "A");
  const auto reversed = extern_op(
      {{{int64(4)}, DType::float32()}}, {a},
      [](const auto& in, const auto& out) {
        const Var i = ir::var("i");
        const tir::Stmt store = ir::make<tir::BufferStore>(out[0], ir::load(in[0], {3 - i}), std::vector<Expr>{i});
        return tir::Stmt(ir::make<tir::For>(i, int64(0), int64(4), tir::ForKind::serial, store));
      },
      "reverse");
  const Tensor twice = topi::map(reversed[0], [](const Expr& x) { return x + x; }, "twice");
  const auto out =
      run(create_prim_func({a}, {twice}), {numbers({4}, [](int64_t i) { return i; })}, {{DType::float32(), {4}}});
  EXPECT_EQ(out[0].float_at(0), 6);
  EXPECT_EQ(out[0].float_at(3), 0);
}

TEST(compute, binds_symbols_from_shapes_and_scalars) {
  const Var n = ir::size_var("n"), m = ir::size_var("m");
  const Tensor a = placeholder({n}, DType::float32(), "A");
  const Tensor b = compute({n * m}, [&](const auto& i) { return a({ir::floordiv(i[0], m)}); }, {a}, "B");
  const tir::Function f = create_prim_func({a}, {b});
  const auto out = run(f, {numbers({3}, [](int64_t i) { return i; })}, {{DType::float32(), {6}}}, {2});
  EXPECT_EQ(out[0].float_at(1), 0);
  EXPECT_EQ(out[0].float_at(5), 2);
}

TEST(compute, allows_extents_of_zero) {
  const Tensor a = placeholder({int64(0), int64(3)}, DType::float32(), "A");
  const IterVar k = reduce_axis(int64(0), int64(0));
  const Tensor c = compute({int64(3)}, [&](const auto& i) { return sum(a({k->var, i[0]}), {k}); }, {a}, "C");
  const auto out =
      run(create_prim_func({a}, {c}), {numbers({0, 3}, [](int64_t) { return 0; })}, {{DType::float32(), {3}}});
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(out[0].float_at(i), 0);
  EXPECT_TRUE(out[0].is_written(2));
}

}  // namespace compute_test
}  // namespace lathe::te
