#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

Function lowered(const Function& f, const PassContext& context = {}) {
  return run(f, {flatten_buffers, vectorize_loops}, context);
}

TEST(vectorize_loops, makes_of_programs_what_its_text_expects) { expect_text(vectorize_loops, __FILE__); }

TEST(vectorize_loops, makes_contiguous_accesses_ramps) {
  const Function f = flat_loop(8, ForKind::vectorized, [](const Buffer& a, const Expr& i) {
    return call(intrinsic::exp, load(a, {i})) + constant(DType::float32(), 1);
  });
  const Function g = lowered(f);
  EXPECT_EQ(count<For>(g), 0);
  EXPECT_EQ(count<Ramp>(g), 2);
  EXPECT_EQ(difference(f, g, 3), "");
}

TEST(vectorize_loops, masks_what_a_guard_excludes) {
  const Function f = matmul(int64(2), int64(5), int64(3), 4, ForKind::vectorized);
  const Function g = run(f, {lower_init, convert_blocks, flatten_buffers, vectorize_loops});
  bool masked = false;
  post_order(g->body, [&](const NodeRef& n) {
    if (const auto* store = n.as<BufferStore>()) masked |= static_cast<bool>(store->predicate);
  });
  EXPECT_TRUE(masked);
  EXPECT_EQ(difference(f, g, 3), "");
}

TEST(vectorize_loops, decides_once_what_a_condition_guards) {
  // Which is the smaller, and where: the first store changes what the condition reads.
  const DType f32 = DType::float32();
  for (const bool other : {false, true}) {
    const Buffer a = buffer("A", {int64(8)}, f32), least = buffer("L", {int64(8)}, f32);
    const Buffer where = buffer("W", {int64(8)}, DType::int64());
    const Var i = var("i"), j = var("j");
    const auto at = [](const Buffer& to, const Expr& index, const Expr& value) {
      return Stmt(make<BufferStore>(to, value, std::vector<Expr>{index}));
    };
    const Stmt no = other ? at(where, i, load(where, {i}) - 1) : Stmt();
    const Stmt choose = make<IfThenElse>(lt(load(a, {int64(7) - i}), load(least, {i})),
                                         seq({at(least, i, load(a, {int64(7) - i})), at(where, i, i)}), no);
    const Stmt start = loop(j, int64(8), seq({at(least, j, load(a, {j})), at(where, j, int64(-1))}));
    const Function f = prim_func({a, least, where}, seq({start, loop(i, int64(8), choose, ForKind::vectorized)}));
    const Function g = lowered(f);
    EXPECT_EQ(count<For>(g), 1);
    EXPECT_EQ(difference(f, g, 3), "");
  }
}

TEST(vectorize_loops, gathers_and_cuts_long_loops) {
  for (const int64_t n : {1, 2, 63, 65, 96, 97}) {
    const Function f = flat_loop(n, ForKind::vectorized, [&](const Buffer& a, const Expr& i) {
      return load(a, {floormod(i * 7 + 3, int64(n))}) * load(a, {int64(n - 1) - i});
    });
    EXPECT_EQ(difference(f, lowered(f), 3), "") << n;
  }
}

TEST(vectorize_loops, refuses_an_accumulation_across_lanes) {
  const Buffer a = buffer("A", {int64(4)}, DType::float32()), s = buffer("S", {int64(1)}, DType::float32());
  const Var i = var("i");
  const Stmt sum = make<BufferStore>(s, load(s, {int64(0)}) + load(a, {i}), std::vector<Expr>{int64(0)});
  EXPECT_EQ(refusal(prim_func({a, s}, loop(i, int64(4), sum, ForKind::vectorized)), vectorize_loops),
            "tir-vectorized-reduction");
}

TEST(vectorize_loops, falls_back_to_a_serial_loop_with_a_reason) {
  // The inner loop runs i times: another number in each lane.
  const Buffer b = buffer("B", {int64(4)}, DType::int64());
  const Var i = var("i"), j = var("j");
  const Stmt inner = loop(j, i, make<BufferStore>(b, Expr(j), std::vector<Expr>{i}));
  const Stmt body = seq({make<BufferStore>(b, int64(0), std::vector<Expr>{i}), inner});
  const Function f = prim_func({b}, loop(i, int64(4), body, ForKind::vectorized));
  std::vector<Remark> remarks;
  PassContext context;
  context.on_remark = [&](Remark r) { remarks.push_back(std::move(r)); };
  const Function g = lowered(f, context);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].pass, "vectorize_loops");
  EXPECT_EQ(count<For>(g), 2);
  EXPECT_EQ(difference(f, g, 3), "");
}

TEST(vectorize_loops, gives_each_lane_memory_of_its_own) {
  const Buffer b = buffer("B", {int64(8)}, DType::int64()), t = buffer("T", {int64(2)}, DType::int64(), "local");
  const Var i = var("i");
  const Stmt body = seq({make<BufferStore>(t, Expr(i), std::vector<Expr>{int64(0)}),
                         make<BufferStore>(t, i + 5, std::vector<Expr>{int64(1)}),
                         make<BufferStore>(b, load(t, {int64(0)}) * load(t, {int64(1)}), std::vector<Expr>{i})});
  const Stmt scope = make<Allocate>(t->data, t->dtype, std::vector<Expr>{int64(2)}, std::string("local"), body);
  const Function f = prim_func({b}, loop(i, int64(8), scope, ForKind::vectorized)), g = lowered(f);
  EXPECT_EQ(count<For>(g), 0);
  EXPECT_EQ(difference(f, g, 3), "");
}

}  // namespace
}  // namespace lathe::tir
