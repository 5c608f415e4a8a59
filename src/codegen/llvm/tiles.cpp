// The tile registers of AMX (Intel SDM volume 1, chapter 18): programs name them by number and find all eight set up as
// 16 rows of 64 bytes. Every function that uses them sets them up where it begins and after each call, and frees them
// where it returns. Linux hands them out on request (Documentation/arch/x86/xstate.rst): the code asks once.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/emitter.h"
#include "ir/visit.h"

namespace lathe::codegen {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

namespace {

constexpr const char* permission = "lathe.tiles_permitted";
constexpr const char* configuration = "lathe.tile_configuration";

// The 64 bytes that ldtilecfg reads: palette 1, then from byte 16 on the bytes of a row of each tile, from byte 48 on
// its rows.
llvm::GlobalVariable* configuration_of(llvm::Module& module) {
  if (llvm::GlobalVariable* made = module.getNamedGlobal(configuration)) return made;
  std::array<uint8_t, 64> bytes{};
  bytes[0] = 1;
  for (size_t t = 0; t < 8; ++t) {
    bytes[16 + 2 * t] = 64;
    bytes[48 + t] = 16;
  }
  auto* data = llvm::ConstantDataArray::get(module.getContext(), llvm::ArrayRef<uint8_t>(bytes));
  auto* global =
      new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, configuration);
  global->setAlignment(llvm::Align(64));
  return global;
}

// `bool permitted()`: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), its answer kept.
llvm::Function* permission_of(llvm::Module& module) {
  if (llvm::Function* made = module.getFunction(permission)) return made;
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getInt1Ty(), false), llvm::GlobalValue::InternalLinkage,
                                   permission, module);
  f->addFnAttr(llvm::Attribute::NoInline);
  auto* known = new llvm::GlobalVariable(module, b.getInt32Ty(), false, llvm::GlobalValue::InternalLinkage,
                                         b.getInt32(0), "lathe.tiles_known");
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(context, "entry", f);
  llvm::BasicBlock* ask = llvm::BasicBlock::Create(context, "ask", f);
  llvm::BasicBlock* granted = llvm::BasicBlock::Create(context, "granted", f);
  b.SetInsertPoint(entry);
  llvm::LoadInst* seen = b.CreateLoad(b.getInt32Ty(), known);
  seen->setAtomic(llvm::AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateICmpNE(seen, b.getInt32(0)), granted, ask);
  b.SetInsertPoint(ask);
  constexpr int64_t arch_prctl = 158, request_permission = 0x1023, tile_data = 18;
  auto* type = llvm::FunctionType::get(b.getInt64Ty(), {b.getInt64Ty(), b.getInt64Ty(), b.getInt64Ty()}, false);
  auto* system_call = llvm::InlineAsm::get(type, "syscall", "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory}", true);
  llvm::Value* answer =
      b.CreateCall(type, system_call, {b.getInt64(arch_prctl), b.getInt64(request_permission), b.getInt64(tile_data)});
  llvm::Value* yes = b.CreateICmpEQ(answer, b.getInt64(0));
  b.CreateStore(b.CreateZExt(yes, b.getInt32Ty()), known)->setAtomic(llvm::AtomicOrdering::Monotonic);
  b.CreateRet(yes);
  b.SetInsertPoint(granted);
  b.CreateRet(b.getTrue());
  return f;
}

bool is_tile_call(const NodeRef& n) {
  if (&n->node_class() != &node_class_of<Call>()) return false;
  const auto* call = static_cast<const Call*>(n.get());
  if (call->op != &intrinsic::call_llvm_intrin || call->args.empty()) return false;
  const auto* name = call->args[0].as<StringImm>();
  return name && (name->value.starts_with("llvm.x86.tile") || name->value.starts_with("llvm.x86.tdp"));
}

}  // namespace

void KernelEmitter::begin_tiles(const Stmt& body) {
  bool uses = false;
  pre_order(body, [&](const NodeRef& n) {
    uses = uses || is_tile_call(n);
    // A parallel loop's body is a function of its own.
    const auto* loop = &n->node_class() == &node_class_of<For>() ? static_cast<const For*>(n.get()) : nullptr;
    return !uses && !(loop && loop->kind == ForKind::parallel);
  });
  if (!uses || !target_.has("amx-tile") || !llvm::Triple(target_.triple).isOSLinux()) return;
  llvm::BasicBlock *refused = block("no_tiles"), *ready = block("tiles");
  builder_.CreateCondBr(builder_.CreateCall(permission_of(module_)), ready, refused);
  builder_.SetInsertPoint(refused);
  raise(builder_.getInt32(5), "the operating system does not give this process the tile registers of AMX", "");
  builder_.SetInsertPoint(ready);
  builder_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {configuration_of(module_)});
  tile_blocks_.emplace(frame_.function, ready);
}

void KernelEmitter::restore_tiles() {
  if (tile_blocks_.count(frame_.function))
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {configuration_of(module_)});
}

void KernelEmitter::end_tiles() {
  for (const auto& [function, ready] : tile_blocks_)
    for (llvm::BasicBlock& each : *function) {
      auto* leaves = llvm::dyn_cast_or_null<llvm::ReturnInst>(each.getTerminator());
      if (leaves) llvm::IRBuilder<>(leaves).CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
    }
}

}  // namespace lathe::codegen
