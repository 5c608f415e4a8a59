#include <gtest/gtest.h>

#include <random>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words

TEST(join_rows, makes_of_programs_what_its_text_expects) { expect_text(join_rows, __FILE__); }

// Chains of products with elementwise operators around them, over two or three axes of rows of any extents.
TEST(join_rows, keeps_what_random_chains_compute) {
  std::mt19937_64 random(5);
  const auto pick = [&](size_t count) { return random() % count; };
  int joined = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<ir::Expr> rows{ir::size_var("n"), pick(2) ? ir::Expr(ir::size_var("b")) : ir::int64(3)};
    if (pick(2)) rows.push_back(ir::int64(pick(2) ? 1 : 2));
    const auto with_last = [&](int64_t last) {
      std::vector<ir::Expr> shape = rows;
      shape.push_back(ir::int64(last));
      return shape;
    };
    Graph g;
    const Expr x = g.input("x", with_last(4)), other = g.input("other", with_last(6));
    const Expr pages = g.input("pages", {rows.back(), ir::int64(6)});
    Expr e = x;
    for (size_t i = 0, count = 1 + pick(5); i < count; ++i) {
      const int64_t last = *ir::as_int(relax::as_tensor(e)->shape->back());
      switch (pick(5)) {
        case 0:
          e = g.call(ops::add, {e, weights({last}, static_cast<uint32_t>(round))});
          break;
        case 1:
          if (last == 6) e = g.call(ops::multiply, {other, e});
          break;
        case 2:
          if (last == 6) e = g.call(ops::add, {e, pages});
          break;
        default:
          e = g.call(ops::matmul, {e, weights({last, last == 4 ? 6 : 4}, static_cast<uint32_t>(i))});
      }
    }
    if (e.same_as(x)) continue;
    const ir::IRModule before = fuse_ops(g.finish(e), context()).value_or_throw();
    const ir::IRModule after = join_rows(before, context()).value_or_throw();
    joined += calls(after) != calls(before);
    EXPECT_EQ(difference(before, after, 1e-6), "") << round;
  }
  EXPECT_GE(joined, 20);
}

}  // namespace
}  // namespace lathe::graph
