// The third tier of proof, by the primitives that ask it: what only it can show, and the instances that it names.
#include "schedule/analysis/conflicts.h"

#include <gtest/gtest.h>

#include "schedule/schedule.h"
#include "schedule/testing/programs.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

using testing::Builder;

// to[at(i, j)] = to[from(i, j)] + 1 in loops i below m and j below n, where `inside` holds.
struct Update {
  Expr m = int64(6), n = int64(6);
  std::vector<Expr> shape{int64(16), int64(16)};
  std::function<std::vector<Expr>(Expr, Expr)> at, from;
  std::function<Expr(Expr, Expr)> inside = [](const Expr&, const Expr&) { return boolean(true); };

  Function function() const {
    Builder b;
    const Buffer to = b.output("A", shape, DType::int_(32));
    const Var i = var("i"), j = var("j"), vi = var("vi"), vj = var("vj");
    const Ref<Block> block = make<Block>(
        std::vector<IterVar>{make<IterVarNode>(Range{int64(0), m}, vi, IterType::spatial),
                             make<IterVarNode>(Range{int64(0), n}, vj, IterType::spatial)},
        std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
        std::vector<BufferRegion>{}, std::string("step"), Stmt{},
        Stmt(make<BufferStore>(to, load(to, from(vi, vj)) + constant(DType::int_(32), 1), at(vi, vj), Expr())));
    Stmt s = make<BlockRealize>(std::vector<Expr>{i, j}, inside(i, j), with_regions(block));
    s = make<For>(j, int64(0), n, ForKind::serial, s);
    b.add(make<For>(i, int64(0), m, ForKind::serial, s));
    return b.build();
  }
};

struct Opened {
  Function original;
  Schedule schedule;
  BlockRV block;
  LoopRV i, j;
  explicit Opened(const Update& update)
      : original(update.function()),
        schedule(Schedule::create(original).value_or_throw()),
        block(schedule.get_block("step").value_or_throw()) {
    const std::vector<LoopRV> loops = schedule.get_loops(block).value_or_throw();
    i = loops[0];
    j = loops[1];
  }
  std::string difference() const {
    return tir::testing::difference(original, schedule.mod().find_as<PrimFunc>("main"), 1);
  }
};

std::vector<std::string> notes(const support::Diagnostics& diagnostics) {
  std::vector<std::string> result;
  for (const support::Note& note : diagnostics[0].notes) result.push_back(note.message);
  return result;
}

TEST(conflicts, are_no_reason_where_the_order_stays) {
  // Each instance reads what an earlier one of an earlier row and column wrote: both orders keep that.
  Opened diagonal({.at = [](Expr i, Expr j) { return std::vector<Expr>{i + 1, j + 1}; },
                   .from = [](Expr i, Expr j) { return std::vector<Expr>{i, j}; }});
  EXPECT_TRUE(diagonal.schedule.reorder({diagonal.j, diagonal.i}));
  EXPECT_EQ(diagonal.difference(), "");
  EXPECT_FALSE(diagonal.schedule.parallel(diagonal.j));
  EXPECT_TRUE(diagonal.schedule.parallel(diagonal.i)) << "inside now: one column";
  // An earlier row, a later column: they come in the other order.
  Opened skewed({.at = [](Expr i, Expr j) { return std::vector<Expr>{i + 1, j}; },
                 .from = [](Expr i, Expr j) { return std::vector<Expr>{i, j + 1}; }});
  const auto refused = skewed.schedule.reorder({skewed.j, skewed.i});
  ASSERT_FALSE(refused);
  EXPECT_EQ(notes(refused.diagnostics()), (std::vector<std::string>{"block 'step' writes A[1, 1] where i = 0, j = 1",
                                                                    "block 'step' reads A[1, 1] where i = 1, j = 0"}));
}

TEST(conflicts, are_excluded_by_predicates_and_parities) {
  // Even elements are read, odd ones written.
  Opened parity({.shape = {int64(32), int64(16)},
                 .at = [](Expr i, Expr j) { return std::vector<Expr>{i * 2 + 1, j}; },
                 .from = [](Expr i, Expr j) { return std::vector<Expr>{(i + 1) * 2, j}; }});
  EXPECT_TRUE(parity.schedule.parallel(parity.i));
  // The part above the diagonal is read, that below is written.
  Opened triangle({.at = [](Expr i, Expr j) { return std::vector<Expr>{i, j}; },
                   .from = [](Expr i, Expr j) { return std::vector<Expr>{j, i}; },
                   .inside = [](Expr i, Expr j) { return i > j; }});
  EXPECT_TRUE(triangle.schedule.parallel(triangle.i));
  EXPECT_EQ(triangle.difference(), "");
  Opened square({.at = [](Expr i, Expr j) { return std::vector<Expr>{i, j}; },
                 .from = [](Expr i, Expr j) { return std::vector<Expr>{j, i}; }});
  EXPECT_FALSE(square.schedule.parallel(square.i));
}

TEST(conflicts, between_two_writes) {
  Opened folded({.at = [](Expr i, Expr j) { return std::vector<Expr>{floordiv(i, int64(2)), j}; },
                 .from = [](Expr i, Expr j) { return std::vector<Expr>{i + 8, j}; }});
  const auto refused = folded.schedule.parallel(folded.i);
  ASSERT_FALSE(refused) << "of two writes the later one counts";
  for (const std::string& note : notes(refused.diagnostics())) EXPECT_NE(note.find(" writes A["), std::string::npos);
  EXPECT_TRUE(folded.schedule.parallel(folded.j));
}

