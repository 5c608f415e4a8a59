#include "lower/strips/row_strips.h"

#include <gtest/gtest.h>

#include "graph/passes.h"
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
using testing::random_data;

// A kilobyte is near, and strips cost nothing.
ir::IRModule in_strips(ir::IRModule module) {
  target::Target target = target::native_target();
  target.cores = 1;
  target.caches = {{.level = 1, .bytes = 1 << 20}, {.level = 2, .bytes = 1 << 10}};
  return row_strips(std::move(module), target, {}, {.call = 0, .kernel = 0, .nothing = 1}).value_or_throw();
}

struct ImageGraph {
  ir::IRModule module;
  std::vector<int64_t> shape;
};

// One image of [rows, 2, 16], channels last, through convolutions with and without padding and strides, pools, products
// of its pixels, values that are used again, views, and now and then something that mixes the rows.
ImageGraph image_graph(int64_t rows, int operators, std::mt19937_64& random) {
  const auto pick = [&](size_t count) { return random() % count; };
  ImageGraph graph;
  graph.shape = {1, rows, 2, 16};
  const Var x = relax_var("x", tensor_info(graph.shape, ir::DType::float32()));
  BlockBuilder b;
  b.begin_function("main", {x});
  const auto call = [&](const Operator& op, std::vector<Expr> args, AttributesRef attributes = {}) {
    return b.emit_output(make_call(op, std::move(args), std::move(attributes)).value_or_throw());
  };
  const auto extents_of = [](const Expr& e) {
    std::vector<int64_t> extents;
    for (const ir::Expr& extent : *as_tensor(e)->shape) extents.push_back(*ir::as_int(extent));
    return extents;
  };
  const auto reshape = [&](const Expr& e, const std::vector<int64_t>& shape) {
    std::vector<ir::Expr> extents;
    for (const int64_t extent : shape) extents.push_back(ir::int64(extent));
    return call(ops::reshape, {e, ir::make<ShapeExpr>(std::move(extents))});
  };
  const auto conv = [&](const Expr& e, std::vector<int64_t> window, int64_t stride, std::vector<int64_t> padding,
                        int64_t groups) {
    return call(ops::conv, {e, constant(random_data({16, 16 / groups, window[0], window[1]}, random))},
                ir::with(ops::ConvAttributes(), [&](ops::ConvAttributes& a) {
                  a.strides = {stride, 1};
                  a.padding = std::move(padding);
                  a.groups = groups;
                  a.data_layout = "NHWC";
                }));
  };
  std::vector<Expr> values{x};
  for (int i = 0; i < operators; ++i) {
    const Expr e = values[pick(3) ? values.size() - 1 : pick(values.size())];
    const std::vector<int64_t> shape = extents_of(e);
    const int64_t height = shape[1];
    switch (pick(10)) {
      case 0:
        values.push_back(conv(e, {3, 3}, 1, {1, 1, 1, 1}, 1));
        break;
      case 1:
        values.push_back(conv(e, {3, 3}, 1, {1, 1, 1, 1}, 16));
        break;
      case 2:
        if (height >= 6) values.push_back(conv(e, {3, 1}, 2, {height % 2, 0, 1, 0}, 16));
        break;
      case 3:
        if (height >= 6) values.push_back(conv(e, {2, 1}, 1, {0, 0, 0, 0}, 16));
        break;
      case 4: {
        const Expr pixels = reshape(e, {1, height * 2, 16});
        values.push_back(reshape(call(ops::matmul, {pixels, constant(random_data({16, 16}, random))}), shape));
        break;
      }
      case 5:
        if (height >= 6)
          values.push_back(call(ops::max_pool, {e}, ir::with(ops::PoolAttributes(), [](ops::PoolAttributes& a) {
                                  a.pool_size = {2, 1};
                                  a.strides = {2, 1};
                                  a.layout = "NHWC";
                                })));
        break;
      case 6:
        for (const Expr& other : values)
          if (extents_of(other) == shape && other != e) {
            values.push_back(call(ops::add, {e, other}));
            break;
          }
        break;
      case 7:  // a view of a view
        values.push_back(reshape(reshape(e, {1, height * 2, 16}), shape));
        break;
      case 8:
        if (pick(4) == 0) {
          const auto over_rows = ir::make<ops::ReduceAttributes>(std::vector<int64_t>{1}, true);
          values.push_back(call(ops::subtract, {e, call(ops::max, {e}, over_rows)}));
        }
        break;
      default:
        values.push_back(call(ops::multiply, {call(ops::sigmoid, {e}), constant(random_data({16}, random))}));
    }
  }
  std::vector<Expr> results{values.back()};
  if (pick(2)) results.push_back(values[values.size() / 2]);
  std::vector<StructInfo> infos;
  for (const Expr& result : results) infos.push_back(result->struct_info);
  b.end_function(with_struct_info(ir::make<Tuple>(std::move(results)), ir::make<TupleStructInfo>(std::move(infos))));
  graph.module = b.finish();
  return graph;
}

