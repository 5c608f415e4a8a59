#include "interchange/onnx/run_time_axes.h"

#include "interchange/onnx/integers.h"
#include "ops/build/by_data.h"

namespace lathe::onnx {

namespace {

ir::Expr zero() { return ir::int64(0); }
ir::Expr one_where(const ir::Expr& condition) { return ir::select(condition, ir::int64(1), zero()); }

void simplify_all(Shape& shape) {
  for (ir::Expr& extent : shape) extent = relax::simplified(extent);
}

// The value of `values` at the place where `counts` is `wanted` and `chosen` holds.
ir::Expr pick(const Shape& values, const std::vector<ir::Expr>& chosen, const std::vector<ir::Expr>& counts,
              int64_t wanted) {
  ir::Expr result = ir::int64(1);
  for (size_t d = values.size(); d-- > 0;)
    result = ir::select(ir::logical_and(chosen[d], ir::eq(counts[d], ir::int64(wanted))), values[d], result);
  return result;
}

}  // namespace

ir::Expr is_axis(const ir::Expr& axis, int64_t d, int64_t rank) {
  return ir::logical_or(ir::eq(axis, ir::int64(d)), ir::eq(axis, ir::int64(d - rank)));
}

ir::Expr is_among(const Integers& axes, int64_t d, int64_t rank) {
  ir::Expr result = ir::boolean(false);
  for (const ir::Expr& axis : axes) result = ir::logical_or(result, is_axis(axis, d, rank));
  return result;
}

std::vector<ir::Expr> chosen_by(const Integers& axes, int64_t rank) {
  std::vector<ir::Expr> chosen;
  for (int64_t d = 0; d < rank; ++d) chosen.push_back(is_among(axes, d, rank));
  return chosen;
}

Shape without_chosen(const Shape& own, const std::vector<ir::Expr>& chosen, int64_t rank) {
  std::vector<ir::Expr> kept, before;
  ir::Expr count = zero();
  for (const ir::Expr& each : chosen) {
    kept.push_back(ir::logical_not(each));
    before.push_back(count);
    count = count + one_where(kept.back());
  }
  Shape result;
  for (int64_t j = 0; j < rank; ++j) result.push_back(pick(own, kept, before, j));
  simplify_all(result);
  return result;
}

Shape with_axes(const Shape& own, const Integers& axes) {
  const auto rank = static_cast<int64_t>(own.size() + axes.size());
  Shape result;
  ir::Expr count = zero();  // of own dimensions so far
  for (int64_t d = 0; d < rank; ++d) {
    const ir::Expr is_new = is_among(axes, d, rank);
    ir::Expr extent = ir::int64(1);
    for (size_t k = own.size(); k-- > 0;)
      extent = ir::select(ir::eq(count, ir::int64(static_cast<int64_t>(k))), own[k], extent);
    result.push_back(ir::select(is_new, ir::int64(1), extent));
    count = count + one_where(ir::logical_not(is_new));
  }
  simplify_all(result);
  return result;
}

Expr slice_at_run_time(NodeImport& c, const Expr& x, const Integers& starts, const Integers& ends, const Integers& axes,
                       const Integers& steps) {
  const Shape own = *relax::as_tensor(x)->shape;
  const auto rank = static_cast<int64_t>(own.size());
  Shape begins, stops, strides;
  for (int64_t d = 0; d < rank; ++d) {
    ir::Expr start = zero(), end = own[static_cast<size_t>(d)], step = ir::int64(1);
    for (size_t k = 0; k < axes.size(); ++k) {
      const ir::Expr here = is_axis(axes[k], d, rank);
      start = ir::select(here, starts[k], start);
      end = ir::select(here, ends[k], end);
      step = ir::select(here, steps[k], step);
    }
    begins.push_back(start);
    stops.push_back(end);
    strides.push_back(step);
  }
  return ops::build::slice_by(c.builder(), x, begins, stops, strides);
}

Expr reduce_at_run_time(NodeImport& c, const Expr& x, const std::vector<ir::Expr>& chosen, const RunTimeReduction& r) {
  const Shape own = *relax::as_tensor(x)->shape;
  const auto rank = static_cast<int64_t>(own.size());
  const DType dtype = relax::as_tensor(x)->dtype;
  Shape shape, extents;
  std::vector<ir::IterVar> reduced;
  ir::Expr is_there = ir::boolean(true);
  // A dimension has its extent either in the result or in the reduction, and 1 in the other.
  for (int64_t d = 0; d < rank; ++d) {
    const ir::Expr& extent = own[static_cast<size_t>(d)];
    const ir::Expr& among = chosen[static_cast<size_t>(d)];
    shape.push_back(relax::simplified(ir::select(among, ir::int64(1), extent)));
    const ir::Expr inner = relax::simplified(ir::select(among, extent, ir::int64(1)));
    extents.push_back(inner);
    // Over no element the loop runs once, for the identity.
    const bool may_be_empty = !c.bounds().at_least(extent, 1);
    reduced.push_back(
        te::reduce_axis(zero(), may_be_empty ? ir::max(inner, ir::int64(1)) : inner, "k" + std::to_string(d)));
    if (may_be_empty) is_there = ir::logical_and(is_there, reduced.back()->var < inner);
  }
  const auto build = [&](const std::vector<te::Tensor>& in) {
    te::Tensor result = te::compute(
        shape,
        [&](std::vector<ir::Expr> i) {
          for (size_t d = 0; d < i.size(); ++d) i[d] = i[d] + reduced[d]->var;
          ir::Expr element = ir::cast(r.accumulate, in[0](std::move(i)));
          if (reduced.empty()) return element;
          if (!ir::as_int(is_there)) element = ir::if_then_else(is_there, element, r.identity(r.accumulate));
          return r.reduce(element, reduced);
        },
        in, "reduce");
    if (!r.divide_by_count && r.accumulate == dtype) return std::vector{result};
    const ir::Expr count = ir::cast(r.accumulate, ir::product(extents));
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          return ir::cast(dtype, r.divide_by_count ? ir::div(result(i), count) : result(i));
        },
        {result}, "reduce_result")};
  };
  return c.builder().call_te("reduce", {x}, build).value_or_throw();
}

}  // namespace lathe::onnx
