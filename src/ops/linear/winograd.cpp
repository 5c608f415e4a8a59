// The three transforms of Winograd's algorithm for 3x3 convolutions (ops/winograd.h), channels last. Between the
// second and the third lies one product of matrices a point:
//
//   nn.winograd_kernel  [O, I, 3, 3]                            to [points, I, O]; summed in float64, as it runs once
//   nn.winograd_input   [N, m TH + 2, m TW + 2, I]              to [points, N TH TW, I]: whole tiles, m outputs apart
//   nn.winograd_output  [points, N ceil(H / m) ceil(W / m), O]  to [N, H, W, O]
//
// A tile is transformed along one dimension, then along the other. Which sum an element is, the axis of points says, by
// choices that disappear where the loops over it are written out (schedule/rules/transform.cpp).
#include "ops/winograd.h"

#include "ops/rule.h"
#include "support/mutation.h"

namespace lathe::ops {

LATHE_FAULT(winograd_output_swaps_dimensions, "ops_test", "winograd_output: a tile comes out transposed");

namespace {

const WinogradValues<Expr> of_expressions{
    [](const Expr& e, double factor) { return e * ir::constant(e->dtype, factor); }};

// Number `index` of the values.
Expr chosen(const Expr& index, const std::vector<Expr>& values) {
  Expr result = values.back();
  for (size_t i = values.size() - 1; i-- > 0;)
    result = ir::select(ir::eq(index, ir::int64(static_cast<int64_t>(i))), values[i], result);
  return result;
}

Result<Winograd> checked(const InferContext& c, size_t rank) {
  TRY(relax::check_dtype(c, 0, DTypeSet::floating));
  const int64_t tile = c.attrs<WinogradAttributes>().tile;
  const auto known = winograd(tile);
  if (!known)
    return relax::wrong(codes::wrong_attribute,
                        fmt::format("{} has tiles of 2 or 4 outputs, not of {}", c.op.name, tile));
  const TensorStructInfo& x = *c.tensor(0);
  if (!x.shape || x.shape->size() != rank)
    return relax::wrong(codes::wrong_rank,
                        fmt::format("{} takes a tensor of rank {}, not {}", c.op.name, rank, relax::text_of(x)));
  return *known;
}

Winograd of(const LowerContext& c) { return winograd(c.attrs<WinogradAttributes>().tile).value(); }

Result<StructInfo> infer_kernel(const InferContext& c) {
  const Winograd w = TRY(checked(c, 4));
  const TensorStructInfo& x = *c.tensor(0);
  if (!ir::is_int((*x.shape)[2], 3) || !ir::is_int((*x.shape)[3], 3))
    return relax::wrong(codes::shape_mismatch,
                        fmt::format("{} takes kernels of 3x3, not {}", c.op.name, relax::text_of(x)));
  return relax::tensor_info(Shape{ir::int64(w.size * w.size), (*x.shape)[1], (*x.shape)[0]}, x.dtype);
}

std::vector<Tensor> lower_kernel(const LowerContext& c) {
  const Winograd w = of(c);
  const Tensor& x = c.tensor(0);
  const DType wide = DType::float_(64);
  // Point `index` of three values.
  const auto at_point = [&](const Expr& index, const std::function<Expr(int64_t)>& value) {
    std::vector<Expr> points;
    for (int64_t p = 0; p < w.size; ++p) {
      Expr sum = ir::constant(wide, 0.0);
      for (int64_t k = 0; k < 3; ++k)
        if (w.kernel(p, k) != 0) sum = sum + value(k) * ir::constant(wide, w.kernel(p, k));
      points.push_back(sum);
    }
    return chosen(index, points);
  };
  const Tensor rows = te::compute(
      {ir::int64(w.size), ir::int64(3), x.shape()[1], x.shape()[0]},
      [&](const Indices& i) {
        return at_point(i[0], [&](int64_t k) { return ir::cast(wide, x({i[3], i[2], ir::int64(k), i[1]})); });
      },
      {x}, "winograd_kernel_rows");
  return {te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        const Expr row = ir::floordiv(i[0], ir::int64(w.size)), column = ir::floormod(i[0], ir::int64(w.size));
        return ir::cast(x.dtype(), at_point(column, [&](int64_t k) { return rows({row, ir::int64(k), i[1], i[2]}); }));
      },
      {rows}, "winograd_kernel")};
}

Result<StructInfo> infer_input(const InferContext& c) {
  const Winograd w = TRY(checked(c, 4));
  const TensorStructInfo& x = *c.tensor(0);
  Expr tiles = (*x.shape)[0];
  for (const size_t d : {1, 2}) {
    const Expr rest = relax::simplified(ir::floormod((*x.shape)[d] - 2, ir::int64(w.outputs)));
    if (!ir::is_int(rest, 0) || ir::as_int((*x.shape)[d]).value_or(2) < 2)
      return relax::wrong(codes::shape_mismatch,
                          fmt::format("{} takes whole tiles of {} outputs, and two rows and columns more, not {}",
                                      c.op.name, w.outputs, relax::text_of(x)));
    tiles = tiles * ir::floordiv((*x.shape)[d] - 2, ir::int64(w.outputs));
  }
  return relax::tensor_info(Shape{ir::int64(w.size * w.size), relax::simplified(tiles), (*x.shape)[3]}, x.dtype);
}

