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
  return attributes.axes == std::vector<int64_t>{0} && attributes.strides.empty() && static_bytes(*whole) && begin &&
         end && *begin >= 0 && *end <= *ir::as_int(whole->shape->front());
}

bool is_joined_batch(const Expr& e) {
  const Call* call = as_static_call(e, ops::concat);
  if (!call || call->attributes.as<ops::AxisAttributes>()->axis != 0) return false;
  const auto first = static_bytes(*as_tensor(call->args[0]));
  return first && std::all_of(call->args.begin(), call->args.end(),
                              [&](const Expr& part) { return static_bytes(*as_tensor(part)) == first; });
}

Expr batch_part(const Expr& whole, int64_t begin, int64_t end) {
  const auto at = [](int64_t row) { return ir::make<ShapeExpr>(std::vector<ir::Expr>{ir::int64(row)}); };
  return make_call(ops::strided_slice, {whole, at(begin), at(end)},
                   ir::make<ops::StridedSliceAttributes>(std::vector<int64_t>{0}))
      .value_or_throw();
}

Expr joined_batch(const std::vector<Expr>& parts) {
  return make_call(ops::concat, parts, ir::make<ops::AxisAttributes>(int64_t{0})).value_or_throw();
}

int64_t first_element(const Call& part) {
  const std::vector<ir::Expr>& shape = *as_tensor(part.args.at(0))->shape;
  int64_t elements = *ir::as_int(part.args.at(1).as<ShapeExpr>()->values.at(0));
  for (size_t d = 1; d < shape.size(); ++d) elements *= *ir::as_int(shape[d]);
  return elements;
}

}  // namespace lathe::lower
