#include <gtest/gtest.h>

#include "graph/passes.h"
#include "graph/testing/graph_fixture.h"
#include "graph/winograd/winograd_model.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {
namespace {

using namespace testing;  // NOLINT: the fixture's words

// The pass, asked for, on what convert_layout gives it; `tile` in its place where that is not negative.
ir::Pass asked_for(int64_t tile) {
  return [tile](IRModule module, const PassContext& given) -> Result<IRModule> {
    PassContext context = given;
    context.config.set(winograd_wanted, true);
    if (tile >= 0) context.config.set(winograd_tile, tile);
    module = TRY(for_four_lanes(convert_layout)(std::move(module), context));
    module = TRY(for_four_lanes(winograd)(std::move(module), context));
    return eliminate_dead_code(std::move(module), context);
  };
}

struct Convolution {
  Extents x, kernel, padding = {}, strides = {}, dilation = {};
  int64_t groups = 1;
  std::string auto_pad = "NOTSET";
};

ir::IRModule module_of(const Convolution& c) {
  Graph g;
  const Expr x = g.input("x", c.x);
  const auto attributes = ir::make<ops::ConvAttributes>(c.strides, c.padding, c.dilation, c.groups, c.auto_pad);
  return g.finish(g.call(ops::conv, {x, weights(c.kernel, 1)}, attributes));
}

// What the pass says of the only convolution.
std::string remark_on(const ir::IRModule& module, int64_t tile = -1) {
  PassContext context = testing::context();
  std::string text;
  context.on_remark = [&](const ir::Remark& remark) {
    if (remark.pass == "winograd") text += (remark.taken ? "taken: " : "") + remark.text;
  };
  asked_for(tile)(module, context).value_or_throw();
  return text;
}

TEST(winograd, makes_of_programs_what_its_text_expects) { expect_text(asked_for(2), __FILE__); }

TEST(winograd, keeps_the_meaning_of_every_shape) {
  for (const int64_t tile : {2, 4})
    for (const Convolution& c : std::vector<Convolution>{{{1, 5, 3, 3}, {3, 5, 3, 3}},
                                                         {{2, 6, 7, 5}, {4, 6, 3, 3}, {1, 1, 1, 1}},
                                                         {{1, 8, 9, 8}, {5, 8, 3, 3}, {0, 2, 3, 1}},
                                                         {{1, 5, 1, 1}, {7, 5, 3, 3}, {1, 1, 1, 1}},
                                                         {{3, 5, 4, 11}, {4, 5, 3, 3}, {2, 0, 0, 2}}}) {
      const auto before = module_of(c);
      const auto after = asked_for(tile)(before, context()).value_or_throw();
      EXPECT_EQ(find_call(after, "nn.conv"), nullptr);
      EXPECT_NE(find_call(after, "nn.winograd_output"), nullptr);
      EXPECT_EQ(difference(before, after, 1e-4), "");
      EXPECT_EQ(after.attrs.get_or<int64_t>(winograd_count, 0), 1);
      const double error = after.attrs.get_or<double>(winograd_worst_error, 1);
      EXPECT_LT(error, 1e-5);
      EXPECT_GT(error, 0);
    }
}

TEST(winograd, pads_by_rule) {
  for (const char* rule : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    Convolution c{{1, 5, 5, 6}, {4, 5, 3, 3}};
    c.auto_pad = rule;
    const auto before = module_of(c);
    const auto after = asked_for(4)(before, context()).value_or_throw();
    EXPECT_NE(find_call(after, "nn.winograd_input"), nullptr);
    EXPECT_EQ(difference(before, after, 1e-4), "");
  }
}

TEST(winograd, pads_once_what_was_padded_before) {
  Graph g;
  const Expr x = g.input("x", {1, 5, 6, 6});
  const auto padding = ir::make<ops::ConvAttributes>(Extents{}, Extents{1, 1, 1, 1});
  const Expr first = g.call(ops::relu, {g.call(ops::conv, {x, weights({5, 5, 3, 3}, 1)}, padding)});
  const auto before = g.finish(g.call(ops::conv, {first, weights({5, 5, 3, 3}, 2)}, padding));
  const auto after = asked_for(4)(before, context()).value_or_throw();
  EXPECT_EQ(std::ranges::count(calls(after), "nn.pad"), 2);
  EXPECT_EQ(difference(before, after, 1e-4), "");
}

TEST(winograd, does_nothing_unless_asked_for) {
  const auto before = module_of({{1, 64, 16, 16}, {64, 64, 3, 3}});
  const auto after = for_four_lanes(winograd)(before, context()).value_or_throw();
  EXPECT_TRUE(ir::structural_equal(before, after));
}

TEST(winograd, says_why_not) {
  const auto with = [](auto change) {
    Convolution c{{1, 5, 9, 9}, {4, 5, 3, 3}};
    change(c);
    return remark_on(module_of(c), 2);
  };
  EXPECT_EQ(with([](Convolution& c) { c.kernel = {4, 5, 3, 2}; }), "its windows are not 3x3");
  EXPECT_EQ(with([](Convolution& c) { c.strides = {2, 2}; }), "its strides are not one");
  EXPECT_EQ(with([](Convolution& c) { c.dilation = {1, 2}; }), "it is dilated");
  EXPECT_EQ(with([](Convolution& c) {
              c.kernel = {5, 1, 3, 3};
              c.groups = 5;
            }),
            "it has 5 groups");
  EXPECT_EQ(with([](Convolution& c) { c.kernel = {1, 5, 3, 3}; }),
            "its channels do not lie last: there are too few of them, or convert_layout is off");
  EXPECT_EQ(with([](Convolution& c) { c.x[0] = 0; }), "there is nothing to compute");
  EXPECT_EQ(remark_on(module_of({{1, 5, 9, 9}, {4, 5, 3, 3}})), "its 5 channels are no multiple of 4 lanes");
  EXPECT_EQ(remark_on(module_of({{1, 8, 9, 9}, {8, 8, 3, 3}}), 0).substr(0, 8), "winograd");

  Graph symbolic;
  const Expr x = symbolic.input("x", {ir::size_var("n"), ir::int64(8), ir::int64(5), ir::int64(4)});
  EXPECT_EQ(remark_on(symbolic.finish(symbolic.call(ops::conv, {x, weights({8, 8, 3, 3}, 1)})), 4),
            "its extents are not known before it runs");
  Graph given;
  const Expr y = given.input("y", {1, 8, 5, 4}), kernel = given.input("kernel", {8, 8, 3, 3});
  EXPECT_EQ(remark_on(given.finish(given.call(ops::conv, {y, kernel})), 4), "its weights are not constant");
}

TEST(winograd, chooses_by_the_cycles_of_the_model) {
  target::Target target;
  target.vector_bits = 512;
  target.caches = {{1, 32 << 10}, {2, 1 << 20}};
  const auto tile = [&](int64_t images, int64_t extent, int64_t channels) {
    return choose_winograd({images, extent, extent, channels, channels}, target).tile;
  };
  EXPECT_EQ(tile(1, 56, 64), 4);
  EXPECT_EQ(tile(1, 7, 512), 2);
  EXPECT_EQ(tile(1, 2, 512), 0);  // its weights alone take longer
  EXPECT_EQ(tile(1, 56, 24), 0);  // no whole vectors
  const WinogradChoice few = choose_winograd({1, 2, 2, 512, 512}, target);
  EXPECT_NE(few.why.find("the direct one takes about"), std::string::npos);
}

// The error that is stated is that of the convolution: larger tiles lose more, one of zeros nothing.
TEST(winograd, measures_its_error) {
  const auto data = [](const Expr& e) { return e.as<relax::Constant>()->data; };
  const auto kernel = data(weights({20, 32, 3, 3}, 7));
  const WinogradError two = winograd_error(*kernel, 2), four = winograd_error(*kernel, 4);
  EXPECT_GT(four.relative, two.relative);
  EXPECT_GT(two.relative, 1e-8);
  EXPECT_LT(four.relative, 1e-5);
  EXPECT_GT(four.direct, 1e-8);
  EXPECT_LT(four.direct, 1e-5);
  EXPECT_EQ(winograd_error(*data(filled({2, 3, 3, 3}, 0)), 4).relative, 0);
}

// A value four times as large as what it is computed from, by megabytes.
TEST(winograd, folds_its_weights_however_large_they_get) {
  const auto after = asked_for(4)(module_of({{1, 128, 6, 6}, {256, 128, 3, 3}}), context()).value_or_throw();
  PassContext quick = context();
  quick.evaluate = [](const IRModule&, const std::string&, const std::vector<ir::TensorData>&) {
    const Extents shape{36, 128, 256};
    return std::vector<ir::TensorData>{
        ir::tensor_of<float>(ir::DType::float32(), shape, std::vector<float>(36 * 128 * 256))};
  };
  const auto folded = fold_constants(after, quick).value_or_throw();
  EXPECT_EQ(find_call(folded, "nn.winograd_kernel"), nullptr);
}

}  // namespace
}  // namespace lathe::graph
