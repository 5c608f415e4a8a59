#include <gtest/gtest.h>

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "schedule/testing/programs.h"

namespace lathe::schedule {
namespace {

// What is asked for, taken together, is what the next iteration reads, and nothing twice but for lines.
TEST(prefetch, asks_for_all_of_the_next_iteration) {
  constexpr int64_t columns = 100, tiles = 3;
  const Function f = testing::matmul(int64(8), int64(6), int64(columns));
  Schedule schedule = Schedule::create(f).value_or_throw();
  const BlockRV block = schedule.get_block("matmul").value_or_throw();
  const std::vector<LoopRV> loops = schedule.get_loops(block).value_or_throw();
  const std::vector<LoopRV> cut = schedule.split(loops[1], {tiles, Factor()}).value_or_throw();
  const BlockRV hints = schedule.prefetch(block, 0, loops[0], cut[0], {.level = 3}).value_or_throw();
  EXPECT_EQ(schedule.get_loops(hints).value_or_throw().size(), 2u);
  const Ref<Block> asked = schedule.get(hints).value_or_throw();
  EXPECT_EQ(asked->name, "matmul_prefetch");
  EXPECT_TRUE(asked->reads.empty() && asked->writes.empty());
  std::set<int64_t> lines;
  size_t count = 0;
  post_order(asked->body, [&](const NodeRef& n) {
    const auto* hint = n.as<Call>();
    if (!hint || hint->op != &intrinsic::prefetch) return;
    ++count;
    EXPECT_TRUE(is_int(hint->args[1], 3));
    const auto* element = hint->args[0].as<BufferLoad>();
    for (int64_t row = 0; row < 7; ++row)
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const VarMap at{{asked->iter_vars[0]->var, int64(row)}, {asked->iter_vars[1]->var, int64(tile)}};
        arith::Analyzer analyzer;
        const auto first = as_int(analyzer.simplify(substitute(element->indices[0], at)));
        const auto second = as_int(analyzer.simplify(substitute(element->indices[1], at)));
        ASSERT_TRUE(first && second);
        EXPECT_EQ(*first, row + 1);
        if (row == 0) lines.insert(*second);
      }
  });
  EXPECT_EQ(count, 3u) << "34 elements an iteration";
  // Iterations begin at 0, 34 and 68; each asks for every 16th element of its 34.
  EXPECT_EQ(lines, (std::set<int64_t>{0, 16, 32, 34, 50, 66, 68, 84, 100}));
}

// Iterations of a loop of unknown extent share what each of them would ask for: what so many of them ask for is all of
// the next iteration, and the following ones begin again.
TEST(prefetch, takes_turns_where_an_extent_is_unknown) {
  constexpr int64_t columns = 128, turns = 4;
  Schedule schedule = Schedule::create(testing::matmul(int64(8), ir::size_var("n"), int64(columns))).value_or_throw();
  const BlockRV block = schedule.get_block("matmul").value_or_throw();
  const std::vector<LoopRV> loops = schedule.get_loops(block).value_or_throw();
  const std::vector<LoopRV> cut = schedule.split(loops[2], {2, Factor()}).value_or_throw();
  const BlockRV hints = schedule.prefetch(block, 0, loops[0], cut[0], {.turns = turns}).value_or_throw();
  const Ref<Block> asked = schedule.get(hints).value_or_throw();
  std::set<int64_t> lines;
  size_t count = 0;
  post_order(asked->body, [&](const NodeRef& n) {
    const auto* hint = n.as<Call>();
    if (!hint || hint->op != &intrinsic::prefetch) return;
    ++count;
    for (int64_t column = 0; column < 2 * turns; ++column)
      for (int64_t half = 0; half < 2; ++half) {
        const VarMap at{{asked->iter_vars[0]->var, int64(2)},
                        {asked->iter_vars[1]->var, int64(column)},
                        {asked->iter_vars[2]->var, int64(half)}};
        arith::Analyzer analyzer;
        const auto element = as_int(analyzer.simplify(substitute(hint->args[0].as<BufferLoad>()->indices[1], at)));
        ASSERT_TRUE(element);
        EXPECT_EQ(lines.insert(*element).second, column < turns) << column << " " << half;
      }
  });
  EXPECT_EQ(count, 1u) << "a line in each of eight iterations";
  EXPECT_EQ(lines, (std::set<int64_t>{0, 16, 32, 48, 64, 80, 96, 112}));
}

// Four rows of a product go together: each step asks for what it reads of the next four, one line of each row.
TEST(prefetch, asks_in_turn_for_what_lies_apart) {
  const Function f = testing::matmul(int64(8), int64(6), int64(100));
  Schedule schedule = Schedule::create(f).value_or_throw();
  const BlockRV block = schedule.get_block("matmul").value_or_throw();
  const std::vector<LoopRV> loops = schedule.get_loops(block).value_or_throw();
  const std::vector<LoopRV> rows = schedule.split(loops[0], {Factor(), Factor(4)}).value_or_throw();
  ASSERT_TRUE(schedule.reorder({rows[0], loops[1], loops[2], rows[1]}).ok());
  const BlockRV hints = schedule.prefetch(block, 0, rows[0], loops[2], {.level = 1, .in_turn = true}).value_or_throw();
  const Ref<Block> asked = schedule.get(hints).value_or_throw();
  const VarMap at{
      {asked->iter_vars[0]->var, int64(0)}, {asked->iter_vars[1]->var, int64(5)}, {asked->iter_vars[2]->var, int64(7)}};
  std::set<std::pair<int64_t, int64_t>> elements;
  post_order(asked->body, [&](const NodeRef& n) {
    const auto* hint = n.as<Call>();
    if (!hint || hint->op != &intrinsic::prefetch) return;
    EXPECT_TRUE(is_int(hint->args[1], 1));
    const auto* element = hint->args[0].as<BufferLoad>();
    arith::Analyzer analyzer;
    const auto row = as_int(analyzer.simplify(substitute(element->indices[0], at)));
    const auto column = as_int(analyzer.simplify(substitute(element->indices[1], at)));
    ASSERT_TRUE(row && column);
    elements.insert({*row, *column});
  });
  EXPECT_EQ(elements, (std::set<std::pair<int64_t, int64_t>>{{4, 7}, {5, 7}, {6, 7}, {7, 7}}));
}

// What lies in one line is asked for once.
TEST(prefetch, asks_in_turn_once_for_each_line) {
  Schedule schedule = Schedule::create(testing::matmul(int64(8), int64(64), int64(100))).value_or_throw();
  const BlockRV block = schedule.get_block("matmul").value_or_throw();
  const std::vector<LoopRV> loops = schedule.get_loops(block).value_or_throw();
  ASSERT_TRUE(schedule.reorder({loops[2], loops[0], loops[1]}).ok());
  const BlockRV hints = schedule.prefetch(block, 1, loops[2], loops[2], {.in_turn = true}).value_or_throw();
  EXPECT_EQ(schedule.get(hints).value_or_throw()->body.as<SeqStmt>()->seq.size(), 4u) << "64 floats";
}

}  // namespace
}  // namespace lathe::schedule
