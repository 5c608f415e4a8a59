// Products: matrices and convolutions.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/operators/windows.h"
#include "ops/build.h"

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
    if (!relax::broadcasts_to(c.shape(2), product, nullptr))
      c.fail(codes::wrong_shape,
             "cannot broadcast C of " + relax::text_of(c.shape(2)) + " to " + relax::text_of(product));
    Expr addend = scaled(c, c.input(2), beta, "beta");
    // Symbolic extents might stretch the product instead.
    if (const auto both = relax::broadcast_shapes(c.shape(2), product);
        !both.ok() || !relax::same_shape(*both, product))
      addend = c.call(ops::broadcast_to, {addend, ir::make<relax::ShapeExpr>(product)});
    y = c.call(ops::add, {y, addend});
  }
  c.set(y);
}

void conv(NodeImport& c) { c.set(convolution(c, c.input(0), c.input(1), c.has(2) ? c.input(2) : Expr())); }

void einsum(NodeImport& c) {
  std::vector<Expr> operands;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (c.dtype(i) != c.dtype(0)) c.fail(codes::wrong_node, "the operands of Einsum have different types");
    operands.push_back(c.input(i));
  }
  c.set(ops::build::einsum(c.builder(), operands, c.attributes.text("equation", "")));
}

// Extents are (extent - 1) * stride + output_padding + reach - pads; where `output_shape` gives them, the pads follow.
void conv_transpose(NodeImport& c) {
  ops::build::TransposedConvolution how;
  how.groups = c.attributes.integer("group", 1);
  const WindowAttributes w = read_windows(c, true, true);
  const int64_t spatial = spatial_rank(c);
  const auto ones = [&](const std::vector<int64_t>& given) {
    return given.empty() ? std::vector<int64_t>(static_cast<size_t>(spatial), 1) : given;
  };
  const auto spatial_list = [&](std::string_view name) {
    auto given = c.attributes.integers(name).value_or(std::vector<int64_t>{});
    // Batch and channels may stand before.
    if (static_cast<int64_t>(given.size()) == spatial + 2) given.erase(given.begin(), given.begin() + 2);
    for (const int64_t each : given)
      if (each < 0 || each > std::numeric_limits<int32_t>::max())
        c.fail(codes::wrong_attribute,
               "the attribute '" + std::string(name) + "' has the value " + std::to_string(each));
    if (!given.empty() && static_cast<int64_t>(given.size()) != spatial)
      c.fail(codes::wrong_attribute, "the attribute '" + std::string(name) + "' has " + std::to_string(given.size()) +
                                         " values for " + std::to_string(spatial) + " spatial dimensions");
    return given;
  };
  how.strides = ones(w.strides);
  how.dilations = ones(w.dilations);
  const auto more = spatial_list("output_padding"), wanted = spatial_list("output_shape");
  if (c.rank(1) != c.rank(0))
    c.fail(codes::wrong_node, "the input has " + std::to_string(c.rank(0)) + " dimensions, but the kernel has " +
                                  std::to_string(c.rank(1)));
  if (how.groups < 1 || how.groups > std::numeric_limits<int32_t>::max())
    c.fail(codes::wrong_attribute, "the attribute 'group' is " + std::to_string(how.groups));
  const Shape &own = c.shape(0), &kernel = c.shape(1);
  for (int64_t d = 0; d < spatial; ++d) {
    const auto at = static_cast<size_t>(d);
    const ir::Expr reach = (kernel[at + 2] - 1) * how.dilations[at] + 1;
    const ir::Expr full = (own[at + 2] - 1) * how.strides[at] + reach + (more.empty() ? 0 : more[at]);
    if (!wanted.empty() || w.auto_pad.starts_with("SAME")) {
      const ir::Expr out = wanted.empty() ? own[at + 2] * how.strides[at] : ir::int64(wanted[at]);
      // Less than nothing where kernels do not reach from one element to the next: zeros come in front then.
      const ir::Expr total = relax::simplified(full - out), half = ir::floordiv(total, ir::int64(2));
      how.pad_begin.push_back(relax::simplified(w.auto_pad == "SAME_UPPER" ? half : total - half));
      how.out.push_back(relax::simplified(out));
      continue;
    }
    const bool has_pads = !w.pads.empty() && w.auto_pad == "NOTSET";
    how.pad_begin.push_back(ir::int64(has_pads ? w.pads[at] : 0));
    const int64_t end = has_pads ? w.pads[at + static_cast<size_t>(spatial)] : 0;
    how.out.push_back(relax::non_negative(full - how.pad_begin.back() - end));
  }
  Expr y = ops::build::conv_transpose(c.builder(), c.input(0), c.input(1), how);
  if (c.has(2)) {
    Shape column{c.shape(2).at(0)};
    for (int64_t d = 0; d < spatial; ++d) column.push_back(ir::int64(1));
    y = c.call(ops::add, {y, c.reshape(c.input(2), std::move(column))});
  }
  c.set(y);
}

void determinant(NodeImport& c) {
  if (c.rank(0) < 2) c.fail(codes::wrong_node, "Det takes matrices, but its input has fewer than two dimensions");
  c.set(ops::build::determinant(c.builder(), c.input(0)));
}

const OperatorRow linear_rows[] = {
    {"MatMul", {1, 9, 13}, 2, 2, 1, matmul},    {"Gemm", {6, 7, 9, 11, 13}, 2, 3, 1, gemm},
    {"Conv", {1, 11, 22}, 2, 3, 1, conv},       {"ConvTranspose", {1, 11, 22}, 2, 3, 1, conv_transpose},
    {"Einsum", {12}, 1, any_number, 1, einsum}, {"Det", {11, 22}, 1, 1, 1, determinant},
};

}  // namespace

Expr convolution(NodeImport& c, const Expr& x, const Expr& kernel, const Expr& bias) {
  const int64_t groups = c.attributes.integer("group", 1);
  const WindowAttributes w = read_windows(c, true, true);
  if (groups < 1 || groups > std::numeric_limits<int32_t>::max())
    c.fail(codes::wrong_attribute, "the attribute 'group' is " + std::to_string(groups));
  const auto &own = *relax::as_tensor(x), &given = *relax::as_tensor(kernel);
  if (given.ndim != own.ndim)
    c.fail(codes::wrong_node, "the input has " + std::to_string(own.ndim) + " dimensions, but the kernel has " +
                                  std::to_string(given.ndim));
  const Shape& shape = *given.shape;
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
  if (!bias) return y;
  const Shape& channels = *relax::as_tensor(bias)->shape;
  if (channels.size() != 1 || relax::different_extents(channels[0], shape[0]))
    c.fail(codes::wrong_shape, "the bias is " + relax::text_of(channels) + ", but the kernel " + relax::text_of(shape) +
                                   " gives " + relax::text_of(shape[0]) + " channels");
  Shape column(static_cast<size_t>(own.ndim) - 1, ir::int64(1));
  column[0] = shape[0];
  return c.call(ops::add, {y, c.reshape(bias, std::move(column))});
}

Table linear() { return linear_rows; }

}  // namespace lathe::onnx::operators
