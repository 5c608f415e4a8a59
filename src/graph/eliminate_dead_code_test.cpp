#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words
using Names = std::vector<std::string>;

ir::IRModule without_dead_code(const ir::IRModule& module) {
  return eliminate_dead_code(module, context()).value_or_throw();
}

TEST(eliminate_dead_code, makes_of_programs_what_its_text_expects) { expect_text(eliminate_dead_code, __FILE__); }

TEST(eliminate_dead_code, drops_a_chain_that_nobody_uses) {
  Graph g;
  const Expr x = g.input("x", {ir::size_var("n"), ir::int64(5)});
  g.call(ops::log, {g.call(ops::exp, {x})});
  const auto before = g.finish(g.call(ops::negative, {x}));
  const auto after = without_dead_code(before);
  EXPECT_EQ(calls(after), Names{"negative"});
  EXPECT_EQ(difference(before, after), "");
}

TEST(eliminate_dead_code, keeps_what_a_result_needs) {
  Graph g;
  const Expr x = g.input("x", Extents{5});
  const Expr a = g.call(ops::exp, {x});
  const Expr b = g.call(ops::negative, {a});
  const auto before = g.finish(std::vector<Expr>{a, b});
  const auto after = without_dead_code(before);
  EXPECT_EQ(calls(after), (Names{"exp", "negative"}));
  EXPECT_EQ(difference(before, after), "");
}

TEST(eliminate_dead_code, keeps_operands_inside_tuples) {
  Graph g;
  const Expr x = g.input("x", Extents{2, 3});
  const Expr a = g.call(ops::exp, {x});
  const Expr both = relax::with_struct_info(
      relax::make<relax::Tuple>(std::vector<Expr>{a, x}),
      relax::make<relax::TupleStructInfo>(std::vector<relax::StructInfo>{a->struct_info, x->struct_info}));
  const auto before = g.finish(g.call(ops::concat, {both}));
  const auto after = without_dead_code(before);
  EXPECT_EQ(calls(after), (Names{"exp", "concat"}));
  EXPECT_EQ(difference(before, after), "");
}

TEST(eliminate_dead_code, keeps_a_check_at_run_time_whose_value_nobody_uses) {
  relax::BlockBuilder b;
  const auto rows = [](const ir::Expr& n) { return relax::tensor_info({n, ir::int64(2)}, ir::DType::float32()); };
  const relax::Var x = relax::relax_var("x", rows(ir::size_var("n")));
  b.begin_function("main", {x});
  b.match_cast(x, rows(ir::int64(7)));
  b.call(ops::exp, {x}).value_or_throw();
  b.end_function(b.emit_output(relax::make_call(ops::negative, {x}).value_or_throw()));
  const auto before = b.finish(), after = without_dead_code(before);
  EXPECT_EQ(calls(after), Names{"negative"});
  EXPECT_EQ(difference(before, after), "");
}

TEST(eliminate_dead_code, drops_private_functions_that_nobody_calls) {
  Graph g;
  const Expr x = g.input("x", Extents{5});
  ir::IRModule module = g.finish(g.call(ops::negative, {x}));
  const auto function = module.find_as<relax::FunctionNode>("main");
  module.set("shown", function);
  module.set("hidden", ir::with(*function, [](relax::FunctionNode& f) { f.attrs.set("private", true); }));
  const auto after = without_dead_code(module);
  EXPECT_TRUE(after.find("main"));
  EXPECT_TRUE(after.find("shown"));
  EXPECT_FALSE(after.find("hidden"));
}

}  // namespace
}  // namespace lathe::graph
