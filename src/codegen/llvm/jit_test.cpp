#include "codegen/llvm/jit.h"

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

}  // namespace
}  // namespace lathe::codegen
