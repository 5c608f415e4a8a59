#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

struct Outcome {
  ir::IRModule module;
  std::string remark;
};

Outcome attention_fused(const ir::IRModule& module) {
  Outcome outcome;
  ir::PassContext told = context();
  told.on_remark = [&](const ir::Remark& remark) { outcome.remark = remark.text; };
  outcome.module = fuse_attention(module, told).value_or_throw();
  return outcome;
}

relax::AttributesRef order(std::vector<int64_t> axes) { return ir::make<ops::PermuteDimsAttributes>(std::move(axes)); }

// Queries, keys and values of two heads, and the parts that a test changes.
struct Parts {
  Graph g;
  Expr q = g.input("q", Extents{1, 2, 5, 3}), k = g.input("k", Extents{1, 2, 7, 3}),
       v = g.input("v", Extents{1, 2, 7, 4});
  Expr scores() { return g.call(ops::matmul, {q, g.call(ops::permute_dims, {k}, order({0, 1, 3, 2}))}); }
};

// `before` becomes calls of these, and means the same but for rounding: what is mixed is divided, not the weights.
void expect_fused(const ir::IRModule& before, const Names& expected) {
  const Outcome outcome = attention_fused(before);
  EXPECT_EQ(calls(outcome.module), expected) << outcome.remark;
  EXPECT_EQ(difference(before, outcome.module, 1e-6), "");
}

void expect_declined(const ir::IRModule& before, const std::string& remark) {
  const Outcome outcome = attention_fused(before);
  EXPECT_EQ(outcome.remark, remark);
  EXPECT_EQ(calls(outcome.module), calls(before));
  EXPECT_EQ(difference(before, outcome.module), "");
}

TEST(fuse_attention, makes_of_programs_what_its_text_expects) { expect_text(fuse_attention, __FILE__); }

TEST(fuse_attention, takes_scale_and_masks_with_it) {
  Parts p;
  const Expr scaled = p.g.call(ops::divide, {p.scores(), filled({}, 1.7)});
  const Expr added = p.g.call(ops::add, {weights({1, 1, 5, 7}, 1), scaled});
  const Expr seen = values({1, 7}, {1, 1, 0, 1, 1, 1, 0}, ir::DType::boolean());
  const Expr masked = p.g.call(ops::where, {seen, added, filled({}, -1e9)});
  const Expr mixed = p.g.call(ops::matmul, {p.g.call(ops::softmax, {masked}), p.v});
  expect_fused(p.g.finish(mixed),
               {"[permute_dims matmul divide add where nn.softmax_terms sum matmul divide multiply]"});
}

TEST(fuse_attention, leaves_the_scale_to_softmax) {
  for (const auto& [op, number] : {std::pair{&ops::multiply, 0.125F}, {&ops::divide, 5.0F}}) {
    Parts p;
    const Expr scaled = p.g.call(*op, {p.scores(), filled({}, number)});
    expect_fused(p.g.finish(p.g.call(ops::matmul, {p.g.call(ops::softmax, {scaled}), p.v})),
                 {"[permute_dims matmul nn.softmax_terms sum matmul divide multiply]"});
  }
}

TEST(fuse_attention, keeps_a_scale_that_softmax_cannot_take) {
  for (const float number : {-0.5F, 0.0F, 1e30F}) {
    Parts p;
    const Expr scaled = p.g.call(ops::multiply, {p.scores(), filled({}, number)});
    expect_fused(p.g.finish(p.g.call(ops::matmul, {p.g.call(ops::softmax, {scaled}), p.v})),
                 {"[permute_dims matmul multiply nn.softmax_terms sum matmul divide multiply]"});
  }
  Parts p;
  const Expr by_head = p.g.call(ops::multiply, {p.scores(), weights({1, 2, 1, 1}, 3)});
  expect_fused(p.g.finish(p.g.call(ops::matmul, {p.g.call(ops::softmax, {by_head}), p.v})),
               {"[permute_dims matmul multiply nn.softmax_terms sum matmul divide multiply]"});
}

TEST(fuse_attention, reads_and_writes_heads_where_they_lie) {
  Graph g;
  const Expr q = g.input("q", Extents{2, 5, 3, 4}), k = g.input("k", Extents{2, 7, 3, 4}),
             v = g.input("v", Extents{2, 7, 3, 4});
  const auto heads = [&](const Expr& x) { return g.call(ops::permute_dims, {x}, order({0, 2, 1, 3})); };
  const Expr scores = g.call(ops::matmul, {heads(q), g.call(ops::permute_dims, {k}, order({0, 2, 3, 1}))});
  const Expr mixed = g.call(ops::matmul, {g.call(ops::softmax, {scores}), heads(v)});
  expect_fused(
      g.finish(heads(mixed)),
      {"[permute_dims permute_dims matmul nn.softmax_terms sum permute_dims matmul divide multiply permute_dims]"});
}

