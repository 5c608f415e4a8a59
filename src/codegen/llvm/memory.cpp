// Loads and stores: contiguous, gathered, masked, and of register buffers; packed.cpp has those below a byte.
#include "codegen/llvm/emitter.h"
#include "ir/build.h"
#include "support/mutation.h"

namespace lathe::codegen {

LATHE_FAULT(llvm_drop_store_mask, "codegen_llvm_test", "a masked vector store writes all of its lanes");

using namespace ir;  // NOLINT

namespace {

// A vector index as base + lane * stride, or nothing.
struct Contiguity {
  Expr base;
  int64_t stride;
};

std::optional<Contiguity> as_ramp(const Expr& e) {
  if (const auto* n = e.as<Ramp>()) {
    if (const auto stride = as_int(n->stride)) return Contiguity{n->base, *stride};
    return std::nullopt;
  }
  if (const auto* n = e.as<Broadcast>()) {
    if (n->value->dtype.is_scalar()) return Contiguity{n->value, 0};
    return std::nullopt;
  }
  if (const auto* n = e.as<Add>()) {
    const auto a = as_ramp(n->a), b = as_ramp(n->b);
    if (a && b) return Contiguity{ir::add(a->base, b->base), a->stride + b->stride};
  }
  if (const auto* n = e.as<Sub>()) {
    const auto a = as_ramp(n->a), b = as_ramp(n->b);
    if (a && b) return Contiguity{ir::sub(a->base, b->base), a->stride - b->stride};
  }
  if (const auto* n = e.as<Mul>()) {
    const auto a = as_ramp(n->a), b = as_ramp(n->b);
    if (a && b && b->stride == 0)
      if (const auto factor = as_int(b->base)) return Contiguity{ir::mul(a->base, b->base), a->stride * *factor};
  }
  return std::nullopt;
}

}  // namespace

Storage& KernelEmitter::storage_of(const Buffer& buffer) {
  const auto it = frame_.storages.find(buffer->data.get());
  if (it != frame_.storages.end()) return it->second;
  // A pointer bound by a let: memory of which nothing is known.
  Storage unknown;
  unknown.address = frame_.values.at(buffer->data.get());
  unknown.shared = frame_.parallel_body;
  return frame_.storages[buffer->data.get()] = unknown;
}

void KernelEmitter::tag(llvm::Instruction* access, const Buffer& buffer) {
  const int scope = storage_of(buffer).scope;
  if (scope < 0) return;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, alias_scope_[static_cast<size_t>(scope)]);
  if (llvm::MDNode* others = alias_others_[static_cast<size_t>(scope)])
    access->setMetadata(llvm::LLVMContext::MD_noalias, others);
}

KernelEmitter::V KernelEmitter::index_value(const Expr& index) {
  const bool outer = std::exchange(in_index_, true);
  const V v = value(index);
  in_index_ = outer;
  return v;
}

// The address of element `index`, or of each lane's.
KernelEmitter::V KernelEmitter::address(const Buffer& buffer, V index) {
  return builder_.CreateInBoundsGEP(memory_type(buffer->dtype), storage_of(buffer).address, index);
}

// The lanes an access touches; null: all of them.
KernelEmitter::V KernelEmitter::mask_of(const Expr& predicate, int lanes) {
  V mask = nullptr;
  if (predicate && !is_int(predicate, 1)) {
    const V live = std::exchange(live_, nullptr);
    mask = value(predicate);
    live_ = live;
  }
  if (!live_) return mask;
  V live = live_;
  if (lanes == 1 && lanes_of(live) > 1) live = builder_.CreateOrReduce(live);
  if (lanes_of(live) == 1 && lanes > 1) live = splat(live, lanes);
  support::require(lanes_of(live) == lanes, "an access has other lanes than the choice around it");
  return mask ? builder_.CreateAnd(mask, live) : live;
}

KernelEmitter::V KernelEmitter::load(const BufferLoad& n) {
  const DType t = n.dtype, element = n.buffer->dtype;
  const Expr& index = n.indices.at(0);
  Storage& storage = storage_of(n.buffer);
  if (!storage.address) {
    const tir::RegisterIndex at = *tir::register_index(index);
    const V v = at.stride == 1 ? load_registers(storage, at.first, t.lanes) : load_apart(storage, t, at);
    const V mask = n.predicate ? mask_of(n.predicate, t.lanes) : nullptr;
    return mask ? builder_.CreateSelect(mask, v, zero(t)) : v;
  }
  const llvm::Align align(static_cast<uint64_t>(element.element_bytes()));
  const auto ramp = t.is_vector() ? as_ramp(index) : std::nullopt;
  V mask = mask_of(n.predicate, t.lanes);

  if (t.is_scalar() || (ramp && ramp->stride == 0 && !mask)) {
    const V at_index = index_value(t.is_scalar() ? index : ramp->base);
    const auto read = [&]() -> V {
      if (is_packed(element)) return load_packed(n.buffer, at_index);
      return from_memory(
          tagged(builder_.CreateAlignedLoad(memory_type(element), address(n.buffer, at_index), align), n.buffer),
          element);
    };
    if (!mask) return splat(read(), t.lanes);
    llvm::BasicBlock *before = builder_.GetInsertBlock(), *reads = block("read"), *after = block("after_read");
    builder_.CreateCondBr(mask, reads, after);
    builder_.SetInsertPoint(reads);
    const V v = read();
    llvm::BasicBlock* from = builder_.GetInsertBlock();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    llvm::PHINode* phi = builder_.CreatePHI(v->getType(), 2);
    phi->addIncoming(zero(t), before);
    phi->addIncoming(v, from);
    return phi;
  }
  if (is_packed(element)) return load_packed_lanes(n.buffer, index, mask);
  llvm::Type* type = memory_type(t);
  if (ramp && ramp->stride == 1) {
    const V at = address(n.buffer, index_value(ramp->base));
    if (!mask) return from_memory(tagged(builder_.CreateAlignedLoad(type, at, align), n.buffer), t);
    return from_memory(
        tagged(builder_.CreateMaskedLoad(type, at, align, mask, llvm::Constant::getNullValue(type)), n.buffer), t);
  }
  const V at = address(n.buffer, index_value(index));
  return from_memory(
      tagged(builder_.CreateMaskedGather(type, at, align, mask, llvm::Constant::getNullValue(type)), n.buffer), t);
}

