// Statements: loops, conditions, local memory, checks.
#include "codegen/llvm/emitter.h"
#include "ir/match.h"
#include "ir/visit.h"
#include "support/mutation.h"

namespace lathe::codegen {

LATHE_FAULT(llvm_loop_end, "codegen_llvm_test", "a loop leaves out its last iteration");

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

namespace {
// Larger local memory comes from the heap: a thread's stack is small.
constexpr int64_t largest_stack_slot = 256 * 1024;
constexpr uint64_t memory_alignment = 64;
}  // namespace

void KernelEmitter::allocate_registers(const Allocate& n, Storage& storage) {
  // The accesses decide where the buffer is cut: overlapping ranges stay together.
  std::vector<std::pair<int64_t, int64_t>> ranges;
  post_order(n.body, [&](const NodeRef& node) {
    const Buffer* buffer = nullptr;
    const std::vector<Expr>* indices = nullptr;
    if (&node->node_class() == &node_class_of<BufferLoad>()) {
      const auto* l = static_cast<const BufferLoad*>(node.get());
      buffer = &l->buffer, indices = &l->indices;
    } else if (&node->node_class() == &node_class_of<BufferStore>()) {
      const auto* s = static_cast<const BufferStore*>(node.get());
      buffer = &s->buffer, indices = &s->indices;
    }
    if (!buffer || !((*buffer)->data == n.buffer_var)) return;
    const RegisterIndex index = *register_index(indices->at(0));
    if (index.stride == 1) {
      ranges.emplace_back(index.first, index.first + index.lanes);
      return;
    }
    for (int64_t lane = 0; lane < index.lanes; ++lane)
      ranges.emplace_back(index.first + lane * index.stride, index.first + lane * index.stride + 1);
  });
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::pair<int64_t, int64_t>> merged;
  for (const auto& [first, end] : ranges) {
    if (!merged.empty() && first < merged.back().second)
      merged.back().second = std::max(merged.back().second, end);
    else
      merged.emplace_back(first, end);
  }
  for (const auto& [first, end] : merged) {
    llvm::Type* type = register_type(n.dtype.with_lanes(static_cast<int>(end - first)));
    llvm::AllocaInst* slot = stack_slot(type, n.buffer_var->name, llvm::Align(1));
    slot->setAlignment(module_.getDataLayout().getPrefTypeAlign(type));
    storage.chunks.push_back({first, end - first, slot});
  }
}

void KernelEmitter::allocate_on_heap(const Allocate& n) {
  const auto scope = alias_scopes_.find(n.buffer_var.get());
  const V elements = index_value(n.extents.empty() ? int64(1) : n.extents[0]);
  const V bits = builder_.CreateMul(elements, builder_.getInt64(static_cast<uint64_t>(n.dtype.storage_bits())));
  const V bytes = builder_.CreateLShr(builder_.CreateAdd(bits, builder_.getInt64(7)), 3);
  Storage storage;
  storage.scope = scope == alias_scopes_.end() ? -1 : scope->second;
  storage.address = heap(bytes);
  frame_.storages[n.buffer_var.get()] = storage;
}

bool lies_on_heap(const Allocate& n) {
  if (n.scope == "register") return false;
  const std::optional<int64_t> constant = n.extents.empty() ? 1 : as_int(n.extents[0]);
  return n.scope != "local" || !constant || n.dtype.storage_bytes(*constant) > largest_stack_slot;
}

void KernelEmitter::allocate(const Allocate& n) {
  if (frame_.allocated_ahead.count(n.buffer_var.get())) return statement(n.body);
  if (lies_on_heap(n)) {
    allocate_on_heap(n);
    const V address = frame_.storages.at(n.buffer_var.get()).address;
    statement(n.body);
    if (!terminated()) release(address);
    return;
  }
  const auto scope = alias_scopes_.find(n.buffer_var.get());
  Storage storage;
  storage.scope = scope == alias_scopes_.end() ? -1 : scope->second;
  if (n.scope == "register") {
    allocate_registers(n, storage);
    frame_.storages[n.buffer_var.get()] = storage;
    return statement(n.body);
  }
  const int64_t count = n.extents.empty() ? 1 : *as_int(n.extents[0]);
  const int64_t bytes = std::max<int64_t>(1, n.dtype.storage_bytes(count));
  auto* type = llvm::ArrayType::get(builder_.getInt8Ty(), static_cast<uint64_t>(bytes));
  storage.address = stack_slot(type, n.buffer_var->name, llvm::Align(memory_alignment));
  frame_.storages[n.buffer_var.get()] = storage;
  statement(n.body);
}

void KernelEmitter::allocate_constant(const AllocateConst& n) {
  const std::string_view bytes = n.data->view();
  auto* data = llvm::ConstantDataArray::getString(context_, llvm::StringRef(bytes.data(), bytes.size()), false);
  auto* global =
      new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "constant");
  global->setAlignment(llvm::Align(memory_alignment));
  const auto scope = alias_scopes_.find(n.buffer_var.get());
  Storage storage;
  storage.address = global;
  storage.scope = scope == alias_scopes_.end() ? -1 : scope->second;
  frame_.storages[n.buffer_var.get()] = storage;
  statement(n.body);
}

