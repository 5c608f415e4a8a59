// Calls through the services table (abi/services.h): errors, scratch memory, functions of the user's.
#include "abi/services.h"

#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/emitter.h"
#include "ir/formats/dlpack_type.h"
#include "ir/node_name.h"
#include "tir/analysis/calls.h"

namespace lathe::codegen {

using namespace ir;  // NOLINT

KernelEmitter::V KernelEmitter::service(size_t offset, llvm::FunctionType* type, llvm::ArrayRef<V> args) {
  const V entry = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), frame_.services, offset);
  llvm::LoadInst* function = builder_.CreateLoad(builder_.getPtrTy(), entry);
  function->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  return builder_.CreateCall(type, function, args);
}

KernelEmitter::V KernelEmitter::text(const std::string& s) {
  for (llvm::GlobalVariable& global : module_.globals()) {
    const auto* data =
        llvm::dyn_cast_or_null<llvm::ConstantDataArray>(global.hasInitializer() ? global.getInitializer() : nullptr);
    if (data && global.getName().starts_with("text") && data->isCString() && data->getAsCString() == s) return &global;
  }
  return builder_.CreateGlobalString(s, "text");
}

void KernelEmitter::raise(V code, const std::string& message, const std::string& node) {
  auto* type = llvm::FunctionType::get(
      builder_.getInt32Ty(), {builder_.getPtrTy(), builder_.getInt32Ty(), builder_.getPtrTy(), builder_.getPtrTy()},
      false);
  const V where = node.empty() ? static_cast<V>(llvm::ConstantPointerNull::get(builder_.getPtrTy())) : text(node);
  leave(service(offsetof(LatheServices, raise_error), type,
                {frame_.call_state, builder_.CreateIntCast(code, builder_.getInt32Ty(), true), text(message), where}));
}

void KernelEmitter::leave(V code) {
  // The runtime keeps what a parallel body raised, and parallel_for returns it.
  if (frame_.parallel_body)
    builder_.CreateRetVoid();
  else
    builder_.CreateRet(builder_.CreateIntCast(code, builder_.getInt32Ty(), true));
}

KernelEmitter::V KernelEmitter::heap(V bytes) {
  auto* type = llvm::FunctionType::get(builder_.getPtrTy(),
                                       {builder_.getPtrTy(), builder_.getInt64Ty(), builder_.getInt64Ty()}, false);
  const V memory = service(offsetof(LatheServices, allocate), type, {frame_.call_state, bytes, builder_.getInt64(64)});
  llvm::BasicBlock *failed = block("no_memory"), *there = block("memory");
  builder_.CreateCondBr(builder_.CreateIsNull(memory), failed, there);
  builder_.SetInsertPoint(failed);
  // The service has raised the error already; this returns its code.
  leave(builder_.getInt32(4));
  builder_.SetInsertPoint(there);
  return memory;
}

void KernelEmitter::release(V memory) {
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {builder_.getPtrTy(), builder_.getPtrTy()}, false);
  service(offsetof(LatheServices, release), type, {frame_.call_state, memory});
}

void KernelEmitter::check(const tir::AssertStmt& n, const ir::NodeRef& at) {
  const V holds = value(n.condition);
  llvm::BasicBlock *fails = block("check_failed"), *after = block("checked");
  builder_.CreateCondBr(holds, after, fails, llvm::MDBuilder(context_).createBranchWeights(1 << 20, 1));
  builder_.SetInsertPoint(fails);
  raise(builder_.getInt32(5), n.message, node_name(at));  // LATHE_CHECK_FAILED
  builder_.SetInsertPoint(after);
}

// ---- functions that the user registered: the arguments become a table on the stack ----

KernelEmitter::V KernelEmitter::stack_bytes(size_t bytes) {
  return stack_slot(llvm::ArrayType::get(builder_.getInt8Ty(), bytes), "passed", llvm::Align(8));
}

void KernelEmitter::put(V value, V base, size_t offset) {
  builder_.CreateStore(value, builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), base, offset));
}

KernelEmitter::V KernelEmitter::passed_extents(std::span<const Expr> extents) {
  const V list = stack_bytes(std::max<size_t>(1, extents.size()) * sizeof(int64_t));
  for (size_t d = 0; d < extents.size(); ++d)
    put(value(ir::cast(DType::int64(), extents[d])), list, d * sizeof(int64_t));
  return list;
}

