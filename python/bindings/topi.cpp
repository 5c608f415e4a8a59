#include "nodes.h"
#include "te/einsum.h"
#include "te/scan.h"
#include "te/topi/arrange.h"
#include "te/topi/broadcast.h"
#include "te/topi/conv.h"
#include "te/topi/elementwise.h"
#include "te/topi/pad.h"
#include "te/topi/pool.h"
#include "te/topi/reduction.h"

namespace lathe::python {
namespace {

using ir::Expr;
using te::Tensor;
namespace topi = te::topi;

template <class Row>
nb::list rows_of(std::span<const Row> rows) {
  nb::list list;
  for (const Row& row : rows) list.append(nb::make_tuple(std::string(row.name), std::string(row.meaning)));
  return list;
}

template <class Row>
const Row& row_named(std::span<const Row> rows, const std::string& name) {
  for (const Row& row : rows)
    if (row.name == name) return row;
  throw nb::value_error(("there is no operator '" + name + "'").c_str());
}

std::vector<Expr> extents_of(nb::handle object) {
  std::vector<Expr> shape = exprs_of(object);
  for (Expr& extent : shape) extent = ir::cast(ir::DType::int64(), extent);
  return shape;
}

// A number takes the tensor's dtype.
Tensor binary(const std::string& name, nb::handle a, nb::handle b) {
  const topi::BinaryRow& row = row_named(topi::binary_rows(), name);
  const bool left = nb::isinstance<Tensor>(a), right = nb::isinstance<Tensor>(b);
  if (left && right) return topi::binary(row, nb::cast<Tensor>(a), nb::cast<Tensor>(b));
  const auto tensor = nb::cast<Tensor>(left ? a : b);
  const Expr other = expr_of(left ? b : a, tensor.dtype());
  if (other->dtype != tensor.dtype())
    topi::refuse_shapes(name + " of " + tensor.dtype().str() + " and " + other->dtype.str() +
                        ": operands have one dtype");
  return topi::map(tensor, [&](const Expr& x) { return left ? row.of(x, other) : row.of(other, x); }, "T_" + name);
}

topi::Window window_of(int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after) {
  topi::Window window;
  window.stride = stride;
  window.dilation = dilation;
  window.kernel = ir::int64(kernel);
  window.pad_begin = ir::int64(before);
  window.pad_end = ir::int64(after);
  return window;
}

std::vector<Expr> positions(const Tensor& x, const topi::Layout& layout, const std::vector<topi::Window>& windows) {
  std::vector<Expr> extents;
  for (size_t d = 0; d < windows.size(); ++d) {
    const topi::Window& w = windows[d];
    const Expr room = x.shape()[layout.spatial(d)] + w.pad_begin + w.pad_end - w.reach();
    extents.push_back(ir::floordiv(room, ir::int64(w.stride)) + 1);
    if (ir::as_int(extents.back()) && *ir::as_int(extents.back()) < 1)
      topi::refuse_shapes("the window is larger than the padded input");
  }
  return extents;
}

Tensor conv2d(const Tensor& x, const Tensor& kernel, const std::vector<std::vector<int64_t>>& windows,
              bool channels_last, int64_t groups) {
  topi::ConvOptions options;
  options.layout = {.channels_last = channels_last, .rank = x.ndim()};
  if (x.ndim() != kernel.ndim() || x.ndim() != windows.size() + 2 || x.dtype() != kernel.dtype())
    topi::refuse_shapes("a convolution takes an input and a kernel of one rank and dtype");
  for (const auto& w : windows) options.windows.push_back(window_of(w[0], w[1], w[2], w[3], w[4]));
  options.groups = groups;
  options.out_channels = kernel.shape()[0];
  options.out_dtype = options.accumulate = x.dtype();
  std::vector<Expr> shape(x.ndim());
  shape[0] = x.shape()[0];
  shape[options.layout.channel()] = options.out_channels;
  const std::vector<Expr> extents = positions(x, options.layout, options.windows);
  for (size_t d = 0; d < extents.size(); ++d) shape[options.layout.spatial(d)] = extents[d];
  return topi::conv(x, kernel, shape, options);
}

Tensor pool2d(const std::string& kind, const Tensor& x, const std::vector<std::vector<int64_t>>& windows,
              bool channels_last, bool count_include_pad) {
  topi::PoolOptions options;
  options.layout = {.channels_last = channels_last, .rank = x.ndim()};
  if (x.ndim() != windows.size() + 2) topi::refuse_shapes("the pool's windows do not fit the input's rank");
  for (const auto& w : windows) options.windows.push_back(window_of(w[0], w[1], w[2], w[3], w[4]));
  std::vector<Expr> shape = x.shape();
  const std::vector<Expr> extents = positions(x, options.layout, options.windows);
  for (size_t d = 0; d < extents.size(); ++d) shape[options.layout.spatial(d)] = extents[d];
  if (kind == "max") return topi::max_pool(x, shape, options);
  return topi::avg_pool(x, shape, options, count_include_pad, x.dtype());
}

Tensor pad(const Tensor& x, nb::handle before, nb::handle after, nb::handle value) {
  const std::vector<Expr> low = extents_of(before), high = extents_of(after);
  if (low.size() != x.ndim() || high.size() != x.ndim())
    topi::refuse_shapes("a pad has an amount before and after each of " + std::to_string(x.ndim()) + " dimensions");
  std::vector<Expr> shape;
  for (size_t d = 0; d < x.ndim(); ++d) shape.push_back(low[d] + x.shape()[d] + high[d]);
  return topi::pad_constant(x, low, shape, expr_of(value, x.dtype()));
}

std::vector<Tensor> extern_op(nb::list outputs, const std::vector<Tensor>& inputs, const nb::callable& build,
                              const std::string& name) {
  std::vector<std::pair<std::vector<Expr>, ir::DType>> made;
  for (nb::handle output : outputs)
    made.emplace_back(extents_of(nb::object(output[0])), dtype_named(utf8_of(nb::object(output[1]))));
  return te::extern_op(
      made, inputs,
      [&](const std::vector<ir::Buffer>& in, const std::vector<ir::Buffer>& out) -> tir::Stmt {
        nb::list ins, outs;
        for (const ir::Buffer& buffer : in) ins.append(node_object(buffer));
        for (const ir::Buffer& buffer : out) outs.append(node_object(buffer));
        const ir::NodeRef body = node_of(nb::object(build(ins, outs)));
        if (body && body->node_class().family == tir::StmtNode::family) return ir::detail::narrow<tir::StmtNode>(body);
        if (body && body->node_class().family == ir::ExprNode::family)
          return ir::make<tir::Evaluate>(ir::detail::narrow<ir::ExprNode>(body));
        throw nb::type_error("the function of an extern operation gives a statement, or a call");
      },
      name);
}

std::vector<Tensor> scan(const std::vector<std::vector<Tensor>>& states, const std::string& name) {
  std::vector<te::ScanState> list;
  for (const auto& s : states) list.push_back({s.at(0), s.at(1), s.at(2)});
  return te::scan(list, name);
}

}  // namespace

void bind_topi(nb::module_& m) {
  using nb::arg;
  m.def("topi_unary_rows", [] { return rows_of(topi::unary_rows()); });
  m.def("topi_binary_rows", [] { return rows_of(topi::binary_rows()); });
  m.def(
      "topi_unary",
      [](const std::string& name, const Tensor& x) { return topi::unary(row_named(topi::unary_rows(), name), x); },
      arg("name"), arg("x"));
  m.def("topi_binary", binary, arg("name"), arg("a"), arg("b"));
  m.def("topi_where", topi::where, arg("condition"), arg("a"), arg("b"));
  m.def(
      "topi_cast",
      [](const Tensor& x, const std::string& dtype) {
        return topi::map(x, [&](const Expr& v) { return ir::cast(dtype_named(dtype), v); }, "T_cast");
      },
      arg("x"), arg("dtype"));
  m.def("topi_transpose", topi::transpose, arg("x"), arg("axes"));
  m.def(
      "topi_reshape", [](const Tensor& x, nb::handle shape) { return topi::reshape(x, extents_of(shape)); }, arg("x"),
      arg("shape"));
  m.def("topi_expand_dims", topi::expand_dims, arg("x"), arg("axis"), arg("count"));
  m.def("topi_squeeze", topi::squeeze, arg("x"), arg("axes"));
  m.def(
      "topi_broadcast_to", [](const Tensor& x, nb::handle shape) { return topi::broadcast_to(x, extents_of(shape)); },
      arg("x"), arg("shape"));
  m.def("topi_flip", topi::flip, arg("x"), arg("axis"));
  m.def("topi_concatenate", topi::concatenate, arg("tensors"), arg("axis"));
  m.def("topi_stack", topi::stack, arg("tensors"), arg("axis"));
  m.def("topi_take", topi::take, arg("x"), arg("indices"), arg("axis"));
  m.def("topi_strided_slice", topi::strided_slice, arg("x"), arg("begin"), arg("end"), arg("strides"));
  m.def("topi_reduce", topi::reduce, arg("kind"), arg("x"), arg("axes"), arg("keepdims"));
  m.def("topi_arg_extreme", topi::arg_extreme, arg("x"), arg("axis"), arg("keepdims"), arg("largest"));
  m.def("topi_softmax", topi::softmax, arg("x"), arg("axis"), arg("logarithm"));
  m.def("topi_dense", topi::dense, arg("x"), arg("weight"), arg("bias").none());
  m.def("topi_batch_product", topi::batch_product, arg("a"), arg("b"), arg("transpose_a"), arg("transpose_b"));
  m.def("topi_conv2d", conv2d, arg("x"), arg("kernel"), arg("windows"), arg("channels_last"), arg("groups"));
  m.def("topi_pool2d", pool2d, arg("kind"), arg("x"), arg("windows"), arg("channels_last"), arg("count_include_pad"));
  m.def("topi_pad", pad, arg("x"), arg("before"), arg("after"), arg("value"));
  m.def("te_einsum", te::einsum, arg("subscripts"), arg("operands"));
  m.def("te_extern", extern_op, arg("outputs"), arg("inputs"), arg("build"), arg("name"));
  m.def("te_scan", scan, arg("states"), arg("name"));
}

}  // namespace lathe::python