TEST(fuse_attention, takes_a_batch_that_is_not_known) {
  Graph g;
  const ir::Var n = ir::size_var("n");
  const auto tensor = [&](const char* name, int64_t length) {
    return g.input(name, {n, ir::int64(length), ir::int64(3)});
  };
  const Expr q = tensor("q", 5), k = tensor("k", 7), v = tensor("v", 7);
  const Expr scores = g.call(ops::matmul, {q, g.call(ops::permute_dims, {k}, order({0, 2, 1}))});
  expect_fused(g.finish(g.call(ops::matmul, {g.call(ops::softmax, {scores}), v})),
               {"[permute_dims matmul nn.softmax_terms sum matmul divide multiply]"});
}

TEST(fuse_attention, takes_a_single_query) {
  Graph g;
  const Expr q = g.input("q", Extents{2, 1, 3}), k = g.input("k", Extents{2, 3, 7}), v = g.input("v", Extents{2, 7, 4});
  expect_fused(g.finish(g.call(ops::matmul, {g.call(ops::softmax, {g.call(ops::matmul, {q, k})}), v})),
               {"[matmul nn.softmax_terms sum matmul divide multiply]"});
}

TEST(fuse_attention, leaves_scores_that_are_used_elsewhere) {
  Parts p;
  const Expr scores = p.scores();
  const Expr mixed = p.g.call(ops::matmul, {p.g.call(ops::softmax, {scores}), p.v});
  expect_declined(p.g.finish({mixed, scores}),
                  "no matrix product leads to softmax by elementwise operators whose values nobody else uses");
}

TEST(fuse_attention, leaves_weights_that_are_used_elsewhere) {
  Parts p;
  const Expr weights = p.g.call(ops::softmax, {p.scores()});
  expect_declined(p.g.finish({p.g.call(ops::matmul, {weights, p.v}), weights}),
                  "softmax is not the first operand of a matrix product that alone reads it");
}

TEST(fuse_attention, keeps_permutations_that_are_used_elsewhere) {
  Parts p;
  const Expr keys = p.g.call(ops::permute_dims, {p.k}, order({0, 1, 3, 2}));
  const Expr scores = p.g.call(ops::matmul, {p.q, keys});
  const Expr mixed = p.g.call(ops::matmul, {p.g.call(ops::softmax, {scores}), p.v});
  expect_fused(p.g.finish({mixed, keys}), {"permute_dims", "[matmul nn.softmax_terms sum matmul divide multiply]"});
}

TEST(fuse_attention, leaves_softmax_along_another_axis) {
  Parts p;
  const Expr weights = p.g.call(ops::softmax, {p.scores()}, ir::make<ops::SoftmaxAttributes>(-2));
  expect_declined(p.g.finish(p.g.call(ops::matmul, {weights, p.v})), "softmax is not along the last axis");
}

TEST(fuse_attention, leaves_broadcast_operands) {
  Graph g;
  const Expr q = g.input("q", Extents{2, 5, 3}), k = g.input("k", Extents{1, 3, 7}), v = g.input("v", Extents{2, 7, 4});
  expect_declined(g.finish(g.call(ops::matmul, {g.call(ops::softmax, {g.call(ops::matmul, {q, k})}), v})),
                  "an operand is broadcast");
}

TEST(fuse_attention, takes_lengths_that_are_not_known) {
  Graph g;
  const ir::Var rows = ir::size_var("rows"), keys = ir::size_var("keys");
  const Expr q = g.input("q", {ir::int64(2), rows, ir::int64(3)}), k = g.input("k", {ir::int64(2), keys, ir::int64(3)}),
             v = g.input("v", {ir::int64(2), keys, ir::int64(4)}), mask = g.input("mask", {rows, keys});
  const Expr scores = g.call(ops::matmul, {q, g.call(ops::permute_dims, {k}, order({0, 2, 1}))});
  const Expr weights = g.call(ops::softmax, {g.call(ops::add, {scores, mask})});
  expect_fused(g.finish(g.call(ops::matmul, {weights, v})),
               {"[permute_dims matmul add nn.softmax_terms sum matmul maximum divide multiply]"});
}

TEST(fuse_attention, leaves_what_is_of_no_known_depth_or_nothing) {
  Graph open;
  const ir::Var n = ir::size_var("n");
  const Expr rows = open.input("q", {ir::int64(5), n}), keys = open.input("k", {n, ir::int64(7)}),
             others = open.input("v", Extents{7, 4});
  expect_declined(
      open.finish(open.call(ops::matmul, {open.call(ops::softmax, {open.call(ops::matmul, {rows, keys})}), others})),
      "the length of a query or of a value is not known");
  Graph none;
  const Expr nothing = none.input("q", Extents{5, 3}), no_keys = none.input("k", Extents{3, 0}),
             no_values = none.input("v", Extents{0, 4});
  expect_declined(none.finish(none.call(
                      ops::matmul, {none.call(ops::softmax, {none.call(ops::matmul, {nothing, no_keys})}), no_values})),
                  "there is nothing to compute");
}

}  // namespace
}  // namespace lathe::graph
