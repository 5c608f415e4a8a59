// Elements below a byte, packed low bits first: how they are read and written is known here alone.
//
// A run of lanes that begins with a byte and ends with one is moved as bytes. Any other element is written by reading
// its byte, changing its bits and writing the byte back; where another thread may do so to the same byte, each of the
// two changes (bits off, bits on) is atomic, so that neighbours keep what they are given.
#include "arith/analyzer.h"
#include "codegen/llvm/emitter.h"
#include "support/mutation.h"

namespace lathe::codegen {

LATHE_FAULT(llvm_packed_neighbours, "codegen_llvm_test", "threads that share a byte lose what the other one writes");
LATHE_FAULT(llvm_packed_tail, "codegen_llvm_test", "a masked store of packed elements leaves out the last byte");

using namespace ir;  // NOLINT

namespace {

int per_byte(DType t) { return 8 / static_cast<int>(t.storage_bits()); }

// Whether `index` is base, base + 1, … from the first element of a byte to the last one of a byte; its first then.
Expr run_of_bytes(const Expr& index, DType element) {
  const auto* ramp = index.as<Ramp>();
  if (!ramp || !is_int(ramp->stride, 1) || ramp->lanes % per_byte(element) != 0) return {};
  arith::Analyzer analyzer;
  const arith::ModularSet first = analyzer.modular_set(ramp->base);
  return first.coeff % per_byte(element) == 0 && first.base % per_byte(element) == 0 ? ramp->base : Expr{};
}

// Lane k of the result is lane k / each of `v`.
llvm::Value* repeated(llvm::IRBuilder<>& b, llvm::Value* v, int lanes, int each) {
  std::vector<int> from;
  for (int l = 0; l < lanes; ++l) from.push_back(l / each);
  return b.CreateShuffleVector(v, from);
}

// Lane k of the result is lane k * each + part of `v`.
llvm::Value* strided(llvm::IRBuilder<>& b, llvm::Value* v, int lanes, int each, int part) {
  std::vector<int> from;
  for (int l = 0; l < lanes / each; ++l) from.push_back(l * each + part);
  return b.CreateShuffleVector(v, from);
}

// The shift of each lane within its byte, where lane 0 begins one.
llvm::Constant* shifts(llvm::IRBuilder<>& b, int lanes, DType element) {
  std::vector<llvm::Constant*> amounts;
  for (int l = 0; l < lanes; ++l)
    amounts.push_back(b.getInt8(static_cast<uint8_t>(l % per_byte(element) * element.storage_bits())));
  return llvm::ConstantVector::get(amounts);
}

uint8_t ones_of(DType element) { return static_cast<uint8_t>((1 << element.storage_bits()) - 1); }

}  // namespace

// Whether another thread may write a neighbour of the element at the same time.
bool KernelEmitter::is_contended(const Buffer& buffer) {
  return storage_of(buffer).shared && stored_.count(buffer->data.get()) && !support::flip(llvm_packed_neighbours);
}

KernelEmitter::V KernelEmitter::byte_of(const Buffer& buffer, V index) {
  const auto log = static_cast<uint64_t>(std::countr_zero(static_cast<unsigned>(per_byte(buffer->dtype))));
  return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), storage_of(buffer).address, builder_.CreateLShr(index, log));
}

KernelEmitter::V KernelEmitter::shift_of(const Buffer& buffer, V index) {
  const V byte = builder_.CreateTrunc(index, i(8, lanes_of(index)));
  const auto within = static_cast<uint64_t>(per_byte(buffer->dtype) - 1);
  return builder_.CreateMul(
      builder_.CreateAnd(byte, within),
      llvm::ConstantInt::get(byte->getType(), static_cast<uint64_t>(buffer->dtype.storage_bits())));
}

KernelEmitter::V KernelEmitter::load_packed(const Buffer& buffer, V index) {
  llvm::LoadInst* byte = builder_.CreateAlignedLoad(builder_.getInt8Ty(), byte_of(buffer, index), llvm::Align(1));
  if (is_contended(buffer)) byte->setAtomic(llvm::AtomicOrdering::Monotonic);
  tag(byte, buffer);
  return builder_.CreateTrunc(builder_.CreateLShr(byte, shift_of(buffer, index)), scalar_type(buffer->dtype));
}

void KernelEmitter::store_packed(const Buffer& buffer, V index, V bits) {
  const V at = byte_of(buffer, index), shift = shift_of(buffer, index);
  const V others = builder_.CreateNot(builder_.CreateShl(builder_.getInt8(ones_of(buffer->dtype)), shift));
  const V placed = builder_.CreateShl(builder_.CreateZExt(bits, builder_.getInt8Ty()), shift);
  if (is_contended(buffer)) {
    const auto change = [&](llvm::AtomicRMWInst::BinOp op, V with) {
      tag(builder_.CreateAtomicRMW(op, at, with, llvm::Align(1), llvm::AtomicOrdering::Monotonic), buffer);
    };
    change(llvm::AtomicRMWInst::And, others);
    change(llvm::AtomicRMWInst::Or, placed);
    return;
  }
  const V byte = tagged(builder_.CreateAlignedLoad(builder_.getInt8Ty(), at, llvm::Align(1)), buffer);
  const V changed = builder_.CreateOr(builder_.CreateAnd(byte, others), placed);
  tag(builder_.CreateAlignedStore(changed, at, llvm::Align(1)), buffer);
}

