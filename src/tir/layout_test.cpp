#include "tir/layout.h"

#include <gtest/gtest.h>

#include "ir/structural.h"
#include "tir/codes.h"

namespace lathe::tir {
namespace {

using ir::Expr;
using ir::int64;

Layout layout(std::string_view text) { return parse_layout(text).value_or_throw(); }

// The refusal of a text, after "layout '…', ".
std::string wrong(std::string_view text) {
  const auto read = parse_layout(text);
  if (read.ok()) return "read";
  EXPECT_EQ(read.diagnostics()[0].code.name, codes::layout.name);
  return read.diagnostics()[0].message.substr(text.size() + 11);
}

std::vector<int64_t> numbers(const support::Result<std::vector<Expr>>& exprs) {
  std::vector<int64_t> result;
  for (const Expr& e : *exprs) result.push_back(ir::as_int(e).value_or(-99));
  return result;
}

std::vector<Expr> exprs(const std::vector<int64_t>& values) {
  std::vector<Expr> result;
  for (const int64_t value : values) result.push_back(int64(value));
  return result;
}

TEST(layout, has_axes_with_positions_and_factors) {
  const Layout blocked = layout("OIHW4i16o");
  EXPECT_EQ(blocked.name(), "OIHW4i16o");
  EXPECT_EQ(blocked.axes.size(), 6u);
  EXPECT_EQ(blocked.index_of('W'), 3);
  EXPECT_EQ(blocked.index_of('o'), 5);
  EXPECT_EQ(blocked.index_of('w'), -1);
  EXPECT_EQ(blocked.factor_of('O'), 16);
  EXPECT_EQ(blocked.factor_of('i'), 4);
  EXPECT_EQ(blocked.factor_of('H'), -1);
  EXPECT_EQ(layout("").axes.size(), 0u);
  EXPECT_EQ(layout("04cC").name(), "4cC");
}

TEST(layout, refuses_other_texts_with_the_column) {
  EXPECT_EQ(wrong("NCHW16x"), "column 5: the subordinate axis 'x' has no primal axis 'X'");
  EXPECT_EQ(wrong("NCHWC"), "column 5: the axis 'C' is there already");
  EXPECT_EQ(wrong("NC4c2c"), "column 5: the axis 'c' is there already");
  EXPECT_EQ(wrong("NC0c"), "column 3: the factor of 'c' is 0");
  EXPECT_EQ(wrong("NCc"), "column 3: the subordinate axis 'c' has no factor before it");
  EXPECT_EQ(wrong("N16C"), "column 2: the primal axis 'C' takes no factor");
  EXPECT_EQ(wrong("NC16"), "column 3: the factor 16 has no axis after it");
  EXPECT_EQ(wrong("N-C"), "column 2: '-' is neither a letter nor a digit");
  EXPECT_EQ(wrong("NC99999999999c"), "column 3: a factor is more than 2147483647");
}

TEST(layout, is_changed_only_into_one_of_the_same_primal_axes) {
  EXPECT_TRUE(convertible(layout("NCHW"), layout("NHWC4c")).ok());
  for (const auto& [from, to] : {std::pair{"NCHW", "NCW"}, std::pair{"NCW", "NCHW"}}) {
    const auto status = convertible(layout(from), layout(to));
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.diagnostics()[0].message.find("'NCW' has no axis 'H'"), std::string::npos);
  }
}

TEST(layout, maps_indices_and_shapes) {
  const Layout plain = layout("NCHW"), blocked = layout("NHWC16c"), other = layout("N8cCWH");
  EXPECT_EQ(numbers(convert_indices(plain, blocked, exprs({1, 37, 3, 4}))), (std::vector<int64_t>{1, 3, 4, 2, 5}));
  EXPECT_EQ(numbers(convert_indices(blocked, other, exprs({1, 3, 4, 2, 13}))), (std::vector<int64_t>{1, 5, 5, 4, 3}));
  EXPECT_EQ(numbers(convert_shape(plain, blocked, exprs({1, 37, 7, 9}))), (std::vector<int64_t>{1, 7, 9, 3, 16}));
  EXPECT_EQ(numbers(convert_shape(blocked, plain, exprs({1, 7, 9, 3, 16}))), (std::vector<int64_t>{1, 48, 7, 9}));
  EXPECT_EQ(numbers(convert_shape(plain, blocked, exprs({0, 0, 7, 9}))), (std::vector<int64_t>{0, 7, 9, 0, 16}));
}

TEST(layout, simplifies_what_is_symbolic) {
  const ir::Var outer = ir::var("a"), inner = ir::var("b"), n = ir::size_var("n");
  const auto indices = convert_indices(layout("C16c"), layout("C4c"), {outer, inner});
  EXPECT_TRUE(ir::structural_equal((*indices)[0], outer * 4 + floordiv(inner, int64(4))));
  EXPECT_TRUE(ir::structural_equal((*indices)[1], floormod(inner, int64(4))));
  const auto shape = convert_shape(layout("C"), layout("C16c"), {n * 16});
  EXPECT_TRUE(ir::structural_equal((*shape)[0], n));
}

TEST(layout, refuses_what_does_not_fit) {
  const Layout plain = layout("NC"), blocked = layout("NC16c");
  const auto few = convert_indices(plain, blocked, exprs({1}));
  ASSERT_FALSE(few.ok());
  EXPECT_EQ(few.diagnostics()[0].message, "layout 'NC' has 2 axes, and 1 indices are given");
  const auto other = convert_shape(blocked, plain, exprs({1, 2, 8}));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.diagnostics()[0].message, "axis 'c' of layout 'NC16c' has extent 16, and 8 is given");
}

}  // namespace
}  // namespace lathe::tir