template <class Is>
int count_bindings(const ir::IRModule& module, Is is) {
  int count = 0;
  for (const BindingBlock& block : module.find_as<FunctionNode>("main")->body.as<SeqExpr>()->blocks)
    for (const Binding& binding : block->bindings) count += is(binding.as<VarBinding>()->value);
  return count;
}

TEST(row_strips, makes_of_programs_what_its_text_expects) {
  const auto graph = script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const ir::Pass pass = [](ir::IRModule module, const ir::PassContext&) { return in_strips(std::move(module)); };
  const std::string unexpected = script::testing::check_cases(pass, {}, __FILE__, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

TEST(row_strips, keeps_what_random_networks_compute) {
  std::mt19937_64 random(93);
  int split = 0, copied = 0;
  for (int round = 0; round < 48; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int64_t sizes[] = {12, 8, 16, 7, 20, 2, 9};
    const ImageGraph graph = image_graph(sizes[round % 7], 3 + round / 5, random);
    ir::IRModule module = graph.module;
    if (round % 2) module = graph::fuse_ops(std::move(module), {}).value_or_throw();
    module = legalize(std::move(module), {}).value_or_throw();
    const ir::IRModule strips = in_strips(module);
    split += count_bindings(strips, is_joined_batch) > 0;
    copied += count_bindings(strips, [](const Expr& e) {
      return is_joined_batch(e) && e.as<Call>()->args.size() == 2 && e.as<Call>()->args[0].is<VarNode>() &&
             static_bytes(*as_tensor(e.as<Call>()->args[0])) != static_bytes(*as_tensor(e.as<Call>()->args[1]));
    });
    testing::expect_same_results(graph.module, strips, {random_data(graph.shape, random)});
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(split, 25);
  EXPECT_GT(copied, 30);
}

// ---- the model ----

const int64_t mb = 1 << 20;

target::Target caches(int cores = 1) {
  target::Target target;
  target.cores = cores;
  target.caches = {{.level = 1, .bytes = 32 << 10}, {.level = 2, .bytes = mb}};
  return target;
}

// Two kernels that move `moved` bytes and hold `held` of a strip.
std::vector<StripStep> two_kernels(int64_t moved, int64_t held, double operations) {
  return {{.moved = moved, .written = moved / 2, .held = held, .readers = {1}, .operations = operations},
          {.moved = moved, .written = moved / 2, .held = held, .is_kept = true, .operations = operations}};
}

TEST(strip_model, saves_what_the_second_cache_holds) {
  EXPECT_GT(saved_by_strips(two_kernels(8 * mb, mb / 2, 0), 16, caches()), 8.0 * mb);
  EXPECT_LT(saved_by_strips(two_kernels(8 * mb, 4 * mb, 0), 2, caches()), 5.0 * mb);
  EXPECT_LT(saved_by_strips(two_kernels(mb / 2, mb / 8, 0), 4, caches()), 0) << "all of it fits";
  EXPECT_LT(saved_by_strips(two_kernels(8 * mb, mb / 2, 0), 16, caches(32)), 0) << "sixteen caches hold it";
}

TEST(strip_model, leaves_what_computes_longer_than_it_waits) {
  const double few = saved_by_strips(two_kernels(8 * mb, mb / 2, 1e6), 16, caches());
  const double many = saved_by_strips(two_kernels(8 * mb, mb / 2, 1e9), 16, caches());
  EXPECT_GT(few, 4 * std::max(many, 1.0));
}

TEST(strip_model, counts_copies_weights_and_calls) {
  std::vector<StripStep> run = two_kernels(8 * mb, mb / 2, 0);
  const double plain = saved_by_strips(run, 16, caches(), {.call = 0});
  EXPECT_EQ(plain - saved_by_strips(run, 16, caches(), {.call = 1000}), 2 * 15 * 1000);
  run[0].copied = 500;
  EXPECT_EQ(plain - saved_by_strips(run, 16, caches(), {.call = 0}), 15 * 500);
  run[0].copied = 0;
  run[1].same = mb / 4;
  EXPECT_EQ(plain - saved_by_strips(run, 16, caches(), {.call = 0}), 15 * mb / 4);
  run[1].same = 1 << 10;
  EXPECT_EQ(plain, saved_by_strips(run, 16, caches(), {.call = 0})) << "the nearest cache holds them";
}

}  // namespace
}  // namespace lathe::lower
