// Reductions over axes, and positions of extremes.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"

namespace lathe::onnx::operators {

namespace {

// What is reduced: axes in [0, rank), and whether they stay with extent 1. Nothing: the node does nothing.
struct Reduction {
  std::vector<int64_t> axes;
  bool keepdims = true;
  relax::AttributesRef attributes(bool keep) const {
    return ir::make<ops::ReduceAttributes>(std::optional(axes), keep);
  }
  relax::AttributesRef attributes() const { return attributes(keepdims); }
};

// Axes are an attribute before `input_since`, then an input. None means all, or none where the node says so.
std::optional<Reduction> read_reduction(NodeImport& c, int64_t input_since) {
  Reduction r;
  r.keepdims = c.attributes.flag("keepdims", true);
  const int64_t rank = c.rank(0);
  std::optional<std::vector<int64_t>> axes;
  bool noop = false;
  if (c.version < input_since) {
    axes = c.attributes.integers("axes");
    if (c.has(1)) c.fail(codes::wrong_node, "axes are an attribute in this opset, but the node has a second input");
  } else {
    noop = c.attributes.flag("noop_with_empty_axes", false);
    if (c.has(1)) axes = c.constants(1, "the axes of the reduction");
  }
  if (axes && axes->empty()) axes.reset();
  if (!axes && noop) return std::nullopt;
  if (axes) r.axes = c.axes(*axes, rank);
  else
    for (int64_t d = 0; d < rank; ++d) r.axes.push_back(d);
  return r;
}

using Formula = Expr (*)(NodeImport&, const Expr& x, const Reduction& r);

template <const relax::Operator& op>
Expr plain(NodeImport& c, const Expr& x, const Reduction& r) {
  return c.call(op, {x}, r.attributes());
}
Expr l1(NodeImport& c, const Expr& x, const Reduction& r) {
  return c.call(ops::sum, {c.call(ops::abs, {x})}, r.attributes());
}
Expr sum_square(NodeImport& c, const Expr& x, const Reduction& r) {
  return c.call(ops::sum, {c.call(ops::multiply, {x, x})}, r.attributes());
}
Expr l2(NodeImport& c, const Expr& x, const Reduction& r) { return c.call(ops::sqrt, {sum_square(c, x, r)}); }
Expr log_sum(NodeImport& c, const Expr& x, const Reduction& r) {
  return c.call(ops::log, {c.call(ops::sum, {x}, r.attributes())});
}

// log(sum(exp(x - m))) + m, m the largest element where it is finite, so that nothing overflows.
Expr log_sum_exp(NodeImport& c, const Expr& x, const Reduction& r) {
  const DType dtype = relax::as_tensor(x)->dtype;
  const Expr largest = c.call(ops::max, {x}, r.attributes(true));
  const Expr m = c.call(ops::where, {c.call(ops::isfinite, {largest}), largest, c.scalar(dtype, 0)});
  const Expr powers = c.call(ops::exp, {c.call(ops::subtract, {x, m})});
  const Expr sum = c.call(ops::log, {c.call(ops::sum, {powers}, r.attributes())});
  return c.call(ops::add, {sum, c.reshape(m, *relax::as_tensor(sum)->shape)});
}

// Formulas of several steps are computed in float32 for narrower floats, and in float64 for integers.
template <Formula formula, int input_since, bool several_steps, bool needs_float>
void reduce(NodeImport& c) {
  const auto reduction = read_reduction(c, input_since);
  const Expr x = c.input(0);
  const DType dtype = c.dtype(0);
  if (!reduction) {
    // Without axes every element is reduced alone.
    Reduction none;
    none.keepdims = true;
    const bool changes = several_steps;
    c.set(changes ? c.cast(formula(c, c.cast(x, needs_float && !dtype.is_floating() ? DType::float_(64) : dtype), none), dtype)
                  : x);
    return;
  }
  DType wide = dtype;
  if (several_steps && dtype.is_floating()) wide = relax::accumulation_dtype(dtype);
  if (needs_float && !dtype.is_floating()) wide = DType::float_(64);
  c.set(c.cast(formula(c, c.cast(x, wide), *reduction), dtype));
}

template <const relax::Operator& op>
void arg_reduce(NodeImport& c) {
  const int64_t axis = c.axis(c.attributes.integer("axis", 0), c.rank(0));
  const bool keepdims = c.attributes.flag("keepdims", true);
  const bool last = c.version >= 12 && c.attributes.flag("select_last_index", false);
  c.set(c.call(op, {c.input(0)}, ir::make<ops::ArgReduceAttributes>(std::optional(axis), keepdims, last)));
}

const OperatorRow reduce_rows[] = {
    {"ReduceSum", {1, 11, 13}, 1, 2, 1, reduce<plain<ops::sum>, 13, false, false>},
    {"ReduceMean", {1, 11, 13, 18}, 1, 2, 1, reduce<plain<ops::mean>, 18, false, false>},
    {"ReduceMax", {1, 11, 12, 13, 18, 20}, 1, 2, 1, reduce<plain<ops::max>, 18, false, false>},
    {"ReduceMin", {1, 11, 12, 13, 18, 20}, 1, 2, 1, reduce<plain<ops::min>, 18, false, false>},
    {"ReduceProd", {1, 11, 13, 18}, 1, 2, 1, reduce<plain<ops::prod>, 18, false, false>},
    {"ReduceL1", {1, 11, 13, 18}, 1, 2, 1, reduce<l1, 18, true, false>},
    {"ReduceL2", {1, 11, 13, 18}, 1, 2, 1, reduce<l2, 18, true, true>},
    {"ReduceLogSum", {1, 11, 13, 18}, 1, 2, 1, reduce<log_sum, 18, true, true>},
    {"ReduceLogSumExp", {1, 11, 13, 18}, 1, 2, 1, reduce<log_sum_exp, 18, true, true>},
    {"ReduceSumSquare", {1, 11, 13, 18}, 1, 2, 1, reduce<sum_square, 18, true, false>},
    {"ArgMax", {1, 11, 12, 13}, 1, 1, 1, arg_reduce<ops::argmax>},
    {"ArgMin", {1, 11, 12, 13}, 1, 1, 1, arg_reduce<ops::argmin>},
};

}  // namespace

Table reduce() { return reduce_rows; }

}  // namespace lathe::onnx::operators