std::vector<Tensor> lower_input(const LowerContext& c) {
  const Winograd w = of(c);
  const Tensor& x = c.tensor(0);
  const Expr m = ir::int64(w.outputs), size = ir::int64(w.size);
  const Expr height = relax::simplified(ir::floordiv(x.shape()[1] - 2, m));
  const Expr width = relax::simplified(ir::floordiv(x.shape()[2] - 2, m));
  const Expr tiles = c.output().shape->at(1);
  const auto at_point = [&](const Expr& index, const std::function<Expr(int64_t)>& value) {
    std::vector<Expr> d;
    for (int64_t k = 0; k < w.size; ++k) d.push_back(value(k));
    return chosen(index, winograd_input(w, d, of_expressions));
  };
  const Tensor rows = te::compute(
      {tiles, size, size, x.shape()[3]},
      [&](const Indices& i) {
        const Expr image = ir::floordiv(i[0], height * width), y = ir::floormod(ir::floordiv(i[0], width), height);
        const Expr left = ir::floormod(i[0], width) * m + i[2];
        return at_point(i[1], [&](int64_t k) { return x({image, y * m + k, left, i[3]}); });
      },
      {x}, "winograd_input_rows");
  return {te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        return at_point(ir::floormod(i[0], size),
                        [&](int64_t k) { return rows({i[1], ir::floordiv(i[0], size), ir::int64(k), i[2]}); });
      },
      {rows}, "winograd_input")};
}

Result<StructInfo> infer_output(const InferContext& c) {
  const Winograd w = TRY(checked(c, 3));
  const TensorStructInfo& x = *c.tensor(0);
  const std::vector<int64_t>& image = c.attrs<WinogradAttributes>().image;
  if (image.size() != 3 || *std::min_element(image.begin(), image.end()) < 0)
    return relax::wrong(codes::wrong_attribute,
                        fmt::format("{} takes an image of three extents: batch, height and width", c.op.name));
  const auto tiles = [&](int64_t extent) { return (extent + w.outputs - 1) / w.outputs; };
  if (!relax::may_be((*x.shape)[0], ir::int64(w.size * w.size), c.assumptions) ||
      !relax::may_be((*x.shape)[1], ir::int64(image[0] * tiles(image[1]) * tiles(image[2])), c.assumptions))
    return relax::wrong(
        codes::shape_mismatch,
        fmt::format("{} of {}: {} images of {}x{} have {} points of {} tiles", c.op.name, relax::text_of(x), image[0],
                    image[1], image[2], w.size * w.size, image[0] * tiles(image[1]) * tiles(image[2])));
  return relax::tensor_info(Shape{ir::int64(image[0]), ir::int64(image[1]), ir::int64(image[2]), (*x.shape)[2]},
                            x.dtype);
}

std::vector<Tensor> lower_output(const LowerContext& c) {
  const Winograd w = of(c);
  const Tensor& x = c.tensor(0);
  const std::vector<int64_t>& image = c.attrs<WinogradAttributes>().image;
  const Expr m = ir::int64(w.outputs), size = ir::int64(w.size);
  const Expr height = ir::int64((image[1] + w.outputs - 1) / w.outputs);
  const Expr width = ir::int64((image[2] + w.outputs - 1) / w.outputs);
  const auto at_output = [&](const Expr& index, const std::function<Expr(int64_t)>& value) {
    std::vector<Expr> products;
    for (int64_t k = 0; k < w.size; ++k) products.push_back(value(k));
    return chosen(index, winograd_output(w, products, of_expressions));
  };
  const Tensor rows = te::compute(
      {x.shape()[1], m, size, x.shape()[2]},
      [&](const Indices& i) { return at_output(i[1], [&](int64_t k) { return x({i[2] + k * w.size, i[0], i[3]}); }); },
      {x}, "winograd_output_rows");
  return {te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        const Expr tile = (i[0] * height + ir::floordiv(i[1], m)) * width + ir::floordiv(i[2], m);
        Expr row = ir::floormod(i[1], m), column = ir::floormod(i[2], m);
        if (support::flip(winograd_output_swaps_dimensions)) std::swap(row, column);
        return at_output(column, [&](int64_t k) { return rows({tile, row, ir::int64(k), i[3]}); });
      },
      {rows}, "winograd_output")};
}

}  // namespace

const Operator winograd_kernel{
    .name = "nn.winograd_kernel",
    .inputs = {{"kernel"}},
    .attributes = relax::attributes_of<WinogradAttributes>(),
    .infer = infer_kernel,
    .meaning = relax::TeExpression(lower_kernel),
    .fusion = FusionKind::injective,
    .grows_weights = true,
    .reference = "numpy.einsum('pa,qb,oiab->pqio', G, G, kernel).reshape(-1, I, O)",
};

const Operator winograd_input_transform{
    .name = "nn.winograd_input",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<WinogradAttributes>(),
    .infer = infer_input,
    .meaning = relax::TeExpression(lower_input),
    .fusion = FusionKind::product,
    .reference = "numpy.einsum('pa,qb,nyaxbi->pqnyxi', B, B, tiles(x)).reshape(len(B) ** 2, -1, I)",
};

const Operator winograd_output_transform{
    .name = "nn.winograd_output",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<WinogradAttributes>(),
    .infer = infer_output,
    .meaning = relax::TeExpression(lower_output),
    .fusion = FusionKind::product,
    .reference = "joined(numpy.einsum('rp,sq,pqto->trso', A, A, x.reshape(len(B), len(B), -1, O)))",
};

}  // namespace lathe::ops
