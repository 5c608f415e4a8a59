// Shapes and parts whose axes are only known when the model runs: the integers are symbols, and each dimension asks
// whether it is among the axes.
#pragma once

#include "interchange/onnx/node.h"

namespace lathe::onnx {

// Whether `axis`, which may count from the end, is dimension d of `rank`.
ir::Expr is_axis(const ir::Expr& axis, int64_t d, int64_t rank);
// Whether one of them is.
ir::Expr is_among(const Integers& axes, int64_t d, int64_t rank);

// The same for each dimension.
std::vector<ir::Expr> chosen_by(const Integers& axes, int64_t rank);

// `own` without the dimensions that are chosen, of which there are as many as leave `rank`; and with new ones of extent
// 1 at `axes`.
Shape without_chosen(const Shape& own, const std::vector<ir::Expr>& chosen, int64_t rank);
Shape with_axes(const Shape& own, const Integers& axes);

// x[start:end:step] along the axes.
Expr slice_at_run_time(NodeImport& c, const Expr& x, const Integers& starts, const Integers& ends, const Integers& axes,
                       const Integers& steps);

// A reduction and the value of no element under it.
struct RunTimeReduction {
  ir::Expr (*reduce)(ir::Expr, std::vector<ir::IterVar>);
  ir::Expr (*identity)(DType);
  DType accumulate;
  bool divide_by_count = false;
};
// Over the dimensions that are chosen, which keep an extent of 1.
Expr reduce_at_run_time(NodeImport& c, const Expr& x, const std::vector<ir::Expr>& chosen, const RunTimeReduction& r);

}  // namespace lathe::onnx
