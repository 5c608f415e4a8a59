#include "lower/testing/same_results.h"

#include <gtest/gtest.h>

#include "lower/testing/opened.h"
#include "relax/interpret/evaluate.h"
#include "runtime/core/program_fixture.h"

namespace lathe::lower::testing {

void expect_same_results(const ir::IRModule& graph, const ir::IRModule& lowered,
                         const std::vector<ir::TensorData>& inputs) {
  const auto expected = relax::evaluate(graph, "main", inputs).value_or_throw();
  const auto meant = relax::evaluate(lowered, "main", inputs).value_or_throw();
  Opened opened(lowered, write_program(lowered).value_or_throw());
  ASSERT_TRUE(opened.is_open()) << runtime::testing::last_message();
  for (int run = 0; run < 2; ++run) {
    const auto actual = opened.run(inputs, static_cast<int>(expected.size()));
    ASSERT_EQ(actual.size(), expected.size()) << runtime::testing::last_message();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(actual[i]->shape, expected[i]->shape);
      for (int64_t e = 0; e < expected[i]->elements(); ++e) {
        const double want = ir::float_at(*expected[i], e), bound = 1e-4 * (1 + std::abs(want));
        ASSERT_NEAR(ir::float_at(*actual[i], e), want, bound) << "result " << i << " element " << e;
        ASSERT_NEAR(ir::float_at(*meant[i], e), want, bound) << "result " << i << " element " << e;
      }
    }
  }
}

}  // namespace lathe::lower::testing
