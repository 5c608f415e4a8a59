// Calls through the services table (abi/services.h): errors and scratch memory.
#include "abi/services.h"

#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/emitter.h"

namespace lathe::codegen {

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

}  // namespace lathe::codegen
