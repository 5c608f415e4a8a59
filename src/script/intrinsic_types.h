// Where the text of an intrinsic's call has its dtype, and which it is when the text names none: printer and parser
// agree by these rules.
#pragma once

#include "ir/build.h"

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
  if (is(intrinsic::address_of) || is(intrinsic::tvm_stack_make_shape) || is(intrinsic::tvm_stack_make_array))
    return DType::handle();
  if (is(intrinsic::call_packed)) return DType::int32();
  if (op.effect != Effect::pure || op.arity <= 0) return DType::void_();
  return first;
}

// A buffer in the place of an expression is its first element.
inline ir::Expr first_element(const ir::Buffer& buffer) {
  return ir::make<ir::BufferLoad>(buffer, std::vector<ir::Expr>(buffer->shape.size(), ir::int64(0)), ir::Expr());
}
inline bool is_first_element(const ir::BufferLoad& load) {
  return !load.predicate && std::all_of(load.indices.begin(), load.indices.end(), [](const ir::Expr& index) {
    return ir::is_int(index, 0) && index->dtype == ir::DType::int64();
  });
}

// A buffer as a registered function gets it.
inline ir::Expr array_of(const ir::Buffer& b) {
  using namespace ir;  // NOLINT
  const auto extents = [](const std::vector<Expr>& list) {
    return ir::call(DType::handle(), intrinsic::tvm_stack_make_shape, list);
  };
  return ir::call(DType::handle(), intrinsic::tvm_stack_make_array,
                  {ir::call(DType::handle(), intrinsic::address_of, {first_element(b)}), extents(b->shape),
                   b->strides.empty() ? ir::int32(0) : extents(b->strides),
                   ir::int32(static_cast<int32_t>(b->shape.size())), ir::constant(b->dtype, int64_t{0}), ir::int32(0)});
}

}  // namespace lathe::script
