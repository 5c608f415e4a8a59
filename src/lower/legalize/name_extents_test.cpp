#include "lower/legalize/name_extents.h"

#include <gtest/gtest.h>

#include "graph/passes.h"
#include "lower/legalize/legalize.h"
#include "lower/testing/random_graph.h"
#include "lower/testing/same_results.h"
#include "ops/attributes.h"
#include "relax/call_tir.h"
#include "relax/script/dialect.h"
#include "script/testing/expected_text.h"
#include "tir/script/dialect.h"

namespace lathe::lower {
namespace {

using namespace relax;  // NOLINT: the subject of these tests

TEST(name_extents, makes_of_programs_what_its_text_expects) {
  const auto graph = relax::script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const std::string unexpected = script::testing::check_cases(name_extents, {}, __FILE__, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

// An image [1, height, width, 3] of any size through convolutions, pools and sums with earlier values of its extents,
// and now and then a reshape to pixels and back.
ir::IRModule image_of_any_size(int operators, std::mt19937_64& random) {
  const auto pick = [&](size_t count) { return random() % count; };
  const Shape shape{ir::int64(1), ir::size_var("height"), ir::size_var("width"), ir::int64(3)};
  const Var x = relax_var("x", tensor_info(shape, ir::DType::float32()));
  BlockBuilder b;
  b.begin_function("main", {x});
  const auto call = [&](const Operator& op, std::vector<Expr> args, AttributesRef attributes = {}) {
    return b.emit_output(make_call(op, std::move(args), std::move(attributes)).value_or_throw());
  };
  const auto reshape = [&](const Expr& e, Shape extents) {
    return call(ops::reshape, {e, ir::make<ShapeExpr>(std::move(extents))});
  };
  std::vector<Expr> values{x};
  for (int i = 0; i < operators; ++i) {
    const Expr e = values[pick(3) ? values.size() - 1 : pick(values.size())];
    const Shape own = *as_tensor(e)->shape;
    switch (pick(4)) {
      case 0:
        values.push_back(call(ops::conv, {e, constant(testing::random_data({3, 3, 3, 3}, random))},
                              ir::with(ops::ConvAttributes(), [&](ops::ConvAttributes& a) {
                                a.strides = {1 + static_cast<int64_t>(pick(2)), 1 + static_cast<int64_t>(pick(2))};
                                a.padding = {1, 1, 1, 1};
                                a.data_layout = "NHWC";
                              })));
        break;
      case 1:
        values.push_back(call(ops::max_pool, {e}, ir::with(ops::PoolAttributes(), [](ops::PoolAttributes& a) {
                                a.pool_size = {2, 2};
                                a.strides = {2, 1};
                                a.padding = {1, 1, 0, 0};
                                a.layout = "NHWC";
                              })));
        break;
      case 2:
        for (const Expr& other : values)
          if (same_shape(*as_tensor(other)->shape, own) && other != e) {
            values.push_back(call(ops::add, {e, other}));
            break;
          }
        break;
      default:
        values.push_back(call(ops::tanh, {reshape(reshape(e, {own[0], simplified(own[1] * own[2]), own[3]}), own)}));
    }
  }
  Expr all = values.size() > 1 ? values.back() : call(ops::relu, {x});
  b.end_function(all);
  return b.finish();
}

// How many scalars each kernel takes.
std::vector<int> scalars_of_kernels(const ir::IRModule& module) {
  std::vector<int> counts;
  for (const auto& [name, function] : module)
    if (const auto* program = function.as<tir::PrimFunc>())
      counts.push_back(static_cast<int>(program->params.size() - program->buffer_map.size()));
  return counts;
}

TEST(name_extents, keeps_what_images_of_any_size_become) {
  std::mt19937_64 random(31);
  int changed = 0;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const ir::IRModule graph = image_of_any_size(2 + round / 6, random);
    const ir::IRModule lowered = legalize(graph::fuse_ops(graph, {}).value_or_throw(), {}).value_or_throw();
    const ir::IRModule named = name_extents(lowered, {}).value_or_throw();
    changed += scalars_of_kernels(named) != scalars_of_kernels(lowered) ? 1 : 0;
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{7, 12}, {16, 1}, {1, 5}}) {
      const std::vector<ir::TensorData> inputs{testing::random_data({1, height, width, 3}, random)};
      testing::expect_same_results(graph, named, inputs);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(changed, 20);
}

}  // namespace
}  // namespace lathe::lower
