#include "tir/stmt.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/structural.h"
#include "ir/visit.h"
#include "tir/scalars.h"

namespace lathe::tir {
namespace {

// for i in range(n): B[i] = A[i] + value
Function add_value(const char* loop_name, int64_t n, double value) {
  Buffer a = buffer("A", {int64(n)}, DType::float32()), b = buffer("B", {int64(n)}, DType::float32());
  Var i = var(loop_name);
  Stmt store = make<BufferStore>(b, load(a, {i}) + constant(DType::float32(), value), std::vector<Expr>{i});
  return prim_func({a, b}, make<For>(i, int64(0), int64(n), ForKind::serial, store));
}

TEST(structural, ignores_the_names_of_bound_variables) {
  EXPECT_TRUE(structural_equal(add_value("i", 8, 1), add_value("j", 8, 1)));
  EXPECT_EQ(structural_hash(add_value("i", 8, 1)), structural_hash(add_value("j", 8, 1)));
}

TEST(structural, names_the_first_difference) {
  const auto extent = first_difference(add_value("i", 8, 1), add_value("i", 9, 1));
  ASSERT_TRUE(extent);
  EXPECT_NE(extent->find("8 is not 9"), std::string::npos) << *extent;
  const auto value = first_difference(add_value("i", 8, 1), add_value("i", 8, 2));
  ASSERT_TRUE(value);
  EXPECT_NE(value->find("body"), std::string::npos) << *value;
  EXPECT_NE(structural_hash(add_value("i", 8, 1)), structural_hash(add_value("i", 8, 2)));
}

TEST(structural, pairs_free_variables_only_when_asked) {
  const Var x = var("x"), y = var("y");
  EXPECT_FALSE(structural_equal(Expr(x + 1), Expr(y + 1)));
  EXPECT_TRUE(structural_equal(Expr(x + 1), Expr(y + 1), true));
  EXPECT_FALSE(structural_equal(Expr(x + x), Expr(x + y), true));
}

TEST(structural, tells_buffers_apart_by_binding) {
  Buffer a = buffer("A", {int64(4)}, DType::float32()), b = buffer("B", {int64(4)}, DType::float32());
  const Var i = var("i");
  const auto copy = [&](const Buffer& from, const Buffer& to) {
    return prim_func({a, b}, make<For>(i, int64(0), int64(4), ForKind::serial,
                                       make<BufferStore>(to, load(from, {i}), std::vector<Expr>{i})));
  };
  EXPECT_TRUE(structural_equal(copy(a, b), copy(a, b)));
  EXPECT_FALSE(structural_equal(copy(a, b), copy(b, a)));
}

TEST(rewriting, keeps_the_handle_where_nothing_changed) {
  const Function f = add_value("i", 8, 1);
  const Function same = rewrite_post_order(f, [](NodeRef n) { return n; });
  EXPECT_TRUE(same.same_as(f));
}

TEST(rewriting, does_not_touch_a_shared_node) {
  const Function f = add_value("i", 8, 1);
  const support::Hash128 before = structural_hash(f);
  const Function changed = rewrite_post_order(f, [](NodeRef n) -> NodeRef {
    if (const auto* imm = n.as<FloatImm>()) return constant(imm->dtype, imm->value + 1);
    return n;
  });
  EXPECT_EQ(structural_hash(f), before);
  EXPECT_TRUE(structural_equal(changed, add_value("i", 8, 2)));
}

TEST(rewriting, inherits_the_origin_of_what_it_replaces) {
  const auto place = std::make_shared<const support::Place>(support::ModelNode{"m.onnx", "Add_1", "Add"});
  Expr e = with_origin(Expr(var("x") + 1), place);
  const Expr twice = rewrite_post_order(e, [](NodeRef n) -> NodeRef {
    if (const auto* imm = n.as<IntImm>()) return int64(imm->value * 2);
    return n;
  });
  EXPECT_EQ(twice->origin(), place);
}

TEST(depth, is_bounded_by_a_diagnostic) {
  Expr e = var("x");
  EXPECT_THROW(
      {
        for (int i = 0; i < 5000; ++i)
          e = make<Not>(eq(e->dtype.is_bool() ? select(e, int64(1), int64(0)) : e, int64(3)));
      },
      support::DiagnosticError);
}

TEST(substitution, rebuilds_buffers_once) {
  const Var n = size_var("n"), i = var("i");
  Buffer a = buffer("A", {n}, DType::float32());
  const Stmt copy = make<BufferStore>(a, load(a, {i}), std::vector<Expr>{i});
  const Stmt fixed = substitute(copy, {{n, int64(7)}});
  const auto& store = *fixed.as<BufferStore>();
  EXPECT_TRUE(store.buffer.same_as(store.value.as<BufferLoad>()->buffer));
  EXPECT_TRUE(is_int(store.buffer->shape[0], 7));
}

// B[i] = A[i * p + q], with p and q as scalars
Function strided_copy() {
  const Var p = size_var("p"), q = size_var("q"), i = var("i");
  Buffer a = buffer("A", {int64(64)}, DType::float32()), b = buffer("B", {int64(4)}, DType::float32());
  const Stmt copy = make<BufferStore>(b, load(a, {i * p + q}), std::vector<Expr>{i});
  return prim_func({a, b}, make<For>(i, int64(0), int64(4), ForKind::serial, copy), {p, q});
}

TEST(specialize, puts_numbers_in_the_place_of_some_scalars) {
  const Function whole = strided_copy();
  const Function part = specialize(whole, {std::nullopt, 3});
  const std::vector<Var> left = scalar_params(*part);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_TRUE(left[0].same_as(scalar_params(*whole)[0]));
  EXPECT_TRUE(structural_equal(specialize(part, {2}), specialize(whole, {2, 3})));
  EXPECT_FALSE(structural_equal(specialize(part, {2}), specialize(whole, {3, 2})));
  EXPECT_TRUE(structural_equal(specialize(whole, {std::nullopt, std::nullopt}), whole));
}

TEST(specialize, asks_for_a_value_of_each_scalar) {
  EXPECT_THROW(specialize(strided_copy(), {1}), support::InternalError);
}

}  // namespace
}  // namespace lathe::tir
