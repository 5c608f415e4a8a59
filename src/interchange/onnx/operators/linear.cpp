// Products: matrices and convolutions.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/operators/windows.h"

namespace lathe::onnx::operators {

namespace {

void matmul(NodeImport& c) { c.set(c.call(ops::matmul, {c.input(0), c.input(1)}, ir::make<ops::MatmulAttributes>())); }

Expr transposed(NodeImport& c, Expr matrix) {
  return c.call(ops::permute_dims, {std::move(matrix)},
                ir::make<ops::PermuteDimsAttributes>(std::optional(std::vector<int64_t>{1, 0})));
}

// x * factor; of integers only where the factor is one.
Expr scaled(NodeImport& c, Expr x, double factor, std::string_view name) {
  if (factor == 1) return x;
  const DType dtype = relax::as_tensor(x)->dtype;
  if (!dtype.is_floating() && factor != std::trunc(factor))
    c.fail(codes::unsupported,
           "Gemm of " + dtype.str() + " with the fractional " + std::string(name) + " " + std::to_string(factor));
  return c.call(ops::multiply, {x, c.scalar(dtype, factor)});
}

// alpha * A' * B' + beta * C, where C broadcasts to the product.
void gemm(NodeImport& c) {
  const double alpha = c.attributes.number("alpha", 1), beta = c.attributes.number("beta", 1);
  const bool flip_a = c.attributes.flag("transA", false), flip_b = c.attributes.flag("transB", false);
  if (c.version < 7) c.attributes.ignore("broadcast");
  for (const size_t i : {0, 1})
    if (c.rank(i) != 2)
      c.fail(codes::wrong_node, "Gemm takes matrices, but its input " + std::to_string(i) + " has " +
                                    std::to_string(c.rank(i)) + " dimensions");
  Expr a = c.input(0), b = c.input(1);
  if (flip_a) a = transposed(c, a);
  if (flip_b) b = transposed(c, b);
  Expr y = scaled(c, c.call(ops::matmul, {a, b}, ir::make<ops::MatmulAttributes>()), alpha, "alpha");
  if (c.has(2) && beta != 0) {
    const Shape product = *relax::as_tensor(y)->shape;
    y = c.call(ops::add, {y, scaled(c, c.input(2), beta, "beta")});
    if (!relax::same_shape(*relax::as_tensor(y)->shape, product))
      c.fail(codes::wrong_shape,
             "cannot broadcast C of " + relax::text_of(c.shape(2)) + " to " + relax::text_of(product));
  }
  c.set(y);
}

void conv(NodeImport& c) {
  const int64_t groups = c.attributes.integer("group", 1);
  const WindowAttributes w = read_windows(c, true, true);
  const Expr x = c.input(0), kernel = c.input(1);
  if (groups < 1 || groups > std::numeric_limits<int32_t>::max())
    c.fail(codes::wrong_attribute, "the attribute 'group' is " + std::to_string(groups));
  if (c.rank(1) != c.rank(0))
    c.fail(codes::wrong_node, "the input has " + std::to_string(c.rank(0)) + " dimensions, but the kernel has " +
                                  std::to_string(c.rank(1)));
  const Shape& shape = c.shape(1);
  for (size_t d = 0; d < w.kernel.size(); ++d)
    if (relax::different_extents(shape[d + 2], ir::int64(w.kernel[d])))
      c.fail(codes::wrong_shape, "the attribute 'kernel_shape' has " + std::to_string(w.kernel[d]) + " at " +
                                     std::to_string(d) + ", but the kernel is " + relax::text_of(shape));
  Expr y = c.call(ops::conv, {x, kernel}, attributes_with<ops::ConvAttributes>([&](ops::ConvAttributes& a) {
                    a.strides = w.strides;
                    a.padding = w.auto_pad == "NOTSET" ? w.pads : std::vector<int64_t>{};
                    a.dilation = w.dilations;
                    a.groups = groups;
                    a.auto_pad = w.auto_pad;
                  }));
  if (c.has(2)) {
    if (c.rank(2) != 1 || relax::different_extents(c.shape(2)[0], shape[0]))
      c.fail(codes::wrong_shape, "the bias is " + relax::text_of(c.shape(2)) + ", but the kernel " +
                                     relax::text_of(shape) + " gives " + relax::text_of(shape[0]) + " channels");
    Shape column(static_cast<size_t>(c.rank(0)) - 1, ir::int64(1));
    column[0] = shape[0];
    y = c.call(ops::add, {y, c.reshape(c.input(2), std::move(column))});
  }
  c.set(y);
}

const OperatorRow linear_rows[] = {
    {"MatMul", {1, 9, 13}, 2, 2, 1, matmul},
    {"Gemm", {6, 7, 9, 11, 13}, 2, 3, 1, gemm},
    {"Conv", {1, 11, 22}, 2, 3, 1, conv},
};

}  // namespace

Table linear() { return linear_rows; }

}  // namespace lathe::onnx::operators
