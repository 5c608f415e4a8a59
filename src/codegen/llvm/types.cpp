// How dtypes are held in registers and in memory.
#include "codegen/llvm/emitter.h"

namespace lathe::codegen {

llvm::Type* KernelEmitter::vector_of(llvm::Type* t, int lanes) {
  return lanes == 1 ? t : llvm::FixedVectorType::get(t, static_cast<unsigned>(lanes));
}

int KernelEmitter::lanes_of(V v) {
  const auto* t = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return t ? static_cast<int>(t->getNumElements()) : 1;
}

llvm::Type* KernelEmitter::scalar_type(DType t) {
  if (t.is_void()) return builder_.getVoidTy();
  if (t.is_handle()) return builder_.getPtrTy();
  if (t.is_bool()) return builder_.getInt1Ty();
  if (t.is_ieee_float() && t.bits == 32) return builder_.getFloatTy();
  if (t.is_ieee_float() && t.bits == 64) return builder_.getDoubleTy();
  return builder_.getIntNTy(t.bits);  // integers, and narrow floats as their bits
}

llvm::Type* KernelEmitter::register_type(DType t) { return vector_of(scalar_type(t), t.lanes); }

llvm::Type* KernelEmitter::memory_type(DType t) {
  return t.is_bool() ? vector_of(builder_.getInt8Ty(), t.lanes) : register_type(t);
}

KernelEmitter::V KernelEmitter::to_memory(V value, DType t) {
  return t.is_bool() ? builder_.CreateZExt(value, memory_type(t)) : value;
}

KernelEmitter::V KernelEmitter::from_memory(V value, DType t) {
  if (!t.is_bool()) return value;
  return builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

KernelEmitter::V KernelEmitter::splat(V scalar, int lanes) {
  return lanes == 1 ? scalar : builder_.CreateVectorSplat(static_cast<unsigned>(lanes), scalar);
}

}  // namespace lathe::codegen
