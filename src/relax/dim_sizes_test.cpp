#include "relax/dim_sizes.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/visit.h"
#include "relax/codes.h"
#include "relax/infer.h"

namespace lathe::relax {
namespace {

Function function_of(std::vector<Var> params, ir::Attributes attributes) {
  const Expr body =
      with_struct_info(ir::make<Tuple>(std::vector<Expr>{}), ir::make<TupleStructInfo>(std::vector<StructInfo>{}));
  return ir::with(*ir::make<FunctionNode>(std::move(params), body, body->struct_info),
                  [&](FunctionNode& copy) { copy.attrs = std::move(attributes); });
}

TEST(dim_sizes, are_read_as_they_are_written) {
  const auto unlimited = DimSizes::unlimited;
  const std::pair<const char*, DimSizes> rows[] = {
      {"8", {8}},
      {"0", {0}},
      {"1..64", {1, 64, {}}},
      {"1..", {1, unlimited, {}}},
      {"1..64:8", {1, 64, {8}}},
      {"0..:3,5", {0, unlimited, {3, 5}}},
      {"4..4:4", {4, 4, {4}}},
  };
  for (const auto& [text, sizes] : rows) {
    EXPECT_EQ(parse_dim_sizes("n", text).value_or_throw(), sizes) << text;
    EXPECT_EQ(to_string(sizes), text);
  }
}

TEST(dim_sizes, refuse_what_says_no_sizes) {
  for (const char* text :
       {"", "x", "-1", "8:", "8:4", "8,9", "1..x", "1..64:", "1..64:8,", "1..64:65", "2..1", "1..64:0", "1..64 ", " 1",
        "1.64", "1..64..", "9223372036854775808", "1..99999999999999999999", "-2..3"}) {
    const auto refused = parse_dim_sizes("n", text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.diagnostics()[0].code.name, codes::wrong_sizes.name);
    EXPECT_NE(refused.diagnostics()[0].message.find("'n'"), std::string::npos);
  }
}

TEST(dim_sizes, are_told_by_attributes) {
  const DimSizesByName told{
      {"n", {1, 64, {8, 16}}}, {"m", {0, DimSizes::unlimited, {3}}}, {"k", {2, DimSizes::unlimited, {}}}};
  ir::Attributes attributes;
  for (const auto& [name, sizes] : told) tell_sizes(attributes, name, sizes);
  EXPECT_EQ(told_sizes(*function_of({}, attributes)).value_or_throw(), told);
  EXPECT_TRUE(told_sizes(*function_of({}, {})).value_or_throw().empty());
}

TEST(dim_sizes, refuse_attributes_that_say_something_else) {
  using List = ir::Value::List;
  using Map = ir::Value::Map;
  const std::pair<const char*, ir::Value> rows[] = {
      {"tir_var_upper_bound", 8},
      {"tir_var_upper_bound", Map{{"n", "8"}}},
      {"tir_var_lower_bound", Map{{"n", List{1}}}},
      {"tir_var_lower_bound", Map{{"n", -1}}},
      {"tir_var_likely", Map{{"n", 8}}},
      {"tir_var_likely", Map{{"n", List{8, "9"}}}},
      {"tir_var_likely", Map{{"n", List{-8}}}},
  };
  for (const auto& [name, value] : rows) {
    const auto refused = told_sizes(*function_of({}, {{name, value}}));
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.diagnostics()[0].code.name, codes::wrong_sizes.name);
  }
}

TEST(dim_sizes, are_checked_where_a_parameter_brings_them_first) {
  const ir::Var n = ir::size_var("n"), m = ir::size_var("m"), k = ir::size_var("k");
  const auto tensor = [](std::vector<ir::Expr> shape) { return tensor_info(std::move(shape), ir::DType::float32()); };
  ir::Attributes attributes;
  tell_sizes(attributes, "n", {1, 64, {}});
  tell_sizes(attributes, "m", {2, DimSizes::unlimited, {}});
  tell_sizes(attributes, "k", {0, DimSizes::unlimited, {4}});
  const auto checks =
      size_checks(
          *function_of({relax_var("x", tensor({ir::int64(3), n})), relax_var("y", tensor({n, m, k}))}, attributes))
          .value_or_throw();
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].format, "dimension 1 ('n') of the input 'x' is {}; it must be from 1 to 64");
  EXPECT_EQ(checks[1].format, "dimension 1 ('m') of the input 'y' is {}; it must be at least 2");
  for (const auto& [size, holds] : {std::pair(0, 0), {1, 1}, {64, 1}, {65, 0}})
    EXPECT_EQ(ir::as_int(simplified(ir::substitute(checks[0].condition, {{n, ir::int64(size)}}))), holds);
}

}  // namespace
}  // namespace lathe::relax
