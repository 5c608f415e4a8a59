// Who reads the copy that cache_read and cache_write make.
#include <gtest/gtest.h>

#include "schedule/analysis/access.h"
#include "schedule/testing/programs.h"
#include "tir/analysis/zero_border.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

using testing::Builder;
using testing::f32;

// T = 2 X; L = T + 1; R = T * T; then T = T + 1 in place, and Z = T, each over six elements of eight.
struct Uses {
  Function original;
  Schedule sch;
  Uses() : original(made()), sch(Schedule::create(original).value_or_throw()) {}

  static Function made() {
    Builder b;
    const std::vector<Expr> six{int64(6)};
    const Buffer x = b.input("X", six), t = b.inner("T", six), l = b.output("L", six), r = b.output("R", six),
                 z = b.output("Z", six);
    b.compute("double", t, [&](const std::vector<Expr>& i) { return load(x, i) * f32(2); });
    b.compute("left", l, [&](const std::vector<Expr>& i) { return load(t, i) + f32(1); });
    b.compute("right", r, [&](const std::vector<Expr>& i) { return load(t, i) * load(t, i); });
    b.compute("step", t, [&](const std::vector<Expr>& i) { return load(t, i) + f32(1); });
    b.compute("last", z, [&](const std::vector<Expr>& i) { return load(t, i); });
    return b.build();
  }
  BlockRV block(const char* name) { return sch.get_block(name).value_or_throw(); }
  std::string reads(const char* name) {
    const Ref<Block> node = sch.get(block(name)).value_or_throw();
    return buffers_read(node->body).at(0)->name;
  }
  std::string difference() const { return tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 7); }
};

template <class T>
std::string outcome(const Result<T>& result) {
  return result.ok() ? "accepted" : result.diagnostics()[0].message;
}

TEST(cache_read, serves_all_that_read_the_same_values) {
  Uses u;
  ASSERT_EQ(outcome(u.sch.cache_read(u.block("right"), 0, "local")), "accepted");
  EXPECT_EQ(u.reads("left"), "T_local");
  EXPECT_EQ(u.reads("right"), "T_local");
  EXPECT_EQ(u.reads("last"), "T") << "it reads what was written since";
  EXPECT_EQ(u.difference(), "");
}

TEST(cache_read, keeps_what_a_block_knows_of_zeros) {
  const Function f = testing::from_text(R"(# lathe script 1
from lathe.script import tir as T

@T.prim_func
def main(X: T.Buffer((6,), "float32"), W: T.Buffer((3,), "float32"), Y: T.Buffer((4,), "float32")):
    for y, k in T.grid(4, 3):
        with T.block("sum"):
            vy, vk = T.axis.remap("SR", [y, k])
            T.block_attr({"zero_border": {"buffer": "X", "before": [1], "after": [1]}})
            with T.init():
                Y[vy] = T.float32(0)
            Y[vy] = Y[vy] + X[vy + vk] * W[vk]
)");
  Schedule sch = Schedule::create(f).value_or_throw();
  const BlockRV sum = sch.get_block("sum").value_or_throw();
  ASSERT_EQ(outcome(sch.cache_read(sum, 1, "local")), "accepted");
  EXPECT_EQ(tir::bordered_read(*sch.get(sum).value_or_throw())->load->buffer->name, "X") << "of another buffer";
  ASSERT_EQ(outcome(sch.cache_read(sum, 0, "local")), "accepted");
  const auto border = tir::bordered_read(*sch.get(sum).value_or_throw());
  ASSERT_TRUE(border);
  EXPECT_EQ(border->load->buffer->name, "X_local");
  EXPECT_EQ(border->border.before, std::vector<int64_t>{1});
}

TEST(cache_read, serves_the_consumers_that_are_named) {
  Uses u;
  ASSERT_EQ(outcome(u.sch.cache_read(u.block("left"), 0, "local", {u.block("right")})), "accepted");
  EXPECT_EQ(u.reads("left"), "T");
  EXPECT_EQ(u.reads("right"), "T_local");
  EXPECT_EQ(u.difference(), "");
  Schedule again = Schedule::create(u.original).value_or_throw();
  ASSERT_TRUE(parse_trace(u.sch.trace().as_python()).value_or_throw().apply(again));
  EXPECT_EQ(ir::first_difference(again.mod(), u.sch.mod()).value_or(""), "");
}