void KernelEmitter::store(const tir::BufferStore& n) {
  const DType element = n.buffer->dtype, t = n.value->dtype;
  const Expr& index = n.indices.at(0);
  const V v = value(n.value);
  Storage& storage = storage_of(n.buffer);
  V mask = mask_of(n.predicate, t.lanes);
  if (!storage.address) {
    return store_registers(storage, tir::register_index(index)->first, t.lanes, v, mask);
  }
  const llvm::Align align(static_cast<uint64_t>(element.element_bytes()));
  const auto ramp = t.is_vector() ? as_ramp(index) : std::nullopt;
  if (is_packed(element)) return store_packed_lanes(n.buffer, index, v, mask);
  if (t.is_scalar()) {
    const V at = index_value(index);
    llvm::BasicBlock* after = nullptr;
    if (mask) {
      llvm::BasicBlock* writes = block("write");
      after = block("after_write");
      builder_.CreateCondBr(mask, writes, after);
      builder_.SetInsertPoint(writes);
    }
    tag(builder_.CreateAlignedStore(to_memory(v, element), address(n.buffer, at), align), n.buffer);
    if (after) {
      builder_.CreateBr(after);
      builder_.SetInsertPoint(after);
    }
    return;
  }
  const V memory = to_memory(v, t);
  if (ramp && ramp->stride == 1) {
    V at_index = index_value(ramp->base);
    if (mask && support::flip(llvm_drop_store_mask)) mask = nullptr;
    const V at = address(n.buffer, at_index);
    if (mask)
      tag(builder_.CreateMaskedStore(memory, at, align, mask), n.buffer);
    else
      tag(builder_.CreateAlignedStore(memory, at, align), n.buffer);
    return;
  }
  // A scatter writes its lanes in order: of two lanes at one address the later one stays.
  const V at = address(n.buffer, index_value(index));
  const V all = mask ? mask : llvm::Constant::getAllOnesValue(i(1, t.lanes));
  tag(builder_.CreateMaskedScatter(memory, at, align, all), n.buffer);
}

// A register buffer is split where no access crosses; most chunks are one vector and all its accesses are whole.
KernelEmitter::V KernelEmitter::load_registers(const Storage& storage, int64_t first, int lanes) {
  for (const Storage::Chunk& chunk : storage.chunks) {
    if (first < chunk.first || first + lanes > chunk.first + chunk.count) continue;
    llvm::Type* whole = chunk.slot->getAllocatedType();
    const V v = builder_.CreateLoad(whole, chunk.slot);
    if (chunk.count == lanes) return v;
    const int from = static_cast<int>(first - chunk.first);
    if (lanes == 1) return builder_.CreateExtractElement(v, static_cast<uint64_t>(from));
    std::vector<int> picked(static_cast<size_t>(lanes));
    std::iota(picked.begin(), picked.end(), from);
    return builder_.CreateShuffleVector(v, picked);
  }
  support::unreachable("an access of a register buffer has no chunk");
}

void KernelEmitter::store_registers(const Storage& storage, int64_t first, int lanes, V v, V mask) {
  if (mask) v = builder_.CreateSelect(mask, v, load_registers(storage, first, lanes));
  for (const Storage::Chunk& chunk : storage.chunks) {
    if (first < chunk.first || first + lanes > chunk.first + chunk.count) continue;
    if (chunk.count == lanes) {
      builder_.CreateStore(v, chunk.slot);
      return;
    }
    V whole = builder_.CreateLoad(chunk.slot->getAllocatedType(), chunk.slot);
    for (int l = 0; l < lanes; ++l) {
      const V lane = lanes == 1 ? v : builder_.CreateExtractElement(v, static_cast<uint64_t>(l));
      whole = builder_.CreateInsertElement(whole, lane, static_cast<uint64_t>(first - chunk.first + l));
    }
    builder_.CreateStore(whole, chunk.slot);
    return;
  }
  support::unreachable("an access of a register buffer has no chunk");
}

}  // namespace lathe::codegen
