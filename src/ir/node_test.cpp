// Reference counts, in-place rewriting and the bound on depth.
#include "ir/node.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "ir/build.h"
#include "ir/structural.h"
#include "ir/visit.h"

namespace lathe::ir {
namespace {

// A random expression whose parts are shared at random with `pool`.
Expr random_expr(std::mt19937& random, std::vector<Expr>& pool, int depth) {
  if (depth == 0 || random() % 5 == 0) return pool[random() % pool.size()];
  const auto part = [&] { return random_expr(random, pool, depth - 1); };
  Expr e;
  switch (random() % 6) {
    case 0:
      e = make<Add>(part(), part());
      break;
    case 1:
      e = make<Mul>(part(), part());
      break;
    case 2:
      e = make<Select>(make<LT>(part(), part()), part(), part());
      break;
    case 3:
      e = make<Call>(DType::int64(), &intrinsic::likely, std::vector<Expr>{part(), part(), part()});
      break;
    case 4:
      e = make<Min>(part(), int64(static_cast<int64_t>(random() % 9)));
      break;
    default:
      e = make<Cast>(DType::int64(), part());
      break;
  }
  if (random() % 3 == 0 && e->depth() < 5) pool.push_back(e);
  return e;
}

constexpr auto bump = [](NodeRef n) -> NodeRef {
  if (const auto* imm = n.as<IntImm>()) return constant(imm->dtype, imm->value + 1);
  return n;
};

TEST(rewriting_in_place, never_changes_what_someone_else_holds) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<Expr> pool{var("x"), int64(3), int64(4)};
    Expr e = random_expr(random, pool, 7);
    std::vector<support::Hash128> before;
    for (const Expr& held : pool) before.push_back(structural_hash(held, false));
    const Expr kept = random() % 2 ? e : Expr();
    const support::Hash128 whole = structural_hash(e, false);
    const Expr rewritten = rewrite_post_order(e, bump);
    for (size_t i = 0; i < pool.size(); ++i) ASSERT_EQ(structural_hash(pool[i], false), before[i]);
    if (kept) ASSERT_EQ(structural_hash(kept, false), whole);
    // And in place or not, the result is the same.
    if (kept) {
      const Expr again = rewrite_post_order(kept, bump);
      ASSERT_EQ(structural_hash(again, false), structural_hash(rewritten, false));
    }
  }
}

TEST(rewriting_in_place, works_on_what_nobody_else_holds) {
  Expr e = make<Add>(make<Mul>(var("x"), int64(2)), int64(3));
  const ExprNode* address = e.get();
  struct Bump : Rewriter {
    NodeRef visit(NodeRef n) override { return bump(descend(std::move(n))); }
  } rewriter;
  const Expr changed = rewriter(std::move(e));
  EXPECT_EQ(changed.get(), address);
  EXPECT_TRUE(is_int(changed.as<Add>()->b, 4));
}

TEST(depth, at_the_bound_is_walked_and_destroyed) {
  Expr e = var("x", DType::boolean());
  while (e->depth() < max_depth) e = make<Not>(e);
  try {
    (void)make<Not>(e);
    FAIL() << "a node deeper than the bound was built";
  } catch (const support::DiagnosticError& refusal) {
    EXPECT_EQ(refusal.diagnostics.at(0).code.name, "ir-too-deep");
  }
  int count = 0;
  post_order(e, [&](const NodeRef&) { ++count; });
  EXPECT_EQ(count, static_cast<int>(max_depth));
  const Expr same = rewrite_post_order(e, [](NodeRef n) { return n; });
  EXPECT_TRUE(same.same_as(e));
  EXPECT_TRUE(structural_equal(e, e));
  EXPECT_EQ(structural_hash(e), structural_hash(same));
  e = {};
}

TEST(depth, of_a_rewrite_is_bounded_too) {
  Expr e = var("x", DType::boolean());
  while (e->depth() < max_depth) e = make<Not>(e);
  EXPECT_THROW((void)rewrite_post_order(e,
                                        [](NodeRef n) -> NodeRef {
                                          if (const auto* v = n.as<VarNode>()) return make<Not>(Var(v));
                                          return n;
                                        }),
               support::DiagnosticError);
}

TEST(references, are_counted_across_threads) {
  const Expr shared = var("x") + 1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&shared] {
      for (int i = 0; i < 2000; ++i) {
        const Expr copy = shared;
        const Expr larger = make<Mul>(copy, copy);
        const Expr rewritten = rewrite_post_order(larger, bump);
        if (!is_int(rewritten.as<Mul>()->a.as<Add>()->b, 2)) std::abort();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_TRUE(is_int(shared.as<Add>()->b, 1));
  EXPECT_TRUE(shared->unique());
}

TEST(handles, know_their_kind) {
  const Expr e = var("x") + 1;
  EXPECT_TRUE(e.is<Add>());
  EXPECT_EQ(e.as<Sub>(), nullptr);
  EXPECT_EQ(Expr().as<Add>(), nullptr);
  EXPECT_THROW(cast<Sub>(e), support::InternalError);
  EXPECT_EQ(cast<Add>(e)->dtype, DType::int64());
}

}  // namespace
}  // namespace lathe::ir