TEST(cache_read, refuses_consumers_that_one_copy_cannot_serve) {
  Uses u;
  const auto with = [&](const char* consumer) {
    return outcome(u.sch.cache_read(u.block("left"), 0, "local", {u.block("left"), u.block(consumer)}));
  };
  EXPECT_EQ(with("last"), "cannot cache what the consumers read: 'T' is written between them");
  EXPECT_EQ(with("double"), "cannot cache what block 'double' reads: it does not read 'T'");
  EXPECT_EQ(with("step"), "cannot cache what block 'step' reads: it writes 'T' as well");
  const BlockRV right = u.block("right");
  (void)u.sch.blockize(u.sch.get_loops(right).value_or_throw()[0]).value_or_throw();
  EXPECT_EQ(with("right"), "cannot cache what block 'right' reads: it is not beside block 'left'");
}

TEST(cache_write, keeps_for_its_consumers_what_it_wrote) {
  Uses u;
  ASSERT_EQ(outcome(u.sch.cache_write(u.block("double"), 0, "local", {u.block("left")})), "accepted");
  EXPECT_EQ(u.reads("left"), "T_local");
  EXPECT_EQ(u.reads("right"), "T");
  EXPECT_EQ(u.difference(), "");
  Schedule again = Schedule::create(u.original).value_or_throw();
  ASSERT_TRUE(parse_trace(u.sch.trace().as_python()).value_or_throw().apply(again));
  EXPECT_EQ(ir::first_difference(again.mod(), u.sch.mod()).value_or(""), "");
}

// P[i] = T[i - 1] inside, and 0 around: an index alone says that more is read than there is.
TEST(cache_write, keeps_all_that_a_padded_consumer_can_read) {
  Builder b;
  const Buffer x = b.input("X", {int64(6)}), t = b.inner("T", {int64(6)}), p = b.output("P", {int64(8)});
  b.compute("double", t, [&](const std::vector<Expr>& i) { return load(x, i) * f32(2); });
  b.compute("pad", p, [&](const std::vector<Expr>& i) {
    return if_then_else(logical_and(i[0] >= 1, i[0] < 7), load(t, {i[0] - 1}), f32(0));
  });
  const Function original = b.build();
  Schedule sch = Schedule::create(original).value_or_throw();
  const BlockRV pad = sch.get_block("pad").value_or_throw();
  ASSERT_EQ(outcome(sch.cache_write(sch.get_block("double").value_or_throw(), 0, "local", {pad})), "accepted");
  EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 7), "");
}

TEST(cache_write, refuses_consumers_that_would_read_something_else) {
  Uses u;
  const auto with = [&](const char* consumer) {
    return outcome(u.sch.cache_write(u.block("double"), 0, "local", {u.block(consumer)}));
  };
  EXPECT_EQ(with("last"), "block 'last' cannot read the cache of 'T': it is written once more before that");
  const auto before = u.sch.cache_write(u.block("step"), 0, "local", {u.block("left")});
  EXPECT_NE(outcome(before), "accepted");

  // Y[i] = D[i] + D[i + 1], the first half of D by itself: the cache has less than is read.
  Builder b;
  const Buffer x = b.input("X", {int64(9)}), d = b.inner("D", {int64(9)}), y = b.output("Y", {int64(8)});
  b.compute("double", d, [&](const std::vector<Expr>& i) { return load(x, i) * f32(2); });
  b.compute("add", y, [&](const std::vector<Expr>& i) { return load(d, i) + load(d, {i[0] + 1}); });
  Schedule sch = Schedule::create(b.build()).value_or_throw();
  const BlockRV first = sch.get_block("double").value_or_throw(), add = sch.get_block("add").value_or_throw();
  Schedule whole = sch;
  EXPECT_EQ(outcome(whole.cache_write(first, 0, "local", {add})), "accepted");
  (void)sch.loop_partition(sch.get_loops(first).value_or_throw()[0], {int64_t{5}, Factor()}).value_or_throw();
  EXPECT_NE(outcome(sch.cache_write(first, 0, "local", {add})), "accepted");
  const BlockRV second = sch.get_block("double_part1").value_or_throw();
  EXPECT_EQ(outcome(sch.cache_write(second, 0, "local", {add})),
            "block 'add' cannot read the cache of 'D': could not show that all that it reads was written there");
  EXPECT_EQ(outcome(sch.cache_write(second, 0, "local", {first})),
            "block 'double' cannot read the cache of 'D': it does not follow in the same loops");
}

}  // namespace
}  // namespace lathe::schedule
