#include <gtest/gtest.h>

#include "schedule/analysis/tree.h"
#include "schedule/testing/programs.h"
#include "script/parse.h"
#include "tir/script/dialect.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

// Tiles that do not divide the rows: the consumer of the last tile stops where the rows do.
TEST(reverse_compute_at, stops_the_consumer_behind_a_tail) {
  for (const char* producer : {"matmul", "bias_add"}) {
    const bool first = producer == std::string("matmul");
    const Function original = testing::dense(int64(8), int64(6), int64(4));
    Schedule sch = Schedule::create(original).value_or_throw();
    const BlockRV block = sch.get_block(producer).value_or_throw();
    const LoopRV rows = sch.get_loops(block).value_or_throw()[0];
    const LoopRV tile = sch.split(rows, {Factor(), int64_t{3}}).value_or_throw()[0];
    const auto placed = sch.reverse_compute_at(sch.get_block(first ? "bias_add" : "relu").value_or_throw(), tile);
    ASSERT_TRUE(placed.ok()) << support::render(placed.diagnostics());
    EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
  }
}

// A predicate may cut off what lies before the domain, as compute_at leaves it: that does not come back.
TEST(reverse_compute_at, stays_behind_the_start_of_its_domain) {
  const script::Dialect* dialects[] = {&tir::script_dialect()};
  const Function original = ir::cast<PrimFunc>(NodeRef(script::parse_function({"test", R"(
@T.prim_func
def main(X: T.Buffer((3, 4), "int32"), Y: T.Buffer((3, 6), "int32")):
    A = T.alloc_buffer((3, 4), "int32")
    B = T.alloc_buffer((3, 6), "int32")
    for i in range(3):
        for k in range(4):
            with T.block("double"):
                vi, vk = T.axis.remap("SS", [i, k])
                A[vi, vk] = X[vi, vk] * 2
    for i in range(3):
        for k in range(8):
            with T.block("pad"):
                vi = T.axis.spatial(3, i)
                vk = T.axis.spatial(6, k - 1)
                T.where(1 <= k and k < 7)
                B[vi, vk] = T.if_then_else(vk - 1 >= 0 and vk - 1 < 4, A[vi, vk - 1], 0)
    for i in range(3):
        for k in range(6):
            with T.block("add"):
                vi, vk = T.axis.remap("SS", [i, k])
                Y[vi, vk] = B[vi, vk] + 1
)"},
                                                                              dialects)
                                                           .value_or_throw()));
  Schedule sch = Schedule::create(original).value_or_throw();
  const LoopRV row = sch.get_loops(sch.get_block("double").value_or_throw()).value_or_throw()[0];
  const auto placed = sch.reverse_compute_at(sch.get_block("pad").value_or_throw(), row);
  ASSERT_TRUE(placed.ok()) << support::render(placed.diagnostics());
  EXPECT_EQ(tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3), "");
}

// The blocks in program order.
std::vector<std::string> order(const Schedule& sch) {
  std::vector<std::string> names;
  each_statement(sch.function().body, [&](const Stmt& s) {
    const auto* block = s.as<Block>();
    if (block && block->name != "root") names.push_back(block->name);
  });
  return names;
}

TEST(reverse_compute_at, comes_last_or_first_or_where_it_is_told) {
  using Names = std::vector<std::string>;
  const auto placed = [](int64_t index) {
    testing::Builder b;
    const Buffer x = b.input("X", {int64(6)}), t = b.inner("T", {int64(6)});
    b.compute("first", t, [&](const std::vector<Expr>& i) { return load(x, i) * testing::f32(2); });
    for (const char* name : {"second", "third"}) {
      const Buffer y = b.output(name, {int64(6)});
      b.compute(name, y, [&](const std::vector<Expr>& i) { return load(t, i) + testing::f32(1); });
    }
    Schedule sch = Schedule::create(b.build()).value_or_throw();
    const LoopRV loop = sch.get_loops(sch.get_block("first").value_or_throw()).value_or_throw()[0];
    EXPECT_TRUE(sch.reverse_compute_at(sch.get_block("second").value_or_throw(), loop));
    EXPECT_TRUE(sch.reverse_compute_at(sch.get_block("third").value_or_throw(), loop, false, index));
    return order(sch);
  };
  EXPECT_EQ(placed(-1), (Names{"first", "second", "third"}));
  EXPECT_EQ(placed(2), (Names{"first", "second", "third"}));
  EXPECT_EQ(placed(-2), (Names{"first", "third", "second"}));
  EXPECT_EQ(placed(1), (Names{"first", "third", "second"}));
}

