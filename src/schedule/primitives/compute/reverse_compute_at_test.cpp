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

}  // namespace
}  // namespace lathe::schedule
