#include "relax/mismatch.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace lathe::relax {
namespace {

const ir::Expr n = ir::size_var("n"), m = ir::size_var("m"), one = ir::int64(1);

ir::Expr one_or(const ir::Expr& actual, const ir::Expr& wanted) { return ir::select(ir::eq(actual, one), one, wanted); }

TEST(mismatch, names_both_extents_and_leaves_their_values_open) {
  const Message message = mismatch(n, m);
  EXPECT_EQ(message.format(), "the shapes do not fit: n is {}, it must be m, which is {}");
  EXPECT_EQ(message.numbers().size(), 2);
}

TEST(mismatch, what_broadcasts_may_be_one) {
  EXPECT_EQ(mismatch(n, one_or(n, m)).format(), "the shapes do not fit: n is {}, it must be 1 or m, which is {}");
  EXPECT_EQ(mismatch(n, one_or(n, one_or(m, m))).format(),
            "the shapes do not fit: n is {}, it must be 1 or m, which is {}");
}

TEST(mismatch, a_number_is_what_the_other_must_be) {
  EXPECT_EQ(mismatch(n, ir::int64(7)).format(), "the shapes do not fit: n is {}, it must be 7");
  EXPECT_EQ(mismatch(ir::int64(7), n).format(), "the shapes do not fit: n is {}, it must be 7");
}

}  // namespace
}  // namespace lathe::relax
