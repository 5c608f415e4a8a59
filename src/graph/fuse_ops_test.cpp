#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

ir::IRModule fused(const ir::IRModule& module) { return fuse_ops(module, context()).value_or_throw(); }

// `before` fuses into these groups, and means the same.
void expect_groups(const ir::IRModule& before, const Names& groups) {
  const auto after = fused(before);
  EXPECT_EQ(calls(after), groups);
  EXPECT_EQ(difference(before, after), "");
}

TEST(fuse_ops, makes_of_programs_what_its_text_expects) { expect_text(fuse_ops, __FILE__); }

TEST(fuse_ops, fuses_a_chain_of_elementwise_operators) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(5)});
  const Expr y = g.call(ops::add, {x, weights({5}, 1)});
  expect_groups(g.finish(g.call(ops::exp, {g.call(ops::negative, {y})})), {"[add negative exp]"});
}

TEST(fuse_ops, gives_a_group_its_operands_in_their_order) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(5)});
  const Expr y = g.input("y", {x->struct_info.as<relax::TensorStructInfo>()->shape->at(0), ir::int64(5)});
  const Expr half = g.call(ops::multiply, {g.call(ops::subtract, {y, x}), filled({}, 0.5)});
  expect_groups(g.finish(g.call(ops::divide, {half, x})), {"[subtract multiply divide]"});
}

TEST(fuse_ops, outlines_private_primitive_functions) {
  Graph g;
  const Expr x = g.input("x", Extents{5});
  const auto after = fused(g.finish(g.call(ops::exp, {g.call(ops::negative, {x})})));
  ASSERT_EQ(after.size(), 2u);
  for (const auto& [name, function] : after) {
    EXPECT_EQ(function->attrs.get_or("primitive", false), name != "main") << name;
    EXPECT_EQ(function->attrs.get_or("private", false), name != "main") << name;
  }
}

TEST(fuse_ops, fuses_a_diamond) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(3)});
  const Expr top = g.call(ops::exp, {x});
  const Expr left = g.call(ops::negative, {top});
  const Expr right = g.call(ops::relu, {top});
  expect_groups(g.finish(g.call(ops::add, {left, right})), {"[exp negative nn.relu add]"});
}

TEST(fuse_ops, keeps_a_producer_with_two_uses) {
  Graph g;
  const Expr x = g.input("x", Extents{4, 3});
  const Expr y = g.call(ops::exp, {x});
  const auto sum = ir::make<ops::ReduceAttributes>(Extents{1}, false);
  const Expr a = g.call(ops::sum, {y}, sum);
  const Expr b = g.call(ops::negative, {y});
  expect_groups(g.finish(std::vector<Expr>{a, b}), {"[exp]", "[sum]", "[negative]"});
}

TEST(fuse_ops, keeps_a_producer_that_is_a_result) {
  Graph g;
  const Expr x = g.input("x", Extents{5});
  const Expr a = g.call(ops::exp, {x});
  const Expr b = g.call(ops::negative, {a});
  expect_groups(g.finish(std::vector<Expr>{a, b}), {"[exp]", "[negative]"});
}

TEST(fuse_ops, gives_a_product_its_epilogue) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(7)});
  const Expr residual = g.input("r", {x->struct_info.as<relax::TensorStructInfo>()->shape->at(0), ir::int64(3)});
  const Expr product = g.call(ops::matmul, {x, weights({7, 3}, 1)});
  const Expr sum = g.call(ops::add, {g.call(ops::add, {product, weights({3}, 2)}), g.call(ops::exp, {residual})});
  expect_groups(g.finish(g.call(ops::relu, {sum})), {"[matmul add exp add nn.relu]"});
}

TEST(fuse_ops, does_not_recompute_the_operand_of_a_product) {
  Graph g;
  const Expr x = g.input("x", Extents{3, 3});
  expect_groups(g.finish(g.call(ops::matmul, {g.call(ops::exp, {x}), weights({3, 3}, 1)})), {"[exp]", "[matmul]"});
}

TEST(fuse_ops, keeps_two_products_apart) {
  Graph g;
  const Expr x = g.input("x", Extents{3, 3});
  const Expr y = g.call(ops::matmul, {x, weights({3, 3}, 1)});
  const Expr z = g.call(ops::matmul, {x, weights({3, 3}, 2)});
  const auto before = g.finish(g.call(ops::add, {y, z}));
  const Names groups = calls(fused(before));
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(std::count(groups.begin(), groups.end(), "[matmul]"), 1);
  EXPECT_EQ(std::count(groups.begin(), groups.end(), "[matmul add]"), 1);
  EXPECT_EQ(difference(before, fused(before)), "");
}