// Lanes that are off are 0, and their bytes are read only where a lane of theirs is on.
KernelEmitter::V KernelEmitter::load_whole_bytes(const Buffer& buffer, V first, int lanes, V mask) {
  const DType element = buffer->dtype;
  const int each = per_byte(element);
  auto* type = llvm::FixedVectorType::get(builder_.getInt8Ty(), static_cast<unsigned>(lanes / each));
  const V at = byte_of(buffer, first);
  V bytes = nullptr;
  if (mask) {
    V any = strided(builder_, mask, lanes, each, 0);
    for (int part = 1; part < each; ++part) any = builder_.CreateOr(any, strided(builder_, mask, lanes, each, part));
    bytes =
        tagged(builder_.CreateMaskedLoad(type, at, llvm::Align(1), any, llvm::Constant::getNullValue(type)), buffer);
  } else {
    bytes = tagged(builder_.CreateAlignedLoad(type, at, llvm::Align(1)), buffer);
  }
  const V spread = builder_.CreateLShr(repeated(builder_, bytes, lanes, each), shifts(builder_, lanes, element));
  const V result = builder_.CreateTrunc(spread, register_type(element.with_lanes(lanes)));
  return mask ? builder_.CreateSelect(mask, result, zero(element.with_lanes(lanes))) : result;
}

// Bytes whose lanes are all on are written as they are, those with some on element by element.
void KernelEmitter::store_whole_bytes(const Buffer& buffer, V first, V lanes_value, V mask) {
  const DType element = buffer->dtype;
  const int lanes = lanes_of(lanes_value), each = per_byte(element);
  const V placed = builder_.CreateShl(builder_.CreateZExt(lanes_value, i(8, lanes)), shifts(builder_, lanes, element));
  V bytes = strided(builder_, placed, lanes, each, 0);
  for (int part = 1; part < each; ++part)
    bytes = builder_.CreateOr(bytes, strided(builder_, placed, lanes, each, part));
  const V at = byte_of(buffer, first);
  if (!mask) {
    tag(builder_.CreateAlignedStore(bytes, at, llvm::Align(1)), buffer);
    return;
  }
  V all = strided(builder_, mask, lanes, each, 0);
  for (int part = 1; part < each; ++part) all = builder_.CreateAnd(all, strided(builder_, mask, lanes, each, part));
  tag(builder_.CreateMaskedStore(bytes, at, llvm::Align(1), all), buffer);
  if (support::flip(llvm_packed_tail)) return;
  const V rest = builder_.CreateAnd(mask, builder_.CreateNot(repeated(builder_, all, lanes, each)));
  llvm::BasicBlock *partial = block("partial_bytes"), *after = block("after_bytes");
  builder_.CreateCondBr(builder_.CreateOrReduce(rest), partial, after);
  builder_.SetInsertPoint(partial);
  for (int l = 0; l < lanes; ++l) {
    llvm::BasicBlock *writes = block("write"), *next = block("after_write");
    builder_.CreateCondBr(builder_.CreateExtractElement(rest, static_cast<uint64_t>(l)), writes, next);
    builder_.SetInsertPoint(writes);
    store_packed(buffer, builder_.CreateAdd(first, llvm::ConstantInt::get(first->getType(), static_cast<uint64_t>(l))),
                 builder_.CreateExtractElement(lanes_value, static_cast<uint64_t>(l)));
    builder_.CreateBr(next);
    builder_.SetInsertPoint(next);
  }
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
}

KernelEmitter::V KernelEmitter::load_packed_lanes(const Buffer& buffer, const Expr& index, V mask) {
  const DType element = buffer->dtype;
  const int lanes = index->dtype.lanes;
  if (const Expr first = run_of_bytes(index, element); first && !is_contended(buffer))
    return load_whole_bytes(buffer, index_value(first), lanes, mask);
  const V at = index_value(index);
  V result = zero(element.with_lanes(lanes));
  for (int l = 0; l < lanes; ++l) {
    V lane = builder_.CreateExtractElement(at, static_cast<uint64_t>(l));
    // A lane that is off reads element 0, which is there, and drops it.
    const V on = mask ? builder_.CreateExtractElement(mask, static_cast<uint64_t>(l)) : nullptr;
    if (on) lane = builder_.CreateSelect(on, lane, builder_.getInt64(0));
    V bits = load_packed(buffer, lane);
    if (on) bits = builder_.CreateSelect(on, bits, llvm::Constant::getNullValue(bits->getType()));
    result = builder_.CreateInsertElement(result, bits, static_cast<uint64_t>(l));
  }
  return result;
}

void KernelEmitter::store_packed_lanes(const Buffer& buffer, const Expr& index, V lanes, V mask) {
  if (const Expr first = run_of_bytes(index, buffer->dtype))
    return store_whole_bytes(buffer, index_value(first), lanes, mask);
  const V at = index_value(index);
  const int count = index->dtype.lanes;
  for (int l = 0; l < count; ++l) {
    const auto lane = [&](V x) { return count == 1 ? x : builder_.CreateExtractElement(x, static_cast<uint64_t>(l)); };
    llvm::BasicBlock* after = nullptr;
    if (mask) {
      llvm::BasicBlock* writes = block("write");
      after = block("after_write");
      builder_.CreateCondBr(lane(mask), writes, after);
      builder_.SetInsertPoint(writes);
    }
    store_packed(buffer, lane(at), lane(lanes));
    if (!after) continue;
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }
}

}  // namespace lathe::codegen