TEST(conflicts, between_symbolic_extents) {
  const Var n = ir::size_var("n");
  // The second half of a row from the first.
  Opened halves({.n = n,
                 .shape = {int64(6), n * 2},
                 .at = [&](Expr i, Expr j) { return std::vector<Expr>{i, j + n}; },
                 .from = [](Expr i, Expr j) { return std::vector<Expr>{i, j}; }});
  EXPECT_TRUE(halves.schedule.parallel(halves.j));
  Opened overlapping({.n = n,
                      .shape = {int64(6), n * 2},
                      .at = [&](Expr i, Expr j) { return std::vector<Expr>{i, j + n - 1}; },
                      .from = [](Expr i, Expr j) { return std::vector<Expr>{i, j}; }});
  const auto refused = overlapping.schedule.parallel(overlapping.j);
  ASSERT_FALSE(refused);
  EXPECT_EQ(notes(refused.diagnostics()).size(), 2u);
  EXPECT_NE(notes(refused.diagnostics())[0].find("where n = "), std::string::npos);
}

TEST(conflicts, that_depend_on_data_are_undecided) {
  Builder b;
  const Buffer where = b.input("where", {int64(6)}, DType::int64()), to = b.output("A", {int64(16)}, DType::int_(32));
  const Var i = var("i"), vi = var("vi");
  const Ref<Block> block = make<Block>(
      std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(6)}, vi, IterType::spatial)}, std::vector<Buffer>{},
      std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{}, std::vector<BufferRegion>{},
      std::string("scatter"), Stmt{},
      Stmt(make<BufferStore>(to, constant(DType::int_(32), 1), std::vector<Expr>{load(where, {vi})}, Expr())));
  b.add(make<For>(i, int64(0), int64(6), ForKind::serial,
                  Stmt(make<BlockRealize>(std::vector<Expr>{i}, boolean(true), with_regions(block)))));
  Schedule schedule = Schedule::create(b.build()).value_or_throw();
  const LoopRV loop = schedule.get_loops(schedule.get_block("scatter").value_or_throw()).value_or_throw()[0];
  const auto refused = schedule.parallel(loop);
  ASSERT_FALSE(refused);
  EXPECT_EQ(notes(refused.diagnostics()),
            std::vector<std::string>{"which elements are touched depends on the values of 'where'"});
}

// C[i // 2] = 1, and then the sum over k: of two instances with one result the later's counts.
TEST(conflicts, of_results_that_instances_share) {
  Builder b;
  const Buffer x = b.input("X", {int64(4), int64(3)}, DType::int_(32)), c = b.output("C", {int64(2)}, DType::int_(32));
  const Var i = var("i"), k = var("k"), vi = var("vi"), vk = var("vk");
  const std::vector<Expr> at{floordiv(Expr(vi), int64(2))};
  const Ref<Block> block = make<Block>(
      std::vector<IterVar>{make<IterVarNode>(Range{int64(0), int64(4)}, vi, IterType::spatial),
                           make<IterVarNode>(Range{int64(0), int64(3)}, vk, IterType::reduce)},
      std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{}, std::vector<BufferRegion>{},
      std::string("folded"), Stmt(make<BufferStore>(c, constant(DType::int_(32), 1), at, Expr())),
      Stmt(make<BufferStore>(c, load(c, at) + load(x, {vi, vk}), at, Expr())));
  Stmt s = make<BlockRealize>(std::vector<Expr>{i, k}, boolean(true), with_regions(block));
  s = make<For>(k, int64(0), int64(3), ForKind::serial, s);
  b.add(make<For>(i, int64(0), int64(4), ForKind::serial, s));
  Schedule schedule = Schedule::create(b.build()).value_or_throw();
  const BlockRV folded = schedule.get_block("folded").value_or_throw();
  const std::vector<LoopRV> loops = schedule.get_loops(folded).value_or_throw();
  EXPECT_FALSE(schedule.reorder({loops[1], loops[0]}));
  EXPECT_FALSE(schedule.decompose_reduction(folded, loops[0]));
  Schedule other = schedule;
  EXPECT_TRUE(other.rfactor(loops[1], 0)) << "in one row the order does not matter";
  EXPECT_TRUE(schedule.decompose_reduction(folded, loops[1])) << "nor there";
}

TEST(conflicts, are_not_looked_for_without_proofs) {
  const Update skewed{.at = [](Expr i, Expr j) { return std::vector<Expr>{i + 1, j}; },
                      .from = [](Expr i, Expr j) { return std::vector<Expr>{i, j + 1}; }};
  Schedule schedule = Schedule::create(skewed.function(), "main", {.enable_check = false}).value_or_throw();
  const std::vector<LoopRV> loops = schedule.get_loops(schedule.get_block("step").value_or_throw()).value_or_throw();
  EXPECT_TRUE(schedule.reorder({loops[1], loops[0]}));
  EXPECT_TRUE(schedule.parallel(loops[0]));
  EXPECT_FALSE(schedule.fuse({loops[0], loops[1]})) << "what cannot be built is refused";
}

}  // namespace
}  // namespace lathe::schedule
