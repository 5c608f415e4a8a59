#include "lower/parts/fold_scalars.h"

#include <gtest/gtest.h>

#include "lower/legalize/legalize.h"
#include "lower/parts/parts_in_place.h"
#include "lower/testing/concat_graph.h"
#include "lower/testing/same_results.h"
#include "relax/call_tir.h"
#include "relax/script/dialect.h"
#include "script/testing/expected_text.h"
#include "tir/script/dialect.h"

namespace lathe::lower {
namespace {

TEST(fold_scalars, makes_of_programs_what_its_text_expects) {
  const auto graph = relax::script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const std::string unexpected = script::testing::check_cases(fold_scalars, {}, __FILE__, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

int scalars(const ir::IRModule& module) {
  int count = 0;
  for (const auto& [name, function] : module) {
    const auto* program = function.as<tir::PrimFunc>();
    count += program ? static_cast<int>(program->params.size() - program->buffer_map.size()) : 0;
  }
  return count;
}

TEST(fold_scalars, keeps_what_random_graphs_of_parts_compute) {
  std::mt19937_64 random(23);
  int before = 0, after = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const testing::ConcatGraph graph = testing::concat_graph(4 + round / 4, random);
    ir::IRModule module = legalize(graph.module, {}).value_or_throw();
    module = parts_in_place(std::move(module), {}).value_or_throw();
    const ir::IRModule changed = fold_scalars(module, {}).value_or_throw();
    before += scalars(module);
    after += scalars(changed);
    std::vector<ir::TensorData> inputs;
    for (const std::vector<int64_t>& shape : graph.shapes) inputs.push_back(testing::random_data(shape, random));
    testing::expect_same_results(graph.module, changed, inputs);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(before, 30);
  EXPECT_GT(before, 2 * after);
}

}  // namespace
}  // namespace lathe::lower