TEST(fuse_ops, computes_elementwise_operators_inside_a_reduction) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(5)});
  const auto last = ir::make<ops::ReduceAttributes>(Extents{1}, false);
  const Expr y = g.call(ops::sum, {g.call(ops::multiply, {x, x})}, last);
  expect_groups(g.finish(g.call(ops::sqrt, {y})), {"[multiply sum sqrt]"});
}

TEST(fuse_ops, keeps_a_reduction_from_a_consumer_of_another_shape) {
  Graph g;
  const Expr x = g.input("x", Extents{4, 5});
  const Expr y = g.input("y", Extents{4, 5});
  const auto kept = ir::make<ops::ReduceAttributes>(Extents{1}, true);
  expect_groups(g.finish(g.call(ops::subtract, {y, g.call(ops::max, {x}, kept)})), {"[max]", "[subtract]"});
}

TEST(fuse_ops, never_closes_a_cycle) {
  // exp and the product of its negative meet again: the product must come before the sum, exp before both.
  Graph g;
  const Expr x = g.input("x", Extents{3, 3});
  const Expr a = g.call(ops::exp, {x});
  const Expr b = g.call(ops::matmul, {g.call(ops::negative, {a}), weights({3, 3}, 1)});
  expect_groups(g.finish(g.call(ops::add, {a, b})), {"[exp]", "[negative]", "[matmul add]"});
}

TEST(fuse_ops, leaves_views_alone) {
  Graph g;
  const Expr x = g.input("x", Extents{2, 3});
  const Expr y = g.call(ops::reshape, {g.call(ops::exp, {x}), shape({6})});
  expect_groups(g.finish(g.call(ops::negative, {y})), {"[exp]", "reshape", "[negative]"});
}

TEST(fuse_ops, leaves_operators_of_several_results_alone) {
  Graph g;
  const Expr x = g.input("x", Extents{4, 3});
  const Expr halves = g.call(ops::split, {g.call(ops::exp, {x})}, ir::make<ops::SplitAttributes>(0, Extents{}, 2));
  const Expr half = g.emit(relax::make<relax::TupleGetItem>(halves, 0));
  expect_groups(g.finish(g.call(ops::negative, {half})), {"[exp]", "[split]", "item", "[negative]"});
}

TEST(fuse_ops, bounds_the_size_of_a_group) {
  Graph g;
  Expr x = g.input("x", Extents{3});
  for (size_t i = 0; i < max_group + 6; ++i) x = g.call(ops::negative, {x});
  const auto before = g.finish(x);
  const auto after = fused(before);
  const Names groups = calls(after);
  EXPECT_EQ(groups.size(), 2u);
  for (const std::string& group : groups)
    EXPECT_LE(std::count(group.begin(), group.end(), ' ') + 1, static_cast<int64_t>(max_group));
  EXPECT_EQ(difference(before, after), "");
}

TEST(fuse_ops, makes_equal_groups_calls_of_one_function) {
  const auto functions = [](const ir::Expr& rows) {
    Graph g;
    const Expr a = g.input("a", {rows, ir::int64(3)}), b = g.input("b", {rows, ir::int64(3)});
    const auto group = [&](const Expr& x) { return g.call(ops::exp, {g.call(ops::negative, {x})}); };
    const Expr left = g.call(ops::matmul, {group(a), weights({3, 3}, 1)});
    const Expr right = g.call(ops::matmul, {group(b), weights({3, 3}, 2)});
    const auto before = g.finish(g.call(ops::add, {left, right}));
    const auto after = fused(before);
    EXPECT_EQ(difference(before, after), "");
    return after.size();
  };
  EXPECT_EQ(functions(ir::int64(3)), 4u) << "main, the group of both sides, a product, a product and the sum";
  EXPECT_EQ(functions(ir::size_var("n")), 5u) << "whose symbols are passed along is not told apart";
}