// A program, and what becomes of moving block "c" under a loop of block "p".
struct Placing {
  Function original;
  Schedule sch;
  std::string refusal;

  Placing(const std::string& text, size_t loop = 0)
      : original(testing::from_text(text)), sch(Schedule::create(original).value_or_throw()) {
    const auto placed = sch.reverse_compute_at(
        sch.get_block("c").value_or_throw(), sch.get_loops(sch.get_block("p").value_or_throw()).value_or_throw()[loop]);
    if (!placed.ok()) refusal = placed.diagnostics()[0].message;
  }
  std::string difference() const { return tir::testing::difference(original, sch.mod().find_as<PrimFunc>("main"), 3); }
};

// Elements that the loop does not write are there already: whoever reads them has to run too.
TEST(reverse_compute_at, loses_no_instance) {
  const Placing strided(R"(
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((7,), "int32")):
    for i in range(4):
        with T.block("p"):
            vi = T.axis.spatial(4, i)
            A[vi * 2] = 7
    for j in range(7):
        with T.block("c"):
            vj = T.axis.spatial(7, j)
            B[vj] = A[vj]
)");
  EXPECT_EQ(strided.refusal, "cannot compute block 'c' at loop 'i': the loop does not write all that it reads of 'A'");
  for (const char* bound : {"4", "8"}) {
    const Placing under_if(fmt::format(R"(
@T.prim_func
def main(A: T.Buffer((8, 3), "int32"), B: T.Buffer((8, 3), "int32")):
    for i in range(8):
        if i < {}:
            for j in range(3):
                with T.block("p"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    A[vi, vj] = 7
    for i, j in T.grid(8, 3):
        with T.block("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
)",
                                       bound),
                           1);
    if (bound == std::string("4"))
      EXPECT_EQ(under_if.refusal, "cannot compute block 'c' at loop 'j': the loop is inside an if");
    else
      EXPECT_EQ(under_if.refusal, "");
    EXPECT_EQ(under_if.difference(), "");
  }
}

// What blocks inside of it touch counts as well.
TEST(reverse_compute_at, heeds_what_blocks_inside_touch) {
  for (const bool meets : {true, false}) {
    const Placing nested(fmt::format(R"(
@T.prim_func
def main(A: T.Buffer((8,), "int32"), E: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")):
    P = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("p"):
            vi = T.axis.spatial(8, i)
            P[vi] = A[vi]
    for i in range(8):
        with T.block("e"):
            vi = T.axis.spatial(8, i)
            {}[7 - vi] = A[vi]
    for j in range(8):
        with T.block("c"):
            vj = T.axis.spatial(8, j)
            B[vj] = P[vj]
            for k in range(1):
                with T.block("d"):
                    vk = T.axis.spatial(1, k)
                    D[vj] = E[vj]
)",
                                     meets ? "E" : "P"));
    EXPECT_NE(nested.refusal, "") << meets;
    EXPECT_EQ(nested.difference(), "");
  }
}

// Its own instances may meet, as long as none of them overtakes another.
TEST(reverse_compute_at, keeps_the_order_of_instances_that_meet) {
  // P by rows or, where it turns, by columns, and then block "c".
  const auto placing = [](bool turns, const char* shape, const char* statement) {
    return Placing(fmt::format(R"(
@T.prim_func
def main(X: T.Buffer((5, 6), "int32"), A: T.Buffer({}, "int32")):
    P = T.alloc_buffer((5, 6), "int32")
    for {} in range({}):
        for {} in range({}):
            with T.block("p"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = X[vi, vj] * 2
    for i, j in T.grid(5, 6):
        with T.block("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            {}
)",
                               shape, turns ? "j" : "i", turns ? 6 : 5, turns ? "i" : "j", turns ? 5 : 6, statement));
  };
  for (const bool turns : {false, true}) {
    const Placing own = placing(turns, "(9, 9)", "A[vi + 1, vj] = A[vi + 2, vj + 1] * 3 + P[vi, vj]");
    // In (i, j), (i, j) reads what (i + 1, j + 1) writes later; by columns too. Sums of both that meet do not stay.
    EXPECT_EQ(own.refusal, "") << turns;
    EXPECT_EQ(own.difference(), "");
    const Placing scattered = placing(turns, "(16,)", "A[vi + vj] = P[vi, vj]");
    const char* why =
        turns ? "cannot compute block 'c' at loop 'j': instances with other variables may write one element" : "";
    EXPECT_EQ(scattered.refusal, why);
    EXPECT_EQ(scattered.difference(), "");
  }
}

}  // namespace
}  // namespace lathe::schedule