void KernelEmitter::conditional(const IfThenElse& n) {
  const V condition = value(n.condition);
  llvm::BasicBlock *then_block = block("then"), *else_block = n.else_case ? block("else") : nullptr,
                   *after = block("after_if");
  builder_.CreateCondBr(condition, then_block, else_block ? else_block : after);
  builder_.SetInsertPoint(then_block);
  statement(n.then_case);
  if (!terminated()) builder_.CreateBr(after);
  if (else_block) {
    builder_.SetInsertPoint(else_block);
    statement(n.else_case);
    if (!terminated()) builder_.CreateBr(after);
  }
  builder_.SetInsertPoint(after);
}

void KernelEmitter::while_loop(const While& n) {
  llvm::BasicBlock *head = block("while"), *body = block("while_body"), *after = block("after_while");
  builder_.CreateBr(head);
  builder_.SetInsertPoint(head);
  builder_.CreateCondBr(value(n.condition), body, after);
  builder_.SetInsertPoint(body);
  statement(n.body);
  if (!terminated()) ask(head);
  builder_.SetInsertPoint(after);
}

void KernelEmitter::statement(const Stmt& s) {
  // What follows a return is never reached.
  if (terminated()) return;
  const llvm::DebugLoc around = builder_.getCurrentDebugLocation();
  if (lines_) builder_.SetCurrentDebugLocation(lines_->at(s.get(), *frame_.function, kernel_, around));
  match_all(
      s,
      [&](const LetStmt& n) {
        frame_.values[n.var.get()] = value(n.value);
        statement(n.body);
      },
      [&](const AttrStmt& n) { statement(n.body); }, [&](const AssertStmt& n) { check(n, s); },
      [&](const BufferStore& n) { store(n); },
      [&](const DeclBuffer&) { support::unreachable("a DeclBuffer is left in a kernel"); },
      [&](const Allocate& n) { allocate(n); }, [&](const AllocateConst& n) { allocate_constant(n); },
      [&](const SeqStmt& n) {
        for (const Stmt& child : n.seq) statement(child);
      },
      [&](const IfThenElse& n) { conditional(n); }, [&](const Evaluate& n) { value(n.value); },
      [&](const For& n) {
        if (n.kind == ForKind::parallel && !frame_.parallel_body) return parallel_loop(n);
        const V begin = index_value(n.min);
        V end = builder_.CreateAdd(begin, index_value(n.extent), "", false, true);
        if (support::flip(llvm_loop_end)) end = builder_.CreateSub(end, llvm::ConstantInt::get(end->getType(), 1));
        const std::optional<int64_t> extent = as_int(n.extent);
        if (extent && *extent <= 0) return;
        llvm::BasicBlock* after = block("after");
        iterate(n, begin, end, extent.has_value(), after);
        builder_.SetInsertPoint(after);
      },
      [&](const While& n) { while_loop(n); },
      [&](const Block&) { support::unreachable("a block is left in a kernel"); },
      [&](const BlockRealize&) { support::unreachable("a block is left in a kernel"); });
  builder_.SetCurrentDebugLocation(around);
}

}  // namespace lathe::codegen
