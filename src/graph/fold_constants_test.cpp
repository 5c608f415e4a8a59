#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ir/codes.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

ir::IRModule with_constants_folded(const ir::IRModule& module) {
  return fold_constants(module, context()).value_or_throw();
}

TEST(fold_constants, makes_of_programs_what_its_text_expects) { expect_text(fold_constants, __FILE__); }

TEST(fold_constants, computes_what_constants_determine) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(7)});
  const Expr w = g.call(ops::exp, {g.call(ops::add, {weights({3, 7}, 1), weights({7}, 2)})});
  const Expr transposed = g.call(ops::permute_dims, {w});
  const auto before = g.finish(g.call(ops::matmul, {x, transposed}));
  const auto after = with_constants_folded(before);
  const auto* product = find_call(after, "matmul");
  ASSERT_TRUE(product);
  ASSERT_TRUE(product->args[1].is<relax::Constant>());
  EXPECT_EQ(product->args[1].as<relax::Constant>()->data->shape, (Extents{7, 3}));
  EXPECT_EQ(difference(before, after), "");
}

TEST(fold_constants, folds_a_whole_function_to_its_value) {
  Graph g;
  const auto before = g.finish(g.call(ops::add, {values({3}, {1, 2, 3}), values({}, {0.5})}));
  const auto after = with_constants_folded(before);
  const auto* result = constant_result(after);
  ASSERT_TRUE(result);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(ir::float_at(*result->data, i), static_cast<double>(i) + 1.5);
}

TEST(fold_constants, keeps_what_an_input_takes_part_in) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const Expr y = g.call(ops::add, {x, weights({3}, 1)});
  const auto before = g.finish(g.call(ops::exp, {y}));
  EXPECT_EQ(calls(with_constants_folded(before)), (Names{"add", "exp"}));
}

TEST(fold_constants, folds_items_of_a_constant_tuple) {
  Graph g;
  const Expr x = g.input("x", Extents{2, 3});
  const Expr halves = g.call(ops::split, {weights({4, 3}, 5)}, ir::make<ops::SplitAttributes>(0, Extents{}, 2));
  const Expr half = g.emit(relax::make<relax::TupleGetItem>(halves, 1));
  const auto before = g.finish(g.call(ops::add, {x, half}));
  const auto after = with_constants_folded(before);
  EXPECT_TRUE(find_call(after, "add")->args[1].is<relax::Constant>());
  EXPECT_EQ(difference(before, after), "");
}

TEST(fold_constants, does_not_store_a_large_value_that_is_cheap_to_make) {
  Graph g;
  const auto grown = [&](int64_t n) { return g.call(ops::broadcast_to, {filled({1}, 3), shape({n})}); };
  const int64_t fits = largest_growth_bytes / 4 + 1;  // from one element
  const Expr small = g.call(ops::exp, {g.input("x", Extents{1})});
  const auto after = with_constants_folded(g.finish(
      std::vector<Expr>{g.call(ops::add, {small, grown(fits)}), g.call(ops::subtract, {small, grown(fits + 1)})}));
  EXPECT_TRUE(find_call(after, "add")->args[1].is<relax::Constant>());
  EXPECT_FALSE(find_call(after, "subtract")->args[1].is<relax::Constant>());
}

TEST(fold_constants, goes_through_what_is_padded_and_cut_off_again) {
  // 3 MiB of zeros beside 4 MiB of numbers: too much to keep, but most of it is cut off.
  const auto kept = [](int64_t rows) {
    Graph g;
    const Expr x = g.input("x", Extents{1});
    const Expr padded = g.call(ops::pad, {filled({1024, 1024}, 1.0), shape({0, 0}), shape({768, 0})},
                               ir::make<ops::PadAttributes>(std::string("constant")));
    const Expr cut =
        g.call(ops::strided_slice, {padded, shape({256, 0}), shape({256 + rows, 1024})},
               ir::make<ops::StridedSliceAttributes>(std::vector<int64_t>{0, 1}, std::vector<int64_t>{1, 1}));
    return calls(fold_constants(g.finish({g.call(ops::add, {x, cut})}), context()).value_or_throw());
  };
  EXPECT_EQ(kept(1024), (Names{"nn.pad", "add"}));  // which nobody asks for
  EXPECT_EQ(kept(1280), (Names{"nn.pad", "add"}));
  EXPECT_EQ(kept(1281).size(), 3u);
}

TEST(fold_constants, evaluates_all_of_a_function_in_one_call) {
  Graph g;
  const Expr x = g.input("x", Extents{3});
  const Expr a = g.call(ops::exp, {weights({3}, 1)});
  const Expr b = g.call(ops::exp, {weights({3}, 2)});
  const auto before = g.finish(g.call(ops::multiply, {g.call(ops::add, {x, a}), b}));
  int evaluations = 0;
  ir::PassContext counting = context();
  counting.evaluate = [&](const auto&... args) {
    ++evaluations;
    return context().evaluate(args...);
  };
  const auto after = fold_constants(before, counting).value_or_throw();
  EXPECT_EQ(evaluations, 1);
  EXPECT_EQ(calls(after), (Names{"add", "multiply"}));
  EXPECT_EQ(difference(before, after), "");
}

