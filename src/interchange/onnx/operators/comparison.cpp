// Comparisons, logic, and choice.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/broadcast.h"
#include "interchange/onnx/operators/tables.h"

namespace lathe::onnx::operators {

namespace {

template <const relax::Operator& op>
void compare(NodeImport& c) {
  const auto [a, b] = broadcast_operands(c);
  c.set(c.call(op, {a, b}));
}

void logical_not(NodeImport& c) { c.set(c.call(ops::logical_not, {c.input(0)})); }
void is_nan(NodeImport& c) { c.set(c.call(ops::isnan, {c.input(0)})); }

void is_inf(NodeImport& c) {
  const bool negative = c.attributes.flag("detect_negative", true),
             positive = c.attributes.flag("detect_positive", true);
  const Expr x = c.input(0), zero = c.scalar(c.dtype(0), 0);
  Expr result = c.call(ops::isinf, {x});
  if (!negative) result = c.call(ops::logical_and, {result, c.call(ops::greater, {x, zero})});
  if (!positive) result = c.call(ops::logical_and, {result, c.call(ops::less, {x, zero})});
  c.set(result);
}

void where(NodeImport& c) { c.set(c.call(ops::where, {c.input(0), c.input(1), c.input(2)})); }

// ---- of known integers: a bool is 0 or 1 ----

template <ir::Expr (*f)(ir::Expr, ir::Expr)>
bool fold_compare(NodeImport& c) {
  if (c.attributes.has("axis")) return false;
  return fold_elementwise(c, DType::boolean(), [](std::span<const ir::Expr> x) {
    return ir::select(relax::simplified(f(x[0], x[1])), ir::int64(1), ir::int64(0));
  });
}
bool fold_and(NodeImport& c) {
  return fold_elementwise(c, DType::boolean(), [](std::span<const ir::Expr> x) { return ir::min(x[0], x[1]); });
}
bool fold_or(NodeImport& c) {
  return fold_elementwise(c, DType::boolean(), [](std::span<const ir::Expr> x) { return ir::max(x[0], x[1]); });
}
bool fold_not(NodeImport& c) {
  return fold_elementwise(c, DType::boolean(), [](std::span<const ir::Expr> x) { return ir::int64(1) - x[0]; });
}
bool fold_where(NodeImport& c) {
  return fold_elementwise(c, c.dtype(1), [](std::span<const ir::Expr> x) {
    return ir::select(relax::simplified(ir::ne(x[0], ir::int64(0))), x[1], x[2]);
  });
}

const OperatorRow comparison_rows[] = {
    {"And", {1, 7}, 2, 2, 1, compare<ops::logical_and>, fold_and},
    {"Or", {1, 7}, 2, 2, 1, compare<ops::logical_or>, fold_or},
    {"Xor", {1, 7}, 2, 2, 1, compare<ops::logical_xor>, fold_compare<ir::ne>},
    {"Not", {1}, 1, 1, 1, logical_not, fold_not},
    {"Equal", {1, 7, 11, 13, 19}, 2, 2, 1, compare<ops::equal>, fold_compare<ir::eq>},
    {"Greater", {1, 7, 9, 13}, 2, 2, 1, compare<ops::greater>, fold_compare<ir::gt>},
    {"GreaterOrEqual", {12, 16}, 2, 2, 1, compare<ops::greater_equal>, fold_compare<ir::ge>},
    {"Less", {1, 7, 9, 13}, 2, 2, 1, compare<ops::less>, fold_compare<ir::lt>},
    {"LessOrEqual", {12, 16}, 2, 2, 1, compare<ops::less_equal>, fold_compare<ir::le>},
    {"Where", {9, 16}, 3, 3, 1, where, fold_where},
    {"IsNaN", {9, 13, 20}, 1, 1, 1, is_nan},
    {"IsInf", {10, 20}, 1, 1, 1, is_inf},
};

}  // namespace

Table comparison() { return comparison_rows; }

}  // namespace lathe::onnx::operators
