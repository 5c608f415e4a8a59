#include "lower/batch/batch_parts.h"

#include "graph/rewrite_bindings.h"
#include "lower/plan/plan_memory.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "relax/strings.h"

namespace lathe::lower {

using namespace relax;  // NOLINT: the subject of this file

namespace {

// The call of `op` that `e` is, of tensors of one known size each.
const Call* as_static_call(const Expr& e, const Operator& op) {
  const Call* call = graph::as_call_of(e, op.name);
  const auto* result = call ? as_tensor(e) : nullptr;
  return result && result->dtype != string_dtype && static_bytes(*result) ? call : nullptr;
}

// Whether what has the same index of this axis lies in one piece: the axes in front are of extent one.
bool is_in_one_piece(const TensorStructInfo& info, int64_t axis) {
  const std::vector<ir::Expr>& shape = *info.shape;
  return axis >= 0 && axis < static_cast<int64_t>(shape.size()) &&
         std::all_of(shape.begin(), shape.begin() + axis, [](const ir::Expr& extent) { return ir::is_int(extent, 1); });
}

std::optional<int64_t> only_value(const Expr& e) {
  const auto* shape = e ? e.as<ShapeExpr>() : nullptr;
  return shape && shape->values.size() == 1 ? ir::as_int(shape->values[0]) : std::nullopt;
}

}  // namespace

bool is_batch_part(const Expr& e) {
  const Call* call = as_static_call(e, ops::strided_slice);
  if (!call || call->args.size() != 3) return false;
  const auto& attributes = *call->attributes.as<ops::StridedSliceAttributes>();
  const auto* whole = as_tensor(call->args[0]);
  const auto begin = only_value(call->args[1]), end = only_value(call->args[2]);
  if (attributes.axes.size() != 1 || !attributes.strides.empty() || !static_bytes(*whole)) return false;
  const int64_t axis = attributes.axes[0];
  return is_in_one_piece(*whole, axis) && begin && end && *begin >= 0 &&
         *end <= *ir::as_int((*whole->shape)[static_cast<size_t>(axis)]);
}

bool is_joined_batch(const Expr& e) {
  const Call* call = as_static_call(e, ops::concat);
  return call && is_in_one_piece(*as_tensor(e), call->attributes.as<ops::AxisAttributes>()->axis) &&
         std::all_of(call->args.begin(), call->args.end(),
                     [](const Expr& part) { return static_bytes(*as_tensor(part)).has_value(); });
}

Expr batch_part(const Expr& whole, int64_t begin, int64_t end, size_t axis) {
  const auto at = [](int64_t row) { return ir::make<ShapeExpr>(std::vector<ir::Expr>{ir::int64(row)}); };
  return make_call(ops::strided_slice, {whole, at(begin), at(end)},
                   ir::make<ops::StridedSliceAttributes>(std::vector<int64_t>{static_cast<int64_t>(axis)}))
      .value_or_throw();
}

Expr joined_batch(const std::vector<Expr>& parts, size_t axis) {
  return make_call(ops::concat, parts, ir::make<ops::AxisAttributes>(static_cast<int64_t>(axis))).value_or_throw();
}

int64_t first_element(const Call& part) {
  const std::vector<ir::Expr>& shape = *as_tensor(part.args.at(0))->shape;
  int64_t elements = *ir::as_int(part.args.at(1).as<ShapeExpr>()->values.at(0));
  const int64_t axis = part.attributes.as<ops::StridedSliceAttributes>()->axes.at(0);
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) elements *= *ir::as_int(shape[d]);
  return elements;
}

}  // namespace lathe::lower