TEST(fuse_ops, tells_groups_apart_that_differ_in_one_thing) {
  Graph g;
  const Extents square{4, 4};
  const Expr a = g.input("a", square), b = g.input("b", square), row = g.input("row", Extents{1, 4});
  // Products of each with itself keep the groups apart.
  std::vector<Expr> groups;
  const auto end = [&](const Expr& x) { groups.push_back(g.call(ops::tanh, {x})); };
  end(g.call(ops::subtract, {a, b}));
  end(g.call(ops::subtract, {b, a}));    // equal: the operands are numbered as they come
  end(g.call(ops::subtract, {a, a}));    // one operand twice
  end(g.call(ops::subtract, {a, row}));  // another shape
  end(g.call(ops::subtract, {row, a}));
  end(g.call(ops::subtract, {a, filled({}, 0.5)}));   // a constant that is part of it
  end(g.call(ops::subtract, {a, filled({}, 0.25)}));  // another one
  end(g.call(ops::subtract, {filled({}, 0.5), a}));
  end(g.call(ops::add, {a, b}));  // another operator
  end(g.call(ops::negative, {g.call(ops::subtract, {a, b})}));
  for (const int64_t axis : {0, 1})  // other attributes
    groups.push_back(g.call(ops::softmax, {a}, ir::make<ops::SoftmaxAttributes>(axis)));
  Expr sum;
  for (const Expr& group : groups) {
    const Expr product = g.call(ops::matmul, {group, group});
    sum = sum ? g.call(ops::matmul, {sum, product}) : product;
  }
  const auto before = g.finish(sum);
  const auto after = fused(before);
  EXPECT_EQ(difference(before, after), "");
  EXPECT_EQ(after.size(), 1 + 9 + 2 + 2u) << "main, the groups, the products of one thing and of two";
}

TEST(fuse_ops, says_why_neighbours_stay_apart) {
  Graph g;
  const Expr x = g.input("x", Extents{3, 3});
  const auto before = g.finish(g.call(ops::matmul, {g.call(ops::exp, {x}), weights({3, 3}, 1)}));
  std::vector<std::string> reasons;
  ir::PassContext listening;
  listening.on_remark = [&](const ir::Remark& remark) { reasons.push_back(remark.text); };
  EXPECT_EQ(calls(fuse_ops(before, listening).value_or_throw()).size(), 2u);
  ASSERT_EQ(reasons.size(), 1u) << "each is said once";
  EXPECT_NE(reasons[0].find("operand of a product"), std::string::npos) << reasons[0];
}

// Images of a convolution with the channels last, and a bias, permuted.
ir::IRModule permuted_images(Extents size, std::vector<int64_t> axes, bool are_used_twice = false) {
  Graph g;
  const auto last = ir::make<ops::ConvAttributes>(Extents{}, Extents{}, Extents{}, 1, "NOTSET", "NHWC");
  const Expr x = g.input("x", Extents{1, size[0], size[1], 1});
  const Expr images = g.call(ops::conv, {x, weights({size[2], 1, 1, 1}, 1)}, last);
  const Expr biased = g.call(ops::add, {images, weights({size[2]}, 2)});
  const Expr y = g.call(ops::permute_dims, {biased}, ir::make<ops::PermuteDimsAttributes>(std::move(axes)));
  return are_used_twice ? g.finish({y, biased}) : g.finish(y);
}

TEST(fuse_ops, lets_a_convolution_write_large_images_with_the_channels_first) {
  expect_groups(permuted_images({64, 64, 32}, {0, 3, 1, 2}), {"[nn.conv add permute_dims]"});
  expect_groups(permuted_images({64, 63, 32}, {0, 3, 1, 2}), {"[nn.conv add]", "[permute_dims]"});
  expect_groups(permuted_images({64, 64, 32}, {0, 3, 2, 1}), {"[nn.conv add]", "[permute_dims]"});
  expect_groups(permuted_images({64, 64, 32}, {0, 3, 1, 2}, true), {"[nn.conv add]", "[permute_dims]"});
}

TEST(fuse_ops, turns_an_image_into_its_padding) {
  const std::vector<ir::Expr> known{ir::int64(1), ir::int64(3), ir::int64(5), ir::int64(4)};
  const std::vector<ir::Expr> of_any_size{ir::size_var("n"), ir::int64(3), ir::size_var("h"), ir::size_var("w")};
  for (const auto& [is_turned, shape] :
       std::vector<std::pair<bool, std::vector<ir::Expr>>>{{true, known}, {true, of_any_size}, {false, known}}) {
    Graph g;
    const Expr x = g.input("x", shape);
    const Expr y = is_turned ? g.call(ops::permute_dims, {x},
                                      ir::make<ops::PermuteDimsAttributes>(std::vector<int64_t>{0, 2, 3, 1}))
                             : g.call(ops::exp, {x});
    const auto sides = [](Extents of) {
      std::vector<ir::Expr> each;
      for (const int64_t one : of) each.push_back(ir::int64(one));
      return ir::make<relax::ShapeExpr>(std::move(each));
    };
    const Expr padded = g.call(ops::pad, {y, sides({0, 1, 1, 0}), sides({0, 1, 2, 0})});
    expect_groups(g.finish(padded), is_turned ? Names{"[permute_dims nn.pad]"} : Names{"[exp]", "[nn.pad]"});
  }
}

}  // namespace
}  // namespace lathe::graph
