#include "lower/batch/split_batch.h"

#include <gtest/gtest.h>

#include "graph/passes.h"
#include "lower/batch/batch_model.h"
#include "lower/batch/batch_parts.h"
#include "lower/legalize/legalize.h"
#include "lower/testing/plan_of.h"
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
using testing::plan_of;
using testing::random_data;

// All that is larger than a cache line is far away.
target::Target tiny_caches() {
  target::Target target = target::native_target();
  target.caches = {{.level = 1, .bytes = 1 << 20}, {.level = 2, .bytes = 16}};
  return target;
}

struct BatchGraph {
  ir::IRModule module;
  std::vector<std::vector<int64_t>> shapes;
};

// Chains over [rows, width] that mostly work row by row, with values that are used again, views of [rows, a, b], and
// now and then something that mixes the rows.
BatchGraph batch_graph(int64_t rows, int operators, std::mt19937_64& random) {
  const auto pick = [&](size_t count) { return random() % count; };
  const int64_t width = 16 * (1 + static_cast<int64_t>(pick(2)));
  BatchGraph graph;
  std::vector<Var> params;
  for (int i = 0; i < 2; ++i) {
    graph.shapes.push_back({rows, width});
    params.push_back(relax_var("x" + std::to_string(i), tensor_info(graph.shapes.back(), ir::DType::float32())));
  }
  BlockBuilder b;
  b.begin_function("main", params);
  const auto call = [&](const Operator& op, std::vector<Expr> args, AttributesRef attributes = {}) {
    return b.emit_output(make_call(op, std::move(args), std::move(attributes)).value_or_throw());
  };
  const auto reshape = [&](const Expr& x, std::vector<int64_t> shape) {
    std::vector<ir::Expr> extents;
    for (const int64_t extent : shape) extents.push_back(ir::int64(extent));
    return call(ops::reshape, {x, ir::make<ShapeExpr>(std::move(extents))});
  };
  std::vector<Expr> values(params.begin(), params.end());
  for (int i = 0; i < operators; ++i) {
    const Expr x = values[pick(2) ? values.size() - 1 : pick(values.size())], y = values[pick(values.size())];
    switch (pick(9)) {
      case 0:
        values.push_back(call(ops::relu, {x}));
        break;
      case 1:
        values.push_back(call(ops::add, {x, y}));
        break;
      case 2:
        values.push_back(call(ops::multiply, {x, constant(random_data({1, width}, random))}));
        break;
      case 3:
        values.push_back(call(ops::matmul, {x, constant(random_data({width, width}, random))}));
        break;
      case 4:
        values.push_back(reshape(call(ops::negative, {reshape(x, {rows, width / 4, 4})}), {rows, width}));
        break;
      case 5:
        values.push_back(reshape(x, {rows, width / 8, 2, 4}));
        values.back() = reshape(values.back(), {rows, width});
        break;
      case 6:
        if (pick(3) == 0) {
          const auto over_rows = ir::make<ops::ReduceAttributes>(std::vector<int64_t>{0}, true);
          values.push_back(call(ops::add, {x, call(ops::sum, {y}, over_rows)}));
        } else {
          const auto over_columns = ir::make<ops::ReduceAttributes>(std::vector<int64_t>{1}, true);
          values.push_back(call(ops::subtract, {x, call(ops::max, {y}, over_columns)}));
        }
        break;
      case 7:
        values.push_back(call(ops::add, {x, constant(random_data({rows, width}, random))}));
        break;
      default:
        values.push_back(call(ops::multiply, {x, call(ops::sigmoid, {x})}));
    }
  }
  std::vector<Expr> results{values.back(), values[values.size() / 2]};
  if (pick(2)) results.push_back(values[values.size() / 2 + 1]);
  std::vector<StructInfo> infos;
  for (const Expr& result : results) infos.push_back(result->struct_info);
  b.end_function(with_struct_info(ir::make<Tuple>(std::move(results)), ir::make<TupleStructInfo>(std::move(infos))));
  graph.module = b.finish();
  return graph;
}

bool is_split(const ir::IRModule& module) {
  bool found = false;
  for (const BindingBlock& block : module.find_as<FunctionNode>("main")->body.as<SeqExpr>()->blocks)
    for (const Binding& binding : block->bindings) found = found || is_joined_batch(binding.as<VarBinding>()->value);
  return found;
}

