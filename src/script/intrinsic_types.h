// Where the text of an intrinsic's call has its dtype, and which it is when the text names none: printer and parser
// agree by these rules.
#pragma once

#include "ir/expr.h"

namespace lathe::script {

// Whether a call's text begins with its dtype.
inline bool is_dtype_first(const ir::Intrinsic& op) {
  using namespace ir;  // NOLINT
  for (const Intrinsic* row : {&intrinsic::call_extern, &intrinsic::call_pure_extern, &intrinsic::call_llvm_intrin,
                               &intrinsic::call_llvm_pure_intrin, &intrinsic::reinterpret})
    if (op.name == row->name) return true;
  return false;
}

inline ir::DType default_call_type(const ir::Intrinsic& op, const std::vector<ir::Expr>& args) {
  using namespace ir;  // NOLINT
  const auto is = [&](const Intrinsic& row) { return op.name == row.name; };
  const DType first = args.empty() || !args[0] ? DType::void_() : args[0]->dtype;
  if (is(intrinsic::isnan) || is(intrinsic::isinf) || is(intrinsic::isfinite)) return DType::boolean(first.lanes);
  if (is(intrinsic::if_then_else)) return args.size() > 1 ? args[1]->dtype : DType::void_();
  if (is(intrinsic::vector_reduce_add) || is(intrinsic::vector_reduce_max) || is(intrinsic::vector_reduce_min))
    return first.element();
  if (is(intrinsic::address_of)) return DType::handle();
  if (is(intrinsic::call_packed)) return DType::int32();
  if (op.effect != Effect::pure || op.arity <= 0) return DType::void_();
  return first;
}

}  // namespace lathe::script
