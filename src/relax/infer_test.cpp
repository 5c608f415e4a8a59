#include "relax/infer.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/visit.h"
#include "relax/codes.h"

namespace lathe::relax {
namespace {

const ir::Var size = ir::size_var("n");
const ir::Expr unit = ir::int64(1);

Result<Shape> together(const ir::Expr& a, const ir::Expr& b, Assumptions* assumptions = nullptr) {
  return broadcast_shapes({a}, {b}, assumptions);
}

TEST(broadcast_shapes, takes_the_extent_that_is_not_one) {
  EXPECT_TRUE(same_extent(together(size, unit).value_or_throw()[0], size));
  EXPECT_TRUE(same_extent(together(unit, size).value_or_throw()[0], size));
  EXPECT_TRUE(same_extent(together(size, size).value_or_throw()[0], size));
  EXPECT_TRUE(same_extent(together(size, ir::int64(7)).value_or_throw()[0], ir::int64(7)));
}

TEST(broadcast_shapes, refuses_extents_that_are_never_the_same_and_never_one) {
  for (const auto& [a, b] : {std::pair(ir::int64(3), ir::int64(4)), std::pair(ir::int64(0), ir::int64(2)),
                             std::pair(ir::Expr(size) + 2, ir::Expr(size) + 3)}) {
    const auto shape = together(a, b);
    ASSERT_FALSE(shape.ok());
    EXPECT_EQ(shape.diagnostics()[0].code, codes::cannot_broadcast);
  }
}

// n + 2 and n go together where n is 1, which is looked at when the model runs.
TEST(broadcast_shapes, sizes_that_differ_go_together_where_one_is_one) {
  for (const bool turned : {false, true}) {
    Assumptions assumptions;
    const Shape shape =
        (turned ? together(size, ir::Expr(size) + 2, &assumptions) : together(ir::Expr(size) + 2, size, &assumptions))
            .value_or_throw();
    EXPECT_FALSE(assumptions.empty());
    EXPECT_TRUE(ir::is_int(simplified(ir::substitute(shape[0], {{size, unit}})), 3));
  }
}

// As many positions of a table as a sequence is long: the sequence is no longer than the table, which is looked at when
// the model runs.
TEST(broadcast_shapes, a_size_and_no_more_than_a_number_of_it_are_the_same) {
  const ir::Expr cut = ir::min(size, ir::int64(512));
  for (const bool turned : {false, true}) {
    Assumptions assumptions;
    const Shape shape =
        (turned ? together(cut, size, &assumptions) : together(size, cut, &assumptions)).value_or_throw();
    EXPECT_TRUE(same_extent(shape[0], size));
    ASSERT_EQ(assumptions.size(), 1U);
    EXPECT_TRUE(same_extent(assumptions[0].actual, cut) && same_extent(assumptions[0].expected, size));
  }
}

}  // namespace
}  // namespace lathe::relax
