#include "te/topi/pool.h"

#include "support/mutation.h"
#include "te/topi/elementwise.h"

namespace lathe::te::topi {

LATHE_FAULT(te_pool_divisor, "ops_test", "avg_pool: padding counts although it should not");

using ir::DType;

namespace {

Expr lowest(DType dtype) {
  if (dtype.is_ieee_float() || dtype.is_bfloat16())
    return ir::constant(dtype, -std::numeric_limits<double>::infinity());
  return ir::min_value(dtype);
}

std::vector<Expr> positions_of(const std::vector<Expr>& shape, const Layout& layout) {
  std::vector<Expr> positions;
  for (size_t d = 0; d < layout.spatial_rank(); ++d) positions.push_back(shape[layout.spatial(d)]);
  return positions;
}

// The cell of the padded tensor that window position `i` covers at `cells`.
std::vector<Expr> cell_of(std::vector<Expr> i, const std::vector<IterVar>& cells, const PoolOptions& o) {
  for (size_t d = 0; d < cells.size(); ++d) {
    Expr& at = i[o.layout.spatial(d)];
    at = at * o.windows[d].stride + cells[d]->var * o.windows[d].dilation;
  }
  return i;
}

}  // namespace

Tensor max_pool(const Tensor& x, const std::vector<Expr>& shape, const PoolOptions& o) {
  const Tensor padded = pad_for_windows(x, o.layout, o.windows, positions_of(shape, o.layout), o.ceil_mode,
                                        lowest(x.dtype()), "max_pool_pad");
  const std::vector<IterVar> cells = window_axes(o.windows);
  return compute(
      shape, [&](const std::vector<Expr>& i) { return max(padded(cell_of(i, cells, o)), cells); }, {padded},
      "max_pool");
}

std::vector<Tensor> max_pool_with_indices(const Tensor& x, const std::vector<Expr>& shape, const PoolOptions& o) {
  const Tensor padded = pad_for_windows(x, o.layout, o.windows, positions_of(shape, o.layout), o.ceil_mode,
                                        lowest(x.dtype()), "max_pool_pad");
  const std::vector<IterVar> cells = window_axes(o.windows);
  const DType dtype = x.dtype();
  // Padding has the largest index, so that a cell of x wins against it.
  const Expr no_index = ir::int64(std::numeric_limits<int64_t>::max());
  const ir::CommReducer reducer = comm_reducer(
      [&](const std::vector<Expr>& l, const std::vector<Expr>& r) {
        const Expr tie = ir::logical_and(ir::eq(l[0], r[0]), l[1] < r[1]);
        Expr left = ir::logical_or(l[0] > r[0], tie);
        if (dtype.is_floating()) left = ir::logical_or(left, ir::ne(l[0], l[0]));
        return std::vector{ir::select(left, l[0], r[0]), ir::select(left, l[1], r[1])};
      },
      [&](const auto&) { return std::vector{lowest(dtype), no_index}; }, {dtype, DType::int64()});
  return compute_all(
      shape,
      [&](const std::vector<Expr>& i) {
        const std::vector<Expr> cell = cell_of(i, cells, o);
        Expr index = ir::int64(0), inside = ir::boolean(true);
        for (size_t d = 0; d < x.ndim(); ++d) {
          Expr own = cell[d];
          for (size_t s = 0; s < cells.size(); ++s)
            if (o.layout.spatial(s) == d) {
              own = own - o.windows[s].pad_begin;
              inside = ir::logical_and(inside, ir::logical_and(own >= 0, own < x.shape()[d]));
            }
          index = index * x.shape()[d] + own;
        }
        const std::vector<Expr> sources{padded(cell), ir::select(inside, index, no_index)};
        std::vector<Expr> bodies;
        for (const int64_t which : {0, 1})
          bodies.push_back(ir::make<ir::Reduce>(reducer, cells, sources, Expr{}, which));
        return bodies;
      },
      {padded}, "max_pool");
}

Tensor avg_pool(const Tensor& x, const std::vector<Expr>& shape, const PoolOptions& o, bool count_include_pad,
                DType accumulate) {
  const Tensor padded = pad_for_windows(x, o.layout, o.windows, positions_of(shape, o.layout), o.ceil_mode,
                                        ir::constant(x.dtype(), 0), "avg_pool_pad");
  const std::vector<IterVar> cells = window_axes(o.windows);
  const Tensor total = compute(
      shape, [&](const std::vector<Expr>& i) { return sum(ir::cast(accumulate, padded(cell_of(i, cells, o))), cells); },
      {padded}, "avg_pool_sum");
  return compute(
      shape,
      [&](const std::vector<Expr>& i) {
        Expr count = ir::int64(1);
        for (size_t d = 0; d < cells.size(); ++d) {
          const Window& w = o.windows[d];
          const Expr &at = i[o.layout.spatial(d)], &extent = x.shape()[o.layout.spatial(d)];
          const Expr positions = shape[o.layout.spatial(d)];
          const auto spare = ir::as_int(extent + w.pad_begin + w.pad_end - (positions - 1) * w.stride - w.reach());
          const bool overruns = o.ceil_mode && (!spare || *spare < 0);
          const bool padding = !ir::is_int(w.pad_begin, 0) || !ir::is_int(w.pad_end, 0);
          if (!overruns && (count_include_pad || !padding || support::flip(te_pool_divisor))) {
            count = count * w.kernel;
            continue;
          }
          // Cells k with low <= at * stride + k * dilation - pad_begin < high.
          const Expr low = count_include_pad ? 0 - w.pad_begin : ir::int64(0);
          const Expr high = count_include_pad ? extent + w.pad_end : extent;
          const Expr start = at * w.stride - w.pad_begin, step = ir::int64(w.dilation);
          const Expr first = ir::max(ir::int64(0), ir::ceildiv(low - start, step));
          const Expr end = ir::min(w.kernel, ir::ceildiv(high - start, step));
          count = count * ir::max(end - first, ir::int64(1));  // padding alone has the mean 0
        }
        return ir::cast(x.dtype(), ir::div(total(i), ir::cast(accumulate, count)));
      },
      {total}, "avg_pool");
}

}  // namespace lathe::te::topi
