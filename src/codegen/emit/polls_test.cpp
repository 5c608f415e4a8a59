#include "codegen/emit/polls.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/visit.h"
#include "tir/stmt.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

const Buffer polled = buffer("P", {int64(64)}, DType::float32());

Stmt tiny() { return make<BufferStore>(polled, load(polled, {int64(0)}), std::vector<Expr>{int64(1)}); }

Stmt repeated(const std::string& name, const Expr& extent, Stmt body, ForKind kind = ForKind::serial) {
  return make<For>(var(name), int64(0), extent, kind, std::move(body));
}

// The iterations between questions of each loop that asks, by its variable.
std::map<std::string, int64_t> planned(const Stmt& body) {
  std::map<std::string, int64_t> by_name;
  for (const auto& [loop, poll] : plan_polls(body)) {
    const bool is_for = &loop->node_class() == &node_class_of<For>();
    by_name[is_for ? static_cast<const For*>(loop)->loop_var->name : "while"] = poll.every;
  }
  return by_name;
}

TEST(plan_polls, asks_nothing_of_loops_that_end_soon) {
  EXPECT_TRUE(planned(repeated("i", int64(1000), repeated("j", int64(1000), tiny()))).empty());
  EXPECT_TRUE(planned(nop()).empty());
  EXPECT_TRUE(planned(repeated("i", int64(0), tiny())).empty());
}

TEST(plan_polls, cuts_a_long_loop_of_a_short_body) {
  const auto fixed = planned(repeated("i", int64(int64_t{1} << 40), tiny()));
  ASSERT_EQ(fixed.size(), 1u);
  EXPECT_GT(fixed.at("i"), 10'000);
  EXPECT_EQ(planned(repeated("i", var("n"), tiny(), ForKind::parallel)), fixed) << "a symbolic extent may be as long";
}

TEST(plan_polls, asks_where_a_question_costs_little) {
  // The middle one has work enough: the inner one goes without, the outer one needs none of its own but may ask too.
  const Stmt body = repeated("inner", int64(1000), tiny());
  EXPECT_EQ(planned(repeated("outer", int64(1 << 20), body)), (std::map<std::string, int64_t>{{"outer", 1}}));
  EXPECT_EQ(planned(repeated("outer", var("n"), body)).at("outer"), 1);
}

TEST(plan_polls, asks_after_each_turn_around_a_loop_of_unknown_length) {
  const auto nested = planned(repeated("outer", var("n"), repeated("inner", var("m"), tiny())));
  EXPECT_EQ(nested.at("outer"), 1) << "many short inner loops ask nothing";
  EXPECT_GT(nested.at("inner"), 1);
  EXPECT_EQ(planned(make<While>(load(polled, {int64(0)}) < constant(DType::float32(), 1.0), tiny())),
            (std::map<std::string, int64_t>{{"while", 1}}));
}

TEST(plan_polls, sees_through_everything_that_holds_statements) {
  const Stmt endless = repeated("i", var("n"), tiny());
  const Stmt wrapped = make<IfThenElse>(
      load(polled, {int64(0)}) < constant(DType::float32(), 1.0),
      Stmt(make<LetStmt>(var("v"), int64(1),
                         Stmt(make<Allocate>(polled->data, DType::float32(), std::vector<Expr>{int64(4)},
                                             std::string("local"), endless)))),
      Stmt(tiny()));
  EXPECT_EQ(planned(seq({tiny(), wrapped})).size(), 1u);
}

}  // namespace
}  // namespace lathe::codegen
