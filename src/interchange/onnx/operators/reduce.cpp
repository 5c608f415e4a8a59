// Reductions over axes, and positions of extremes.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/run_time_axes.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace {

// What is reduced: axes in [0, rank), and whether they stay with extent 1.
struct Reduction {
  std::vector<int64_t> axes;
  std::optional<std::vector<ir::Expr>> chosen;  // instead, whether each dimension is, where the model computes the axes
  int64_t rank = 0;                             // of a result without those that are
  bool keepdims = true;
};

// Axes of which even the number is known only when the model runs: then the declared rank says how many are left.
void read_open_axes(NodeImport& c, Reduction& r, bool noop) {
  const int64_t rank = c.rank(0);
  const auto left = c.declared_rank(0);
  if (!r.keepdims && !left)
    c.fail(codes::not_constant,
           "the number of axes must be known when compiling, or the rank of the result be declared");
  const auto [axes, length] = c.integers_up_to(1, rank, rank);
  c.expect_axes(1, axes, rank, length);
  r.chosen = chosen_by(axes, rank);
  ir::Expr count = ir::int64(0);
  for (ir::Expr& each : *r.chosen) {
    if (!noop) each = ir::logical_or(ir::eq(length, ir::int64(0)), each);
    count = count + ir::select(each, ir::int64(1), ir::int64(0));
  }
  if (r.keepdims) return;
  r.rank = std::min(*left, rank);
  ops::build::expect_equal(c.builder(), relax::simplified(count), ir::int64(rank - r.rank));
}

// Axes are an attribute before `input_since`, then an input. None means all; nothing is reduced (no result) where the
// node says that none means none.
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
    if (c.has(1) && c.has_open_length(1)) {
      read_open_axes(c, r, noop);
    } else if (c.has(1)) {
      const Integers given = c.integers(1);
      axes = constants_of(given);
      if (!axes) {
        c.expect_axes(1, given, rank);
        r.chosen = chosen_by(given, rank);
      }
      r.rank = std::max<int64_t>(rank - static_cast<int64_t>(given.size()), 0);
    }
  }
  if (r.chosen) return r;
  if (axes && axes->empty()) axes.reset();
  if (!axes && noop) return std::nullopt;
  if (axes)
    r.axes = c.axes(*axes, rank);
  else
    for (int64_t d = 0; d < rank; ++d) r.axes.push_back(d);
  return r;
}

ir::Expr sum_of(ir::Expr x, std::vector<ir::IterVar> axes) { return te::sum(std::move(x), std::move(axes)); }
ir::Expr zero_of(DType dtype) { return ir::constant(dtype, 0); }
ir::Expr one_of(DType dtype) { return ir::constant(dtype, 1); }
ir::Expr lowest_of(DType dtype) {
  return dtype.is_floating() ? ir::constant(dtype, -std::numeric_limits<double>::infinity()) : ir::min_value(dtype);
}
ir::Expr highest_of(DType dtype) { return dtype.is_floating() ? ir::infinity(dtype) : ir::max_value(dtype); }

// One of the reductions that loops know: as an operator, and for axes known when the model runs.
struct Kind {
  const relax::Operator& op;
  ir::Expr (*reduce)(ir::Expr, std::vector<ir::IterVar>);
  ir::Expr (*identity)(DType);
  bool accumulates, is_mean;
};
const Kind sum_kind{ops::sum, sum_of, zero_of, true, false}, mean_kind{ops::mean, sum_of, zero_of, true, true},
    prod_kind{ops::prod, te::prod, one_of, true, false}, max_kind{ops::max, te::max, lowest_of, false, false},
    min_kind{ops::min, te::min, highest_of, false, false};

Expr reduced(NodeImport& c, const Kind& kind, const Expr& x, const Reduction& r, bool keepdims) {
  if (!r.chosen) return c.call(kind.op, {x}, ir::make<ops::ReduceAttributes>(std::optional(r.axes), keepdims));
  const DType dtype = relax::as_tensor(x)->dtype;
  const DType wide = kind.accumulates ? relax::accumulation_dtype(dtype) : dtype;
  const Shape own = *relax::as_tensor(x)->shape;
  const Expr kept = reduce_at_run_time(c, x, *r.chosen, {kind.reduce, kind.identity, wide, kind.is_mean});
  return keepdims ? kept : c.reshape(kept, without_chosen(own, *r.chosen, r.rank));
}