// An evaluator that declines to compute more than so many results at once, and those of one shape at all.
ir::PassContext declining(size_t most, const Extents& never, std::vector<ir::Remark>& remarks) {
  ir::PassContext made = context();
  made.evaluate = [=](const ir::IRModule& module, const std::string& name,
                      const std::vector<ir::TensorData>& inputs) -> support::Result<std::vector<ir::TensorData>> {
    auto values = context().evaluate(module, name, inputs).value_or_throw();
    const bool has_never =
        std::any_of(values.begin(), values.end(), [&](const auto& value) { return value->shape == never; });
    if (values.size() > most || has_never)
      return support::Diagnostic{.code = ir::codes::evaluation_limit, .message = "it takes too much"};
    return values;
  };
  made.on_remark = [&remarks](const ir::Remark& remark) { remarks.push_back(remark); };
  return made;
}

TEST(fold_constants, leaves_for_the_run_what_the_evaluator_declines_and_folds_the_rest) {
  Graph g;
  const Expr x = g.input("x", Extents{1});
  std::vector<Expr> results;
  for (int64_t n = 1; n <= 7; ++n)
    results.push_back(g.call(ops::add, {x, g.call(ops::exp, {weights({n}, static_cast<uint64_t>(n))})}));
  const auto before = g.finish(results);
  std::vector<ir::Remark> remarks;
  const auto after = fold_constants(before, declining(3, {5}, remarks)).value_or_throw();
  EXPECT_EQ(calls(after), (Names{"add", "add", "add", "add", "exp", "add", "add", "add"}));
  EXPECT_EQ(difference(before, after), "");
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].text, "it takes too much");
}

TEST(fold_constants, hands_on_other_errors_of_the_evaluator) {
  Graph g;
  ir::PassContext failing = context();
  failing.evaluate = [](const auto&...) -> support::Result<std::vector<ir::TensorData>> {
    return support::Diagnostic{.code = ir::codes::cancelled, .message = "stopped"};
  };
  const auto result = fold_constants(g.finish(g.call(ops::exp, {weights({3}, 1)})), failing);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics()[0].code, ir::codes::cancelled);
}

// A fill by each number below `count`, of as much as may be folded at once, added to x.
ir::IRModule fills(Graph& g, int64_t count) {
  const Expr x = g.input("x", Extents{1});
  std::vector<Expr> results;
  for (int64_t i = 0; i < count; ++i)
    results.push_back(g.call(ops::add, {x, g.call(ops::broadcast_to, {filled({1}, static_cast<double>(i)),
                                                                      shape({largest_growth_bytes / 4})})}));
  return g.finish(results);
}

TEST(fold_constants, bounds_what_all_results_take_together) {
  constexpr int64_t most = largest_folded_bytes / largest_growth_bytes;
  Graph g;
  const auto before = fills(g, most + 2);
  int64_t asked = 0;
  ir::PassContext counting = context();
  counting.evaluate = [&](const ir::IRModule& module, const std::string&,
                          const auto&) -> support::Result<std::vector<ir::TensorData>> {
    const auto main = module.find_as<relax::FunctionNode>("main");
    asked = std::max(asked, static_cast<int64_t>(main->ret_struct_info.as<relax::TupleStructInfo>()->items.size()));
    return support::Diagnostic{.code = ir::codes::cancelled, .message = "stopped"};
  };
  std::vector<ir::Remark> remarks;
  counting.on_remark = [&](const ir::Remark& remark) { remarks.push_back(remark); };
  EXPECT_FALSE(fold_constants(before, counting).ok());
  EXPECT_EQ(asked, most);
  EXPECT_EQ(remarks.size(), 2u);
}

TEST(fold_constants, leaves_to_the_run_what_was_left_to_it_before) {
  const auto left_of = [](const ir::IRModule& module) {
    const Names names = calls(module);
    return std::count(names.begin(), names.end(), "broadcast_to");
  };
  constexpr int64_t most = largest_folded_bytes / largest_growth_bytes;
  Graph g;
  const ir::IRModule once = with_constants_folded(fills(g, most + 5));
  EXPECT_EQ(left_of(once), 5);
  EXPECT_EQ(left_of(with_constants_folded(once)), 5) << "the first row's results count as weights of the second's";
  Graph few;
  EXPECT_EQ(left_of(with_constants_folded(fills(few, most))), 0);
}

// Joined to itself over and over, a value grows without any operator that makes more than it is given.
TEST(fold_constants, counts_an_operand_that_is_given_many_times_once) {
  Graph g;
  const Expr x = g.input("x", Extents{1});
  Expr value = g.call(ops::broadcast_to, {filled({1}, 3), shape({largest_growth_bytes / 8})});
  for (int i = 0; i < 12; ++i)
    value = g.call(ops::concat, std::vector<Expr>(8, value), ir::make<ops::AxisAttributes>(0));
  const auto before = g.finish(g.call(ops::add, {x, value}));
  EXPECT_EQ(calls(with_constants_folded(before)).size(), 13u);  // the first alone is folded
}

TEST(fold_constants, says_that_nobody_evaluates) {
  Graph g;
  const auto before = g.finish(g.call(ops::exp, {weights({3}, 1)}));
  std::vector<ir::Remark> remarks;
  ir::PassContext bare;
  bare.on_remark = [&](const ir::Remark& remark) { remarks.push_back(remark); };
  EXPECT_EQ(calls(fold_constants(before, bare).value_or_throw()), Names{"exp"});
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].pass, "fold_constants");
}

}  // namespace
}  // namespace lathe::graph