TEST(split_batch, makes_of_programs_what_its_text_expects) {
  const auto graph = script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const ir::Pass pass = [](ir::IRModule module, const ir::PassContext& context) {
    return split_batch(std::move(module), tiny_caches(), context);
  };
  const std::string unexpected = script::testing::check_cases(pass, {}, __FILE__, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

TEST(split_batch, keeps_what_random_graphs_compute) {
  std::mt19937_64 random(71);
  int split = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int64_t sizes[] = {8, 6, 2, 5, 1, 34};
    const BatchGraph graph = batch_graph(sizes[round % 6], 3 + round / 3, random);
    ir::IRModule module = graph.module;
    if (round % 2) module = graph::fuse_ops(std::move(module), {}).value_or_throw();
    module = legalize(std::move(module), {}).value_or_throw();
    const ir::IRModule pieces = split_batch(module, tiny_caches(), {}).value_or_throw();
    split += is_split(pieces);
    std::vector<ir::TensorData> inputs;
    for (const std::vector<int64_t>& shape : graph.shapes) inputs.push_back(random_data(shape, random));
    testing::expect_same_results(graph.module, pieces, inputs);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(split, 20);
}

TEST(split_batch, needs_memory_for_one_piece_between_its_kernels) {
  std::mt19937_64 random(3);
  const Var x = relax_var("x", tensor_info({8, 64}, ir::DType::float32()));
  BlockBuilder b;
  b.begin_function("main", {x});
  Expr value = x;
  for (int i = 0; i < 4; ++i)
    value = b.emit_output(make_call(ops::matmul, {value, constant(random_data({64, 64}, random))}).value_or_throw());
  b.end_function(value);
  const ir::IRModule whole = legalize(b.finish(), {}).value_or_throw();
  const ir::IRModule pieces = split_batch(whole, tiny_caches(), {}).value_or_throw();
  ASSERT_TRUE(is_split(pieces));
  EXPECT_EQ(plan_of(whole).arena_bytes, 2 * 8 * 64 * 4);
  EXPECT_EQ(plan_of(pieces).arena_bytes, 2 * 64 * 4);
  size_t kernels = 0;
  for (const auto& [name, function] : pieces) kernels += function.is<tir::PrimFunc>();
  EXPECT_EQ(kernels, 1u) << "nothing calls the kernel for all rows any more";
}

TEST(batch_parts, are_what_lies_in_one_piece_of_memory) {
  const Var x = relax_var("x", tensor_info({4, 6}, ir::DType::float32())),
            y = relax_var("y", tensor_info({2, 6}, ir::DType::float32()));
  const auto slice = [&](std::vector<int64_t> axes, std::vector<int64_t> strides, int64_t begin, int64_t end) {
    const auto at = [](int64_t i) { return ir::make<ShapeExpr>(std::vector<ir::Expr>{ir::int64(i)}); };
    return make_call(ops::strided_slice, {x, at(begin), at(end)},
                     ir::make<ops::StridedSliceAttributes>(std::move(axes), std::move(strides)))
        .value_or_throw();
  };
  const auto joined = [](std::vector<Expr> parts, int64_t axis) {
    return make_call(ops::concat, std::move(parts), ir::make<ops::AxisAttributes>(axis)).value_or_throw();
  };
  EXPECT_TRUE(is_batch_part(batch_part(x, 1, 3)));
  EXPECT_TRUE(is_batch_part(slice({0}, {}, 0, 4)));
  EXPECT_FALSE(is_batch_part(slice({1}, {}, 0, 4)));
  EXPECT_FALSE(is_batch_part(slice({0}, {2}, 0, 4)));
  EXPECT_FALSE(is_batch_part(slice({0}, {}, -3, 4)));
  EXPECT_FALSE(is_batch_part(slice({0}, {}, 1, 100)));
  EXPECT_TRUE(is_joined_batch(joined_batch({x, x, x})));
  EXPECT_FALSE(is_joined_batch(joined({x, x}, 1)));
  EXPECT_TRUE(is_joined_batch(joined({x, y}, 0)));
  // The rows of an image that is alone in its batch.
  const Var image = relax_var("image", tensor_info({1, 4, 6}, ir::DType::float32()));
  EXPECT_TRUE(is_batch_part(batch_part(image, 1, 3, 1)));
  EXPECT_FALSE(is_batch_part(batch_part(image, 1, 3, 2)));
  EXPECT_TRUE(is_joined_batch(joined_batch({image, batch_part(image, 0, 1, 1)}, 1)));
  EXPECT_FALSE(is_joined_batch(joined({image, image}, 2)));
  EXPECT_EQ(first_element(*batch_part(image, 1, 3, 1).as<Call>()), 6);
}

// ---- the model ----

const int64_t mb = 1 << 20;

target::Target caches() {
  target::Target target;
  target.caches = {{.level = 1, .bytes = 32 << 10}, {.level = 2, .bytes = mb}};
  return target;
}

BatchStep step(int64_t moved, int64_t weights, size_t last_use) {
  return {.moved = moved, .written = moved / 2, .reads = 1, .last_use = last_use, .same = weights};
}

TEST(batch_model, splits_what_leaves_the_caches_and_stops_before_weights_cost_more) {
  const std::vector<BatchStep> run{step(64 * mb, mb / 8, 1), step(32 * mb, mb / 8, 2), step(16 * mb, mb / 4, 3),
                                   step(3 * mb, 8 * mb, 4), step(2 * mb, 8 * mb, 5)};
  const BatchSplit split = best_batch_split(run, 8, caches());
  EXPECT_EQ(split.steps, 3u) << "the fourth reads more weights again than it saves";
  EXPECT_EQ(split.pieces, 8);
}

TEST(batch_model, leaves_small_batches_and_large_weights) {
  EXPECT_EQ(best_batch_split({step(2 * mb, 0, 1), step(2 * mb, 0, 2)}, 8, caches()).steps, 0u);
  EXPECT_EQ(best_batch_split({step(16 * mb, 20 * mb, 1), step(16 * mb, 20 * mb, 2)}, 8, caches()).steps, 0u);
  EXPECT_EQ(best_batch_split({step(64 * mb, 0, 9), step(64 * mb, 0, 9)}, 8, caches()).steps, 0u)
      << "nothing is read within the run";
  EXPECT_EQ(best_batch_split({step(64 * mb, 0, 1), step(64 * mb, 0, 2)}, 1, caches()).steps, 0u);
}

TEST(batch_model, makes_equal_pieces_at_most_sixteen) {
  const std::vector<BatchStep> run{step(48 * mb, 0, 1), step(48 * mb, 0, 2)};
  EXPECT_EQ(best_batch_split(run, 64, caches()).pieces, 16);
  EXPECT_EQ(best_batch_split(run, 7, caches()).pieces, 7);
  EXPECT_EQ(best_batch_split(run, 34, caches()).pieces, 2);
  EXPECT_EQ(best_batch_split(run, 17, caches()).steps, 0u);
}

}  // namespace
}  // namespace lathe::lower