using Formula = Expr (*)(NodeImport&, const Expr& x, const Reduction& r);

template <const Kind& kind>
Expr plain(NodeImport& c, const Expr& x, const Reduction& r) {
  return reduced(c, kind, x, r, r.keepdims);
}
Expr l1(NodeImport& c, const Expr& x, const Reduction& r) {
  return reduced(c, sum_kind, c.call(ops::abs, {x}), r, r.keepdims);
}
Expr sum_square(NodeImport& c, const Expr& x, const Reduction& r) {
  return reduced(c, sum_kind, c.call(ops::multiply, {x, x}), r, r.keepdims);
}
Expr l2(NodeImport& c, const Expr& x, const Reduction& r) { return c.call(ops::sqrt, {sum_square(c, x, r)}); }
Expr log_sum(NodeImport& c, const Expr& x, const Reduction& r) {
  return c.call(ops::log, {reduced(c, sum_kind, x, r, r.keepdims)});
}

// log(sum(exp(x - m))) + m, m the largest element where it is finite, so that nothing overflows.
Expr log_sum_exp(NodeImport& c, const Expr& x, const Reduction& r) {
  const DType dtype = relax::as_tensor(x)->dtype;
  const Expr largest = reduced(c, max_kind, x, r, true);
  const Expr m = c.call(ops::where, {c.call(ops::isfinite, {largest}), largest, c.scalar(dtype, 0)});
  const Expr powers = c.call(ops::exp, {c.call(ops::subtract, {x, m})});
  const Expr sum = c.call(ops::log, {reduced(c, sum_kind, powers, r, r.keepdims)});
  return c.call(ops::add, {sum, c.reshape(m, *relax::as_tensor(sum)->shape)});
}

// Formulas of several steps are computed in float32 for narrower floats, and in float64 for integers.
template <Formula formula, int input_since, bool several_steps, bool needs_float>
void reduce(NodeImport& c) {
  std::optional<Reduction> reduction = read_reduction(c, input_since);
  const Expr x = c.input(0);
  if (!reduction && !several_steps) return c.set(x);
  if (!reduction) reduction.emplace();  // every element is reduced alone
  const DType dtype = c.dtype(0);
  DType wide = dtype;
  if (several_steps && dtype.is_floating()) wide = relax::accumulation_dtype(dtype);
  if (needs_float && !dtype.is_floating()) wide = DType::float_(64);
  c.set(c.cast(formula(c, c.cast(x, wide), *reduction), dtype));
}

template <const relax::Operator& op>
void arg_reduce(NodeImport& c) {
  const int64_t axis = c.axis(c.attributes.integer("axis", 0), c.rank(0));
  const bool keepdims = c.attributes.flag("keepdims", true);
  const ir::Expr& extent = c.shape(0)[static_cast<size_t>(axis)];
  if (!ir::as_int(extent))
    c.expect(extent > 0, relax::Message() << "axis " << std::to_string(axis) << " of " << c.name_of(0)
                                          << " is empty: no element is the largest or the smallest");
  const bool last = c.version >= 12 && c.attributes.flag("select_last_index", false);
  c.set(c.call(op, {c.input(0)}, ir::make<ops::ArgReduceAttributes>(std::optional(axis), keepdims, last)));
}

const OperatorRow reduce_rows[] = {
    {"ReduceSum", {1, 11, 13}, 1, 2, 1, reduce<plain<sum_kind>, 13, false, false>},
    {"ReduceMean", {1, 11, 13, 18}, 1, 2, 1, reduce<plain<mean_kind>, 18, false, false>},
    {"ReduceMax", {1, 11, 12, 13, 18, 20}, 1, 2, 1, reduce<plain<max_kind>, 18, false, false>},
    {"ReduceMin", {1, 11, 12, 13, 18, 20}, 1, 2, 1, reduce<plain<min_kind>, 18, false, false>},
    {"ReduceProd", {1, 11, 13, 18}, 1, 2, 1, reduce<plain<prod_kind>, 18, false, false>},
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
