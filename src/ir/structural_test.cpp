#include "ir/structural.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/visit.h"

namespace lathe::ir {
namespace {

// x + x, repeated: a handful of nodes, and 2^levels paths to x.
Expr doubled(Expr x, int levels) {
  for (int i = 0; i < levels; ++i) x = make<Add>(x, x);
  return x;
}

// The same, with each side built by itself.
Expr doubled_apart(const Expr& x, int levels) {
  return levels == 0 ? x : make<Add>(doubled_apart(x, levels - 1), doubled_apart(x, levels - 1));
}

// The same again, with two equal nodes at each level.
Expr doubled_in_pairs(Expr x, int levels) {
  Expr other = x;
  for (int i = 0; i < levels; ++i) {
    const Expr left = make<Add>(x, other), right = make<Add>(other, x);
    x = left, other = right;
  }
  return x;
}

TEST(structural_sharing, takes_linear_time_on_shared_nodes) {
  constexpr int levels = 1000;  // more paths than any machine walks
  const Var x = var("x"), y = var("y");
  EXPECT_TRUE(structural_equal(doubled(x, levels), doubled(x, levels)));
  EXPECT_TRUE(structural_equal(doubled(x, levels), doubled_in_pairs(x, levels)));
  EXPECT_TRUE(structural_equal(doubled_in_pairs(x, levels), doubled_in_pairs(x, levels)));
  EXPECT_TRUE(structural_equal(doubled(x, levels), doubled(y, levels), true));
  EXPECT_FALSE(structural_equal(doubled(x, levels), doubled(y, levels)));
  EXPECT_FALSE(structural_equal(doubled(x, levels), doubled(x, levels + 1), true));
  for (const bool map_free_vars : {true, false}) {
    const auto hash = structural_hash(doubled(x, levels), map_free_vars);
    EXPECT_EQ(hash, structural_hash(doubled_in_pairs(x, levels), map_free_vars));
    EXPECT_NE(hash, structural_hash(doubled(x, levels + 1), map_free_vars));
    EXPECT_EQ(hash == structural_hash(doubled(y, levels), map_free_vars), map_free_vars);
  }
}

TEST(structural_sharing, walks_and_rewrites_take_linear_time_on_shared_nodes) {
  constexpr int levels = 1000;
  const Var x = var("x"), y = var("y"), z = var("z");
  const Expr sum = doubled(x, levels);
  EXPECT_EQ(free_vars(sum), std::vector<Var>{x});
  EXPECT_TRUE(uses_var(sum, x));
  EXPECT_FALSE(uses_var(sum, y));
  EXPECT_TRUE(structural_equal(substitute(sum, {{x, y}}), doubled(y, levels)));
  EXPECT_TRUE(substitute(sum, {{y, z}}).same_as(sum));
  const Expr swapped = rewrite_post_order(sum, [&](NodeRef n) { return n == NodeRef(x) ? NodeRef(y) : n; });
  EXPECT_TRUE(structural_equal(swapped, doubled(y, levels)));
}

TEST(structural_sharing, does_not_count) {
  const Var x = var("x");
  for (const bool map_free_vars : {true, false}) {
    EXPECT_TRUE(structural_equal(doubled(x, 6), doubled_apart(x, 6), map_free_vars));
    EXPECT_TRUE(structural_equal(doubled_apart(x, 6), doubled(x, 6), map_free_vars));
    EXPECT_EQ(structural_hash(doubled(x, 6), map_free_vars), structural_hash(doubled_apart(x, 6), map_free_vars));
  }
}

TEST(structural_sharing, keeps_the_pairing_of_variables) {
  // f(x, y) + f(x, y), where the right side of the second swaps them: equal halves are not equal wholes.
  const Var x = var("x"), y = var("y");
  const auto product = [](const Expr& a, const Expr& b) { return make<Mul>(a, make<Sub>(a, b)); };
  const Expr one = product(x, y), other = product(y, x);
  EXPECT_TRUE(structural_equal(one, other, true));
  EXPECT_TRUE(structural_equal(Expr(make<Add>(one, one)), Expr(make<Add>(other, other)), true));
  EXPECT_FALSE(structural_equal(Expr(make<Add>(one, one)), Expr(make<Add>(one, other)), true));
  EXPECT_NE(structural_hash(Expr(make<Add>(one, one))), structural_hash(Expr(make<Add>(one, other))));
}

TEST(structural_sharing, tells_free_from_bound_in_one_shared_node) {
  // (x + 1) * (let x = 2 in x + 1): the x outside is another one than that inside, whether or not x + 1 is shared.
  const Var x = var("x");
  const auto inner = [&] { return Expr(make<Add>(x, constant(x->dtype, 1))); };
  const auto around = [&](const Expr& outside, const Expr& inside) {
    return Expr(make<Mul>(outside, make<Let>(x, constant(x->dtype, 2), make<Mul>(inside, inside))));
  };
  const Expr shared = inner();
  EXPECT_EQ(structural_hash(around(shared, shared), false), structural_hash(around(inner(), inner()), false));
}

TEST(structural_sharing, bound_variables_are_numbered_alike_however_nodes_are_shared) {
  // let x = 1 in s * s, with s = (x + x) + (x + x), s shared or not, x of one name or another.
  const auto bind = [](const Var& x, bool share) {
    const auto sum = [&] { return share ? doubled(x, 2) : doubled_apart(x, 2); };
    const Expr s = sum();
    return Expr(make<Let>(x, constant(x->dtype, 1), make<Mul>(s, share ? s : sum())));
  };
  for (const bool map_free_vars : {true, false}) {
    EXPECT_EQ(structural_hash(bind(var("x"), true), map_free_vars),
              structural_hash(bind(var("y"), false), map_free_vars));
    EXPECT_TRUE(structural_equal(bind(var("x"), true), bind(var("y"), false), map_free_vars));
  }
}

}  // namespace
}  // namespace lathe::ir