KernelEmitter::V KernelEmitter::passed_tensor(const Call& array) {
  const auto parts = tir::passed_array(array);
  support::require(parts.has_value(), "a registered function is given an address that is no tensor");
  const DLDataType type = ir::dlpack_type(parts->element->buffer->dtype);
  const V tensor = stack_bytes(sizeof(DLTensor));
  put(value(array.args[0]), tensor, offsetof(DLTensor, data));
  put(builder_.getInt32(kDLCPU), tensor, offsetof(DLTensor, device));
  put(builder_.getInt32(0), tensor, offsetof(DLTensor, device) + offsetof(DLDevice, device_id));
  put(builder_.getInt32(static_cast<uint32_t>(parts->shape.size())), tensor, offsetof(DLTensor, ndim));
  put(builder_.getInt8(type.code), tensor, offsetof(DLTensor, dtype) + offsetof(DLDataType, code));
  put(builder_.getInt8(type.bits), tensor, offsetof(DLTensor, dtype) + offsetof(DLDataType, bits));
  put(builder_.getInt16(type.lanes), tensor, offsetof(DLTensor, dtype) + offsetof(DLDataType, lanes));
  put(passed_extents(parts->shape), tensor, offsetof(DLTensor, shape));
  const V compact = llvm::ConstantPointerNull::get(builder_.getPtrTy());
  put(parts->strides.empty() ? compact : passed_extents(parts->strides), tensor, offsetof(DLTensor, strides));
  put(builder_.getInt64(0), tensor, offsetof(DLTensor, byte_offset));
  return tensor;
}

KernelEmitter::V KernelEmitter::registered_call(const Call& n) {
  const auto* name = n.args.at(0).as<StringImm>();
  support::require(name, "a registered function is called without a name");
  const size_t count = n.args.size() - 1;
  const V table = stack_bytes(std::max<size_t>(1, count) * sizeof(LathePassed));
  for (size_t i = 0; i < count; ++i) {
    const Expr& arg = n.args[i + 1];
    const size_t at = i * sizeof(LathePassed), of = at + offsetof(LathePassed, of);
    const auto pass = [&](LathePassedKind kind, V v) {
      put(builder_.getInt32(kind), table, at + offsetof(LathePassed, kind));
      put(v, table, of);
    };
    if (const auto* words = arg.as<StringImm>())
      pass(LATHE_PASSED_TEXT, text(words->value));
    else if (arg->dtype.is_handle())
      pass(LATHE_PASSED_TENSOR, passed_tensor(*arg.as<Call>()));
    else if (arg->dtype.is_floating())
      pass(LATHE_PASSED_REAL, value(ir::cast(DType::float_(64), arg)));
    else
      pass(LATHE_PASSED_INTEGER, value(ir::cast(DType::int64(), arg)));
  }
  const bool real = n.dtype.is_floating(), whole = n.dtype.is_integer() || n.dtype.is_bool();
  const V result = stack_bytes(sizeof(LathePassed));
  put(builder_.getInt32(real ? LATHE_PASSED_REAL : whole ? LATHE_PASSED_INTEGER : LATHE_PASSED_NOTHING), result, 0);
  put(builder_.getInt64(0), result, offsetof(LathePassed, of));
  auto* type = llvm::FunctionType::get(
      builder_.getInt32Ty(),
      {builder_.getPtrTy(), builder_.getPtrTy(), builder_.getPtrTy(), builder_.getInt32Ty(), builder_.getPtrTy()},
      false);
  const V status =
      service(offsetof(LatheServices, call_registered), type,
              {frame_.call_state, text(name->value), table, builder_.getInt32(static_cast<uint32_t>(count)), result});
  llvm::BasicBlock *failed = block("call_failed"), *after = block("called");
  builder_.CreateCondBr(builder_.CreateIsNull(status), after, failed);
  builder_.SetInsertPoint(failed);
  leave(status);
  builder_.SetInsertPoint(after);
  if (!real && !whole) return zero(DType::int32());
  const V at = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), result, offsetof(LathePassed, of));
  const DType wide = real ? DType::float_(64) : DType::int64();
  return cast(wide, n.dtype, builder_.CreateLoad(register_type(wide), at));
}

}  // namespace lathe::codegen
