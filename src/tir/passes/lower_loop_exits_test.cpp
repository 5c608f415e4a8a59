#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"
#include "tir/verify.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

Stmt exit_of(const Intrinsic& which) { return make<Evaluate>(call(DType::void_(), which, {})); }
Stmt left_if(const Expr& condition, const Intrinsic& which) {
  return make<IfThenElse>(condition, exit_of(which), Stmt());
}

TEST(lower_loop_exits, makes_of_programs_what_its_text_expects) { expect_text(lower_loop_exits, __FILE__); }

// Loops inside loops, each left or gone on with under random conditions, beside stores that tell what ran.
class RandomLoops {
 public:
  explicit RandomLoops(uint64_t seed) : random_(seed) {}

  Function function() {
    out_ = buffer("out", {int64(4096)}, DType::int64());
    count_ = buffer("count", {int64(1)}, DType::int64(), "local");
    const Stmt zeroed = loop(var("z"), int64(4096), [&](const Var& z) { return store(out_, z, int64(0)); });
    const Stmt body = seq({zeroed, store(count_, int64(0), int64(0)), level(3, {})});
    return prim_func({out_}, make<DeclBuffer>(count_, body));
  }

 private:
  static Stmt store(const Buffer& to, const Expr& at, const Expr& value) {
    return make<BufferStore>(to, value, std::vector<Expr>{at});
  }
  static Stmt loop(const Var& v, const Expr& extent, const std::function<Stmt(const Var&)>& body) {
    return testing::loop(v, extent, body(v));
  }
  int64_t number(int64_t below) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(below)); }

  // Notes where the program is, as often as it comes here.
  Stmt note(const std::vector<Var>& around) {
    Expr where = int64(number(100));
    for (const Var& v : around) where = where * int64(7) + v;
    const Expr at = load(count_, {int64(0)});
    return seq({store(out_, floormod(at, int64(4096)), where), store(count_, int64(0), at + int64(1))});
  }
  Expr condition(const std::vector<Var>& around) {
    Expr sum = load(count_, {int64(0)});
    for (const Var& v : around) sum = sum + v * int64(number(3));
    return eq(floormod(sum, int64(2 + number(5))), int64(0));
  }
  Stmt level(int depth, std::vector<Var> around) {
    std::vector<Stmt> list;
    for (int64_t k = 1 + number(4); k-- > 0;) {
      const int64_t kind = number(depth > 0 ? 6 : 4);
      if (kind >= 4) {
        const Var v = var("i" + std::to_string(depth));
        std::vector<Var> inside = around;
        inside.push_back(v);
        list.push_back(testing::loop(v, int64(1 + number(5)), level(depth - 1, inside)));
      } else if (kind == 0 && !around.empty()) {
        list.push_back(left_if(condition(around), number(2) ? intrinsic::break_loop : intrinsic::continue_loop));
      } else if (kind == 1 && !around.empty()) {
        list.push_back(make<IfThenElse>(condition(around), seq({note(around), level(0, around)}), note(around)));
      } else {
        list.push_back(note(around));
      }
    }
    return seq(std::move(list));
  }

  std::mt19937_64 random_;
  Buffer out_, count_;
};

TEST(lower_loop_exits, keeps_what_random_loops_do) {
  int left = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Function f = RandomLoops(seed).function();
    ASSERT_EQ(support::render(verify(f)), "") << seed;
    left += count<Evaluate>(f) > 0;
    const Function lowered = run(f, {lower_loop_exits});
    EXPECT_EQ(count<Evaluate>(lowered), 0);
    EXPECT_EQ(difference(f, lowered, seed + 1), "") << "seed " << seed;
  }
  EXPECT_GT(left, 80);
}

TEST(lower_loop_exits, leaves_other_programs_alone) {
  const Function f = padded_stencil(16, ForKind::serial);
  EXPECT_EQ(run(f, {lower_loop_exits})->body.get(), f->body.get());
}

TEST(lower_loop_exits, exits_stand_where_they_can_be_taken) {
  const Buffer b = buffer("B", {int64(8)}, DType::int64());
  const auto refused = [&](const Stmt& body) {
    const auto found = verify(prim_func({b}, body));
    return found.empty() ? std::string() : std::string(found[0].code.name) + ": " + found[0].message;
  };
  const Var i = var("i");
  const Stmt exit = exit_of(intrinsic::break_loop);
  EXPECT_EQ(refused(exit), "tir-wrong-loop-exit: T.break_loop() stands in no loop");
  EXPECT_EQ(refused(loop(i, int64(8), exit)), "");
  EXPECT_EQ(refused(loop(i, int64(8), exit, ForKind::vectorized)),
            "tir-wrong-loop-exit: T.break_loop() leaves a loop that is not serial: its iterations have no order");
  const Stmt in_value = make<BufferStore>(b, call(DType::int64(), intrinsic::continue_loop, {}), std::vector<Expr>{i});
  EXPECT_EQ(refused(loop(i, int64(8), in_value)),
            "tir-wrong-loop-exit: T.continue_loop() is a statement, and has no value");
}

}  // namespace
}  // namespace lathe::tir
