#include "te/topi/reduction.h"

#include "arith/analyzer.h"
#include "te/topi/arrange.h"
#include "te/topi/broadcast.h"
#include "te/topi/elementwise.h"
#include "te/topi/matmul.h"

namespace lathe::te::topi {
namespace {

// The dimensions that are reduced over, the shape that is left, and the index of an element of x.
struct Reduced {
  std::vector<bool> gone;
  std::vector<Expr> shape;
  std::vector<IterVar> axes;
  bool keepdims = false;

  std::vector<Expr> index(const std::vector<Expr>& at) const {
    std::vector<Expr> own;
    size_t next = 0, axis = 0;
    for (const bool reduced : gone) {
      own.push_back(reduced ? Expr(axes[axis++]->var) : at[next]);
      if (!reduced || keepdims) ++next;
    }
    return own;
  }
};

Reduced reduced(const Tensor& x, const std::vector<int64_t>& axes, bool keepdims) {
  Reduced result{.gone = std::vector<bool>(x.ndim(), axes.empty()), .shape = {}, .axes = {}, .keepdims = keepdims};
  for (const int64_t axis : axes) result.gone[axis_of(axis, x.ndim())] = true;
  for (size_t d = 0; d < x.ndim(); ++d) {
    if (result.gone[d]) result.axes.push_back(reduce_axis(ir::int64(0), x.shape()[d], "k" + std::to_string(d)));
    if (!result.gone[d])
      result.shape.push_back(x.shape()[d]);
    else if (keepdims)
      result.shape.push_back(ir::int64(1));
  }
  return result;
}

}  // namespace

Tensor reduce(const std::string& kind, const Tensor& x, const std::vector<int64_t>& axes, bool keepdims) {
  const bool logical = kind == "all" || kind == "any";
  if (logical && !x.dtype().is_bool()) refuse_shapes(kind + " is of bool, not of " + x.dtype().str());
  const Reduced r = reduced(x, axes, keepdims);
  if (r.axes.empty()) return map(x, [](const Expr& v) { return v; }, "T_" + kind);
  return compute(
      r.shape,
      [&](const std::vector<Expr>& at) {
        const Expr element = x(r.index(at));
        if (kind == "sum") return sum(element, r.axes);
        if (kind == "prod") return prod(element, r.axes);
        return kind == "max" || kind == "any" ? max(element, r.axes) : min(element, r.axes);
      },
      {x}, "T_" + kind);
}

Tensor arg_extreme(const Tensor& x, int64_t axis, bool keepdims, bool largest) {
  const Reduced r = reduced(x, {axis}, keepdims);
  const size_t d = axis_of(axis, x.ndim());
  const ir::DType index = ir::DType::int_(32);
  const auto better = [&](const Expr& a, const Expr& b) { return largest ? ir::gt(a, b) : ir::lt(a, b); };
  const ir::CommReducer reducer = comm_reducer(
      [&](const std::vector<Expr>& a, const std::vector<Expr>& b) {
        // -1 is the neutral element's index: any other is better.
        const Expr none = ir::constant(index, -1);
        const Expr first = ir::logical_or(
            ir::eq(b[0], none),
            ir::logical_and(
                ir::ne(a[0], none),
                ir::logical_or(better(a[1], b[1]), ir::logical_and(ir::eq(a[1], b[1]), ir::lt(a[0], b[0])))));
        return std::vector<Expr>{ir::select(first, a[0], b[0]), ir::select(first, a[1], b[1])};
      },
      [&](const std::vector<ir::DType>& types) {
        return std::vector<Expr>{ir::constant(index, -1), largest ? ir::min_value(types[1]) : ir::max_value(types[1])};
      },
      {index, x.dtype()});
  const std::vector<Tensor> both = compute_all(
      r.shape,
      [&](const std::vector<Expr>& at) {
        const std::vector<Expr> own = r.index(at);
        const std::vector<Expr> sources = {ir::cast(index, own[d]), x(own)};
        std::vector<Expr> bodies;
        for (const int64_t k : {0, 1})
          bodies.push_back(ir::make<ir::Reduce>(reducer, r.axes, sources, Expr(), k, std::vector<Expr>{}));
        return bodies;
      },
      {x}, largest ? "T_argmax_red" : "T_argmin_red");
  return map(both[0], [](const Expr& v) { return v; }, largest ? "T_argmax" : "T_argmin");
}

Tensor softmax(const Tensor& x, int64_t axis, bool logarithm) {
  const size_t d = axis_of(axis, x.ndim());
  const auto kept = static_cast<int64_t>(d);
  const Tensor largest = reduce("max", x, {kept}, true);
  const auto shifted = [](const std::vector<Expr>& v) { return ir::sub(v[0], v[1]); };
  const auto exponential = [&](const std::vector<Expr>& v) { return ir::call(ir::intrinsic::exp, shifted(v)); };
  const Tensor exps = map({x, largest}, x.shape(), exponential, "T_softmax_exp");
  const Tensor total = reduce("sum", exps, {kept}, true);
  if (!logarithm)
    return map({exps, total}, x.shape(), [](const std::vector<Expr>& v) { return ir::div(v[0], v[1]); }, "T_softmax");
  return map(
      {x, largest, total}, x.shape(),
      [&](const std::vector<Expr>& v) { return ir::sub(shifted(v), ir::call(ir::intrinsic::log, v[2])); },
      "T_log_softmax");
}

Tensor dense(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  if (x.ndim() < 1 || weight.ndim() != 2 || x.dtype() != weight.dtype())
    refuse_shapes("dense takes x [batch…, in] and weight [out, in] of one dtype");
  if (!arith::Analyzer().can_prove_equal(x.shape().back(), weight.shape()[1]))
    refuse_shapes("the last dimensions of x and weight differ");
  std::vector<Expr> shape(x.shape().begin(), x.shape().end() - 1);
  shape.push_back(weight.shape()[0]);
  const IterVar k = reduce_axis(ir::int64(0), x.shape().back(), "k");
  const Tensor product = compute(
      shape,
      [&](const std::vector<Expr>& at) {
        std::vector<Expr> own(at.begin(), at.end() - 1);
        own.push_back(k->var);
        return sum(ir::mul(x(std::move(own)), weight({at.back(), k->var})), {k});
      },
      {x, weight}, "T_matmul_NT");
  if (!bias) return product;
  for (const BinaryRow& row : binary_rows())
    if (row.name == "add") return binary(row, product, *bias);
  return product;
}

Tensor batch_product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  if (a.ndim() < 2 || b.ndim() < 2 || a.dtype() != b.dtype())
    refuse_shapes("a matrix product is of two tensors of at least two dimensions and of one dtype");
  const size_t ra = a.ndim(), rb = b.ndim();
  const Expr m = a.shape()[ra - (transpose_a ? 1 : 2)], ka = a.shape()[ra - (transpose_a ? 2 : 1)];
  const Expr n = b.shape()[rb - (transpose_b ? 2 : 1)], kb = b.shape()[rb - (transpose_b ? 1 : 2)];
  if (!arith::Analyzer().can_prove_equal(ka, kb)) refuse_shapes("the summed dimensions of a matrix product differ");
  std::vector<Expr> shape =
      broadcast_shapes({a.shape().begin(), a.shape().end() - 2}, {b.shape().begin(), b.shape().end() - 2});
  const size_t batch = shape.size();
  shape.push_back(m);
  shape.push_back(n);
  const IterVar k = reduce_axis(ir::int64(0), ka, "k");
  const auto element = [&](const Tensor& x, const std::vector<Expr>& at, const Expr& row, const Expr& column,
                           bool turned) {
    std::vector<Expr> own;
    const size_t leading = x.ndim() - 2, offset = batch - leading;
    for (size_t d = 0; d < leading; ++d)
      own.push_back(broadcast_index(x.shape()[d], shape[offset + d], at[offset + d]));
    own.push_back(turned ? column : row);
    own.push_back(turned ? row : column);
    return x(std::move(own));
  };
  return compute(
      shape,
      [&](const std::vector<Expr>& at) {
        return sum(
            ir::mul(element(a, at, at[batch], k->var, transpose_a), element(b, at, k->var, at[batch + 1], transpose_b)),
            {k});
      },
      {a, b}, "T_matmul");
}

}  // namespace lathe::te::topi
