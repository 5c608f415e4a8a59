#include "script/vocabulary.h"

#include <gtest/gtest.h>

namespace lathe::script {
namespace {

TEST(vocabulary, names_the_nearest_statement_function_or_type) {
  EXPECT_EQ(nearest_help("tir.gird"), "the nearest name is T.grid");
  EXPECT_EQ(nearest_help("tir.alloc_bufer"), "the nearest name is T.alloc_buffer");
  EXPECT_EQ(nearest_help("tir.flot32"), "the nearest name is T.float32");
  EXPECT_EQ(nearest_help("tir.sigmod"), "the nearest name is T.sigmoid");
  EXPECT_EQ(nearest_help("relax.nothing"), "");
}

}  // namespace
}  // namespace lathe::script
