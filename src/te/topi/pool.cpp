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

namespace {

// How many cells of the axis a window covers at a position, but one where it covers padding alone, whose mean is 0.
Expr covered(const Expr& at, const Expr& extent, const Window& w, bool count_include_pad) {
  // Cells k with low <= at * stride + k * dilation - pad_begin < high.
  const Expr low = count_include_pad ? 0 - w.pad_begin : ir::int64(0);
  const Expr high = count_include_pad ? extent + w.pad_end : extent;
  const Expr start = at * w.stride - w.pad_begin, step = ir::int64(w.dilation);
  const Expr first = ir::max(ir::int64(0), ir::ceildiv(low - start, step));
  return ir::max(ir::min(w.kernel, ir::ceildiv(high - start, step)) - first, ir::int64(1));
}

// The number of cells at each of so many positions as a choice between a few constants, by comparing the position with
// where the number changes. Null where that is not known, or changes more often.
Expr covered_by_choice(const Expr& at, const Expr& positions, const Expr& extent, const Window& w,
                       bool count_include_pad, DType dtype) {
  constexpr int64_t most_positions = 1 << 16;
  constexpr size_t most_runs = 8;
  const auto known = ir::as_int(positions);
  if (!known || *known > most_positions) return {};
  struct Run {
    int64_t end, count;
  };
  std::vector<Run> runs;
  for (int64_t i = 0; i < *known; ++i) {
    const auto count = ir::as_int(covered(ir::int64(i), extent, w, count_include_pad));
    if (!count) return {};
    if (runs.empty() || runs.back().count != *count) runs.push_back({i, *count});
    runs.back().end = i + 1;
    if (runs.size() > most_runs) return {};
  }
  Expr chosen = ir::constant(dtype, runs.empty() ? 1 : runs.back().count);
  for (size_t r = runs.size(); r-- > 1;)
    chosen = ir::select(at < runs[r - 1].end, ir::constant(dtype, runs[r - 1].count), chosen);
  return chosen;
}

}  // namespace

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
        Expr count = ir::int64(1), chosen;
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
          Expr few = covered_by_choice(at, positions, extent, w, count_include_pad, accumulate);
          // So few as a window has fit 32 bits, which vectors convert at once.
          if (!few && ir::as_int(w.kernel))
            few = ir::cast(accumulate, ir::cast(DType::int32(), covered(at, extent, w, count_include_pad)));
          if (few)
            chosen = chosen ? chosen * few : few;
          else
            count = count * covered(at, extent, w, count_include_pad);
        }
        Expr cells_in_all = ir::cast(accumulate, count);
        if (chosen) cells_in_all = ir::is_int(count, 1) ? chosen : cells_in_all * chosen;
        return ir::cast(x.dtype(), ir::div(total(i), cells_in_all));
      },
      {total}, "avg_pool");
}

}  // namespace lathe::te::topi
