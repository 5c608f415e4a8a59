// The kernel's function: signature, parameters, alias scopes, attributes.
#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "ir/visit.h"

namespace lathe::codegen {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

KernelEmitter::KernelEmitter(llvm::Module& module, const Kernel& kernel, const target::Target& target,
                             std::string symbol, DebugLines* lines)
    : module_(module),
      context_(module.getContext()),
      builder_(context_),
      kernel_(kernel),
      target_(target),
      native_(native_functions(target)),
      keeps_order_(keeps_order(kernel, target)),
      symbol_(std::move(symbol)),
      lines_(lines) {
  // a * b + c may become one instruction; nothing else about floats is relaxed.
  llvm::FastMathFlags flags;
  flags.setAllowContract(true);
  builder_.setFastMathFlags(flags);
}

llvm::BasicBlock* KernelEmitter::block(const char* name) {
  return llvm::BasicBlock::Create(context_, name, frame_.function);
}

llvm::AllocaInst* KernelEmitter::stack_slot(llvm::Type* type, const llvm::Twine& name, llvm::Align align) {
  llvm::BasicBlock& entry = frame_.function->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  llvm::AllocaInst* slot = at_entry.CreateAlloca(type, nullptr, name);
  slot->setAlignment(align);
  return slot;
}

llvm::Function* KernelEmitter::declare(llvm::FunctionType* type, const std::string& name, bool internal) {
  auto* f = llvm::Function::Create(
      type, internal ? llvm::GlobalValue::InternalLinkage : llvm::GlobalValue::WeakODRLinkage, name, module_);
  // Equal kernels of two models linked into one program are one; none is seen from outside of it.
  if (!internal) f->setVisibility(llvm::GlobalValue::HiddenVisibility);
  if (keeps_order_) f->addFnAttr(kept_order);
  return f;
}

// One alias scope for each group of parameters that may share memory and for each allocation.
void KernelEmitter::collect_scopes() {
  const PrimFunc& f = *kernel_.function;
  const std::vector<int> groups = sharing_groups(f);
  std::map<int, int> scope_of_group;
  int count = 0;
  for (size_t p = 0; p < f.buffer_map.size(); ++p) {
    const auto [it, is_new] = scope_of_group.try_emplace(groups[p], count);
    count += is_new;
    alias_scopes_[f.buffer_map[p].second->data.get()] = it->second;
  }
  post_order(f.body, [&](const NodeRef& n) {
    if (&n->node_class() == &node_class_of<BufferStore>())
      stored_.insert(static_cast<const BufferStore*>(n.get())->buffer->data.get());
    const VarNode* var = nullptr;
    if (&n->node_class() == &node_class_of<Allocate>()) var = static_cast<const Allocate*>(n.get())->buffer_var.get();
    if (&n->node_class() == &node_class_of<AllocateConst>())
      var = static_cast<const AllocateConst*>(n.get())->buffer_var.get();
    if (var && alias_scopes_.try_emplace(var, count).second) ++count;
  });
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::Metadata*> scopes;
  for (int s = 0; s < count; ++s) scopes.push_back(metadata.createAnonymousAliasScope(domain));
  for (int s = 0; s < count; ++s) {
    std::vector<llvm::Metadata*> others;
    for (int o = 0; o < count; ++o)
      if (o != s) others.push_back(scopes[static_cast<size_t>(o)]);
    alias_scope_.push_back(llvm::MDNode::get(context_, {scopes[static_cast<size_t>(s)]}));
    alias_others_.push_back(others.empty() ? nullptr : llvm::MDNode::get(context_, others));
  }
}

void KernelEmitter::bind_parameters() {
  const PrimFunc& f = *kernel_.function;
  llvm::MDNode* invariant = llvm::MDNode::get(context_, {});
  unsigned handle = 0, scalar = 0;
  for (const Var& param : f.params) {
    const Buffer buffer = f.buffer_of(param);
    const bool is_handle = param->dtype.is_handle();
    const V table = frame_.function->getArg(is_handle ? 2 : 3);
    const unsigned number = is_handle ? handle++ : scalar++;
    llvm::Type* type = is_handle ? static_cast<llvm::Type*>(builder_.getPtrTy()) : builder_.getInt64Ty();
    const V slot = builder_.CreateConstInBoundsGEP1_64(type, table, number);
    llvm::LoadInst* v = builder_.CreateLoad(type, slot, param->name);
    v->setMetadata(llvm::LLVMContext::MD_invariant_load, invariant);
    frame_.values[param.get()] = v;
    if (!buffer) continue;
    Storage storage;
    storage.address = v;
    storage.scope = alias_scopes_.at(buffer->data.get());
    frame_.storages[buffer->data.get()] = storage;
  }
}

llvm::Function* KernelEmitter::emit() {
  auto* pointer = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {pointer, pointer, pointer, pointer}, false);
  llvm::Function* f = declare(type, symbol_, false);
  frame_.function = f;
  frame_.services = f->getArg(0);
  frame_.call_state = f->getArg(1);
  for (unsigned a = 0; a < 4; ++a) f->addParamAttr(a, llvm::Attribute::NoAlias);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", f));
  if (lines_) builder_.SetCurrentDebugLocation(lines_->begin(*f, kernel_.name, kernel_));
  collect_scopes();
  polls_ = plan_polls(kernel_.function->body);
  bind_parameters();
  begin_tiles(kernel_.function->body);
  statement(kernel_.function->body);
  if (!terminated()) builder_.CreateRet(builder_.getInt32(0));
  end_tiles();
  for (llvm::Function& each : module_)
    if (!each.isDeclaration() && !each.hasFnAttribute("target-features")) set_target_attributes(each, target_);
  return f;
}

}  // namespace lathe::codegen
