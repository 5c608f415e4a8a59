#include "driver/pipeline.h"

#include <gtest/gtest.h>

namespace lathe::driver {
namespace {

using Names = std::vector<std::string>;

Names names(const std::vector<ir::PassRow>& rows) {
  Names result;
  for (const ir::PassRow& row : rows) result.push_back(row.name);
  return result;
}

TEST(pipeline, names_each_row_once_and_gives_it_a_stage) {
  const auto rows = pipeline(target::parse_target("null").value_or_throw());
  std::set<std::string> seen;
  for (const std::string& name : names(rows)) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_NE(stage_of(name), "") << name;
  }
  EXPECT_EQ(stage_of("simplify_algebra"), "graph");
  EXPECT_EQ(stage_of("legalize"), "tensor programs");
  EXPECT_EQ(stage_of("nest_parallel"), "kernels");
  EXPECT_EQ(stage_of("generate_code"), "code");
}

TEST(pipeline, declares_predecessors_that_come_earlier) {
  std::set<std::string> seen;
  for (const ir::PassRow& row : pipeline(target::parse_target("null").value_or_throw())) {
    for (const std::string& earlier : row.after) EXPECT_TRUE(seen.count(earlier)) << row.name << " after " << earlier;
    seen.insert(row.name);
  }
}

}  // namespace
}  // namespace lathe::driver
