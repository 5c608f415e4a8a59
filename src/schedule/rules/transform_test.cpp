#include <gtest/gtest.h>

#include "driver/pipeline.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "schedule/rules/rules.h"
#include "te/tensor.h"
#include "tir/testing/differential.h"

namespace lathe::schedule {
namespace {

namespace of_transform {

using te::Tensor;

std::vector<Expr> shape_of(const std::vector<int64_t>& extents) {
  std::vector<Expr> shape;
  for (const int64_t extent : extents) shape.push_back(int64(extent));
  return shape;
}

// What the operator computes of `x`.
Tensor applied(const relax::Operator& op, const Tensor& x, relax::AttributesRef attributes) {
  const relax::Var var = relax::relax_var("x", relax::tensor_info(x.shape(), x.dtype()));
  const relax::Expr call = relax::make_call(op, {var}, std::move(attributes)).value_or_throw();
  const auto& node = *call.as<relax::Call>();
  return std::get<relax::TeExpression>(op.meaning)({node, node.attributes.get(), {x}}).at(0);
}

Tensor relu(const Tensor& x) {
  return te::compute(
      x.shape(), [&](const std::vector<Expr>& i) { return max(x(i), constant(x.dtype(), 0)); }, {x}, "relu");
}

// One row and column of zeros on each side of an image [n, h, w, c].
Tensor with_zeros_around(const Tensor& x) {
  std::vector<Expr> shape = x.shape();
  shape[1] = shape[1] + 2;
  shape[2] = shape[2] + 2;
  return te::compute(
      shape,
      [&](const std::vector<Expr>& i) {
        const Expr inside = logical_and(logical_and(i[1] >= 1, i[1] < x.shape()[1] + 1),
                                        logical_and(i[2] >= 1, i[2] < x.shape()[2] + 1));
        return if_then_else(inside, x({i[0], i[1] - 1, i[2] - 1, i[3]}), constant(x.dtype(), 0));
      },
      {x}, "pad");
}

// The rule that took it; or how the scheduled function, or the kernel that it becomes, differs.
std::string taken_by(const Function& f, int bits) {
  target::Target target;
  target.vector_bits = bits;
  target.vector_registers = 32;
  target.cores = 2;
  AnalyticDecider decider;
  ir::PassContext context;
  std::string taken = "none", declined;
  context.on_remark = [&](const ir::Remark& remark) {
    if (remark.taken)
      taken = remark.pass;
    else
      declined += remark.pass + ": " + remark.text + "\n";
  };
  const Schedule done = schedule_function(Schedule::create(f).value_or_throw(), target, decider, context);
  const Function after = done.mod().find_as<PrimFunc>("main");
  for (const Function& made : {after, driver::lower_to_kernel(after).value_or_throw()}) {
    std::vector<tir::TensorBuffer> expected = tir::testing::random_arguments(f, 7, {}), got = expected;
    tir::interpret(f, expected, {}).value_or_throw();
    tir::interpret(made, got, {}).value_or_throw();
    for (size_t a = 0; a < expected.size(); ++a)
      for (int64_t i = 0; i < expected[a].elements(); ++i) {
        const double x = expected[a].float_at(i), y = got[a].float_at(i);
        if (!(std::abs(x - y) <= 1e-5 * std::max(1.0, std::abs(x))))
          return fmt::format("argument {}, element {}: {} is not {}\n{}", a, i, y, x, done.trace().as_python());
      }
  }
  return taken == "transform" ? taken : declined + taken;
}

struct Image {
  int64_t tile, images, height, width, channels;
};
const std::vector<Image> images{{2, 1, 4, 6, 16}, {4, 1, 8, 4, 32}, {4, 2, 7, 5, 16},  {2, 1, 1, 1, 8},
                                {4, 1, 3, 9, 24}, {2, 3, 5, 2, 48}, {4, 1, 13, 4, 12}, {4, 0, 4, 4, 16}};

TEST(transform, holds_a_tile_of_the_input_near) {
  for (const int bits : {128, 512})
    for (const Image& i : images) {
      if (i.images == 0) continue;
      const auto whole = [&](int64_t extent) { return (extent + i.tile - 1) / i.tile * i.tile + 2; };
      const Tensor x = te::placeholder(shape_of({i.images, whole(i.height), whole(i.width), i.channels}));
      const Tensor y = applied(ops::winograd_input_transform, x, make<ops::WinogradAttributes>(i.tile));
      EXPECT_EQ(taken_by(te::create_prim_func({x}, {y}), bits), "transform");
    }
}

Tensor products_of(const Image& i) {
  const auto tiles = [&](int64_t extent) { return (extent + i.tile - 1) / i.tile; };
  const int64_t size = i.tile + 2;
  return te::placeholder(shape_of({size * size, i.images * tiles(i.height) * tiles(i.width), i.channels}));
}

Tensor output_of(const Image& i, const Tensor& x) {
  return applied(ops::winograd_output_transform, x,
                 make<ops::WinogradAttributes>(i.tile, std::vector<int64_t>{i.images, i.height, i.width}));
}

TEST(transform, writes_what_follows_from_the_tile) {
  for (const int bits : {128, 512})
    for (const Image& i : images) {
      if (i.images == 0) continue;
      const Tensor x = products_of(i);
      EXPECT_EQ(taken_by(te::create_prim_func({x}, {relu(output_of(i, x))}), bits), "transform");
    }
}

TEST(transform, writes_into_a_padded_image) {
  for (const Image& i : images) {
    if (i.images == 0) continue;
    const Tensor x = products_of(i);
    EXPECT_EQ(taken_by(te::create_prim_func({x}, {with_zeros_around(relu(output_of(i, x)))}), 512), "transform");
  }
}

TEST(transform, leaves_alone_what_it_cannot_hold) {
  const auto declined = [](const Function& f) {
    const std::string lines = taken_by(f, 512);
    return lines.substr(0, lines.find('\n'));
  };
  // Nothing is chosen.
  const Tensor x = te::placeholder(shape_of({4, 16}));
  EXPECT_EQ(declined(te::create_prim_func({x}, {relu(x)})),
            "transform: 0 blocks choose by equality of an axis with constants, not two");
  // One channel fills no vector; seven are one of seven lanes.
  const Image one{2, 1, 4, 4, 1}, seven{2, 1, 4, 4, 7};
  const Tensor single = products_of(one), few = products_of(seven);
  EXPECT_EQ(declined(te::create_prim_func({single}, {output_of(one, single)})),
            "transform: no vectors fill the last axis");
  EXPECT_EQ(declined(te::create_prim_func({few}, {output_of(seven, few)})), "transform");
  // The kernel's transform runs once.
  const Tensor kernel = te::placeholder(shape_of({16, 3, 3, 3}));
  const Tensor points = applied(ops::winograd_kernel, kernel, make<ops::WinogradAttributes>(2));
  EXPECT_EQ(taken_by(te::create_prim_func({kernel}, {points}), 512), "transform");
}

}  // namespace of_transform
}  // namespace
}  // namespace lathe::schedule
