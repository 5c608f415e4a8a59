#include "codegen/llvm/program/program_emitter.h"

#include <llvm/IR/MDBuilder.h>

#include "abi/compiled_program.h"
#include "abi/tensor_extent.h"
#include "support/mutation.h"

namespace lathe::codegen {

using abi::Opcode;
using abi::StorageKind;
using abi::ValueKind;

LATHE_FAULT(program_loop_turn, "codegen_llvm_test", "the last turn of a compiled program's loop is forgotten");
LATHE_FAULT(program_floor, "codegen_llvm_test", "compiled programs round quotients towards zero");
LATHE_FAULT(program_view_start, "codegen_llvm_test", "views of compiled programs begin at the first element");
LATHE_FAULT(program_given_scalar, "codegen_llvm_test", "the runtime is not given the scalars of what it executes");
LATHE_FAULT(program_storage_offset, "codegen_llvm_test",
            "planned tensors of compiled programs lie at the arena's start");
LATHE_FAULT(program_shape_check, "codegen_llvm_test", "compiled programs let every shape pass");

namespace {

// What a branch is told of a way that is hardly ever taken.
llvm::MDNode* rarely(llvm::LLVMContext& context) { return llvm::MDBuilder(context).createBranchWeights(1 << 20, 1); }

uint64_t bits_of(DLDataType dtype) { return uint64_t{dtype.bits} * dtype.lanes; }

}  // namespace

ProgramEmitter::ProgramEmitter(llvm::Module& module, const abi::ProgramView& program,
                               const abi::FunctionRecord& function, const ProgramValues& values)
    : module_(module),
      context_(module.getContext()),
      builder_(context_),
      program_(program),
      function_(function),
      values_(values) {}

// ---- values ----

ProgramEmitter::V ProgramEmitter::scalar(uint32_t word) {
  if ((word & abi::immediate_bit) != 0) return number(program_.integers[word & ~abi::immediate_bit]);
  return read(kept_[word][0]);
}

ProgramEmitter::V ProgramEmitter::read(const Cell& cell) {
  return cell.slot ? builder_.CreateLoad(cell.type, cell.slot) : cell.value;
}

void ProgramEmitter::write(Cell& cell, V value) {
  if (cell.slot)
    builder_.CreateStore(value, cell.slot);
  else
    cell.value = value;
}

ProgramEmitter::Operands ProgramEmitter::scalars(Words words, uint32_t count) {
  Operands all;
  for (uint32_t i = 0; i < count; ++i) all.push_back(scalar(words[i]));
  return all;
}

ProgramEmitter::V ProgramEmitter::field(V base, size_t offset, llvm::Type* type, bool is_fixed) {
  const V at = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), base, offset);
  llvm::LoadInst* loaded = builder_.CreateLoad(type, at);
  if (is_fixed) loaded->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  return loaded;
}

ProgramEmitter::V ProgramEmitter::slot(uint32_t reg, size_t offset) {
  return builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), registers_,
                                             uint64_t{reg} * sizeof(LatheRegister) + offset);
}

ProgramEmitter::V ProgramEmitter::object(uint32_t reg) {
  const V held = builder_.CreateLoad(builder_.getPtrTy(), slot(reg, offsetof(LatheRegister, object)));
  return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), held, tensor_offset_);
}

ProgramEmitter::V ProgramEmitter::data_of(uint32_t reg) {
  if (lent(reg)) return read(kept_[reg][0]);
  return field(object(reg), offsetof(DLTensor, data), builder_.getPtrTy(), false);
}

ProgramEmitter::V ProgramEmitter::dim_of(uint32_t reg, uint32_t axis) {
  if (const auto& tensor = lent(reg)) {
    if (tensor->dims) return number((*tensor->dims)[axis]);
    return read(kept_[reg][2 + axis]);
  }
  const V shape = field(object(reg), offsetof(DLTensor, shape), builder_.getPtrTy(), false);
  return field(shape, axis * sizeof(int64_t), builder_.getInt64Ty(), false);
}

ProgramEmitter::V ProgramEmitter::bytes_of(uint32_t reg) {
  if (const auto& dims = lent(reg)->dims) return builder_.getInt64(tensor_bytes(this->reg(reg).dtype, *dims).value());
  return read(kept_[reg][1]);
}

int32_t ProgramEmitter::rank_of(uint32_t reg) const {
  return lent(reg) ? static_cast<int32_t>(lent(reg)->rank) : this->reg(reg).rank;
}

void ProgramEmitter::set_tensor(uint32_t reg, V data, V bytes, const Operands& dims) {
  Kept& kept = kept_[reg];
  write(kept[0], data);
  if (kept.size() == 1) return;
  write(kept[1], bytes);
  for (size_t i = 0; i < dims.size(); ++i) write(kept[2 + i], dims[i]);
}

// As the runtime multiplies: sizes are looked at before zeros, so that strides fit whatever the order. Fixed sizes fold
// to constants here.
ProgramEmitter::Extent ProgramEmitter::extent(DLDataType dtype, const Operands& dims) {
  std::vector<int64_t> fixed;
  for (const V dim : dims)
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(dim)) fixed.push_back(constant->getSExtValue());
  if (fixed.size() == dims.size()) {
    const auto bytes = tensor_bytes(dtype, fixed);
    return {bytes ? nullptr : builder_.getFalse(), builder_.getInt64(bytes.value_or(0))};
  }
  Extent& known = extents_[{std::vector<V>(dims.begin(), dims.end()), bits_of(dtype)}];
  if (known.bytes) return known;
  V product = number(1), fits = builder_.getTrue(), is_empty = builder_.getFalse();
  for (const V dim : dims) {
    const V is_zero = builder_.CreateICmpEQ(dim, number(0));
    is_empty = builder_.CreateOr(is_empty, is_zero);
    fits = builder_.CreateAnd(fits, builder_.CreateICmpSGE(dim, number(0)));
    const V factor = builder_.CreateSelect(is_zero, number(1), dim);
    const V wide = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umul_with_overflow, product, factor);
    fits = builder_.CreateAnd(fits, builder_.CreateNot(builder_.CreateExtractValue(wide, 1)));
    product = builder_.CreateExtractValue(wide, 0);
    fits = builder_.CreateAnd(fits, builder_.CreateICmpULE(product, builder_.getInt64(uint64_t{1} << 60)));
  }
  const uint64_t bits = bits_of(dtype);
  fits = builder_.CreateAnd(fits, builder_.CreateICmpULE(product, builder_.getInt64((uint64_t{1} << 62) / bits)));
  const V all_bits = builder_.CreateAdd(builder_.CreateMul(product, builder_.getInt64(bits)), number(7));
  return known = {fits, builder_.CreateSelect(is_empty, number(0), builder_.CreateLShr(all_bits, 3))};
}

// ---- the runtime's side ----

ProgramEmitter::V ProgramEmitter::service(size_t offset, llvm::ArrayRef<V> arguments) {
  llvm::SmallVector<llvm::Type*, 8> types;
  for (const V argument : arguments) types.push_back(argument->getType());
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), types, false);
  return builder_.CreateCall(type, field(services_, offset, builder_.getPtrTy(), true), arguments);
}

void ProgramEmitter::leave_unless_zero(V status) {
  llvm::BasicBlock *leaving = block(), *after = block();
  builder_.CreateCondBr(builder_.CreateIsNull(status), after, leaving, rarely(context_));
  builder_.SetInsertPoint(leaving);
  builder_.CreateRet(status);
  builder_.SetInsertPoint(after);
}

// Puts a register's value where the runtime looks for it.
void ProgramEmitter::give(uint32_t reg) {
  if (is_scalar(reg)) {
    if (support::flip(program_given_scalar)) return;
    builder_.CreateStore(scalar(reg), slot(reg, offsetof(LatheRegister, scalar)));
    builder_.CreateStore(builder_.getInt32(1), slot(reg, offsetof(LatheRegister, is_live)));
    return;
  }
  if (!lent(reg)) return;
  const uint32_t rank = lent(reg)->rank;
  for (uint32_t axis = 0; axis < rank; ++axis)
    builder_.CreateStore(dim_of(reg, axis), builder_.CreateConstInBoundsGEP1_64(builder_.getInt64Ty(), numbers_, axis));
  leave_unless_zero(service(offsetof(LatheProgramServices, set_tensor),
                            {run_, builder_.getInt32(at_), builder_.getInt32(reg), data_of(reg), numbers_,
                             builder_.getInt32(rank), builder_.getInt32(lent(reg)->is_constant ? 1 : 0)}));
}

void ProgramEmitter::take_back(uint32_t reg) {
  set_scalar(reg, builder_.CreateLoad(builder_.getInt64Ty(), slot(reg, offsetof(LatheRegister, scalar))));
}

void ProgramEmitter::give_operands() {
  std::set<uint32_t> read;
  abi::for_each_operand(here().opcode, words(), [&](char letter, uint32_t word, uint32_t) {
    if (is_register(letter, word) && reads_operand(here().opcode, letter)) read.insert(word);
  });
  for (const uint32_t reg : read) give(reg);
}

void ProgramEmitter::hand_over() {
  give_operands();
  leave_unless_zero(service(offsetof(LatheProgramServices, execute), {run_, builder_.getInt32(at_)}));
  abi::for_each_operand(here().opcode, words(), [&](char letter, uint32_t word, uint32_t) {
    if (is_register(letter, word) && writes_operand(letter) && is_scalar(word)) take_back(word);
  });
}

// Where the condition does not hold, the runtime says what is wrong.
void ProgramEmitter::require(V condition) {
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition); known && known->isOne()) return;
  llvm::BasicBlock *refused = block(), *after = block();
  builder_.CreateCondBr(condition, after, refused, rarely(context_));
  builder_.SetInsertPoint(refused);
  give_operands();
  builder_.CreateRet(service(offsetof(LatheProgramServices, refuse), {run_, builder_.getInt32(at_)}));
  builder_.SetInsertPoint(after);
}

// After what may have raised an error or taken long: one branch for a status, an error of any thread, and a stop.
void ProgramEmitter::poll(V status) {
  llvm::LoadInst* stop = builder_.CreateLoad(builder_.getInt32Ty(), call_state_, true);
  llvm::LoadInst* error = builder_.CreateLoad(builder_.getInt32Ty(), error_code_, true);
  const V reason = builder_.CreateOr(builder_.CreateOr(status, stop), error);
  llvm::BasicBlock *leaving = block(), *after = block();
  builder_.CreateCondBr(builder_.CreateIsNull(reason), after, leaving, rarely(context_));
  builder_.SetInsertPoint(leaving);
  builder_.CreateRet(service(offsetof(LatheProgramServices, leave), {run_, builder_.getInt32(at_), status}));
  builder_.SetInsertPoint(after);
}

// ---- tensors ----

void ProgramEmitter::alloc_tensor(Words words) {
  if (!lent(words[0])) return hand_over();
  const abi::StorageRecord& storage = program_.storages[words[1]];
  const Operands dims = scalars(words + 3, words[2]);
  Extent size = extent(reg(words[0]).dtype, dims);
  V memory, capacity;
  if (storage.kind == StorageKind::planned) {
    const V arena =
        field(run_field(offsetof(LatheProgramRun, arenas)), storage.index * sizeof(void*), builder_.getPtrTy(), true);
    const uint64_t offset = support::flip(program_storage_offset) ? 0 : storage.offset;
    memory = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), arena, offset);
    capacity = builder_.getInt64(storage.bytes);
  } else {
    std::tie(memory, capacity) = dynamic_storage(words[1]);
  }
  V ok = builder_.CreateICmpULE(size.bytes, capacity);
  if (size.fits) ok = builder_.CreateAnd(ok, size.fits);
  if (storage.kind == StorageKind::dynamic) ok = builder_.CreateAnd(ok, builder_.CreateIsNotNull(memory));
  require(ok);
  // Kernels write elements: what the last byte has beyond them is 0. Sizes are fixed then.
  const auto* bytes = llvm::dyn_cast<llvm::ConstantInt>(size.bytes);
  if (bits_of(reg(words[0]).dtype) % 8 != 0 && bytes && !bytes->isZero())
    builder_.CreateStore(builder_.getInt8(0),
                         builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), memory, bytes->getZExtValue() - 1));
  set_tensor(words[0], memory, size.bytes, dims);
}

// The runtime makes memory; what is there already is large enough in most runs.
void ProgramEmitter::reserve_storage(Words words) {
  const V bytes = scalar(words[1]);
  const auto [memory, capacity] = dynamic_storage(words[0]);
  llvm::BasicBlock *grow = block(), *after = block();
  const V is_there = builder_.CreateAnd(builder_.CreateIsNotNull(memory), builder_.CreateICmpULE(bytes, capacity));
  builder_.CreateCondBr(is_there, after, grow, rarely(context_));
  builder_.SetInsertPoint(grow);
  hand_over();
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
}

std::pair<ProgramEmitter::V, ProgramEmitter::V> ProgramEmitter::dynamic_storage(uint32_t storage) {
  const V storages = run_field(offsetof(LatheProgramRun, storages));
  const size_t first = storage * sizeof(LatheDynamicStorage);
  return {field(storages, first + offsetof(LatheDynamicStorage, memory), builder_.getPtrTy(), false),
          field(storages, first + offsetof(LatheDynamicStorage, bytes), builder_.getInt64Ty(), false)};
}

void ProgramEmitter::load_constant(Words words) {
  if (!lent(words[0])) return hand_over();
  const abi::ConstantRecord& constant = program_.constants[words[1]];
  const V section =
      run_field(offsetof(LatheProgramRun, sections) + static_cast<size_t>(constant.section) * sizeof(void*));
  Operands dims;
  for (uint32_t axis = 0; axis < constant.rank; ++axis)
    dims.push_back(number(program_.dims[constant.first_dim + uint64_t{axis}].size));
  set_tensor(words[0], builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), section, constant.offset),
             extent(constant.dtype, dims).bytes, dims);
}

void ProgramEmitter::view(Words words) {
  if (!lent(words[0]) || !lent(words[1])) return hand_over();
  const DLDataType dtype = reg(words[0]).dtype;
  const V first = scalar(words[2]);
  const Operands dims = scalars(words + 4, words[3]);
  const Extent size = extent(dtype, dims);
  const uint64_t element = bits_of(dtype) / 8;
  const V available = bytes_of(words[1]);
  const V is_near = builder_.CreateICmpULE(first, builder_.getInt64((uint64_t{1} << 60) / bits_of(dtype)));
  const V skipped = builder_.CreateMul(first, builder_.getInt64(element));
  V ok = builder_.CreateAnd(is_near, builder_.CreateICmpULE(skipped, available));
  ok = builder_.CreateAnd(ok, builder_.CreateICmpULE(size.bytes, builder_.CreateSub(available, skipped)));
  if (size.fits) ok = builder_.CreateAnd(ok, size.fits);
  require(ok);
  const V begin = support::flip(program_view_start) ? number(0) : skipped;
  const V data = builder_.CreateInBoundsGEP(builder_.getInt8Ty(), data_of(words[1]), begin);
  set_tensor(words[0], data, size.bytes, dims);
}

void ProgramEmitter::move(Words words) {
  if (is_scalar(words[0])) return set_scalar(words[0], scalar(words[1]));
  if (!lent(words[0])) return hand_over();
  Operands dims;
  for (uint32_t axis = 0; axis < lent(words[0])->rank; ++axis) dims.push_back(dim_of(words[1], axis));
  set_tensor(words[0], data_of(words[1]), bytes_of(words[1]), dims);
}

void ProgramEmitter::match_shape(Words words) {
  if (rank_of(words[0]) != static_cast<int32_t>(words[2])) return hand_over();
  V same = builder_.getTrue();
  for (uint32_t axis = 0; axis < words[2]; ++axis)
    if (words[3 + axis] != abi::absent)
      same = builder_.CreateAnd(same, builder_.CreateICmpEQ(dim_of(words[0], axis), scalar(words[3 + axis])));
  if (!support::flip(program_shape_check)) require(same);
}

void ProgramEmitter::call_kernel(Words words) {
  const abi::KernelRecord& kernel = program_.kernels[words[0]];
  for (uint32_t i = 0; i < kernel.buffer_count; ++i)
    builder_.CreateStore(data_of(words[2 + i]), builder_.CreateConstInBoundsGEP1_64(builder_.getPtrTy(), buffers_, i));
  const Operands numbers = scalars(words + 3 + kernel.buffer_count, kernel.scalar_count);
  for (uint32_t i = 0; i < kernel.scalar_count; ++i)
    builder_.CreateStore(numbers[i], builder_.CreateConstInBoundsGEP1_64(builder_.getInt64Ty(), numbers_, i));
  auto* pointer = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {pointer, pointer, pointer, pointer}, false);
  const V code = field(run_field(offsetof(LatheProgramRun, kernels)), words[0] * sizeof(void*), pointer, true);
  poll(builder_.CreateCall(type, code,
                           {run_field(offsetof(LatheProgramRun, kernel_services)), call_state_, buffers_, numbers_}));
}

// ---- scalars ----

void ProgramEmitter::read_dim(Words words) {
  const auto* axis = llvm::dyn_cast<llvm::ConstantInt>(scalar(words[2]));
  if (!axis || axis->getSExtValue() < 0 || axis->getSExtValue() >= rank_of(words[1])) return hand_over();
  set_scalar(words[0], dim_of(words[1], static_cast<uint32_t>(axis->getZExtValue())));
}

void ProgramEmitter::read_rank(Words words) {
  if (rank_of(words[1]) < 0) return hand_over();
  set_scalar(words[0], number(rank_of(words[1])));
}

// Null where the runtime has to look.
ProgramEmitter::V ProgramEmitter::element_address(uint32_t tensor, uint32_t position_word, V* ok) {
  const DLDataType dtype = reg(tensor).dtype;
  const V position = scalar(position_word);
  const bool is_whole = lent(tensor).has_value();
  const auto* fixed = llvm::dyn_cast<llvm::ConstantInt>(position);
  const bool is_only = !is_whole && rank_of(tensor) == 0 && fixed && fixed->isZero();
  if (!abi::holds_scalars(dtype) || (!is_whole && !is_only)) return nullptr;
  const uint64_t element = dtype.bits / 8u;
  *ok = is_only ? builder_.getTrue()
                : builder_.CreateICmpULT(position, builder_.CreateUDiv(bytes_of(tensor), builder_.getInt64(element)));
  return builder_.CreateGEP(builder_.getIntNTy(dtype.bits), data_of(tensor), position);
}

void ProgramEmitter::load_scalar(Words words) {
  V ok = nullptr;
  const V address = element_address(words[1], words[2], &ok);
  if (!address) return hand_over();
  const DLDataType dtype = reg(words[1]).dtype;
  require(ok);
  const V raw = builder_.CreateLoad(builder_.getIntNTy(dtype.bits), address);
  set_scalar(words[0], builder_.CreateIntCast(raw, builder_.getInt64Ty(), dtype.code == kDLInt));
}

void ProgramEmitter::store_scalar(Words words) {
  V ok = nullptr;
  const bool may_write = lent(words[0]) && !lent(words[0])->is_constant;
  const V address = may_write ? element_address(words[0], words[1], &ok) : nullptr;
  if (!address) return hand_over();
  const DLDataType dtype = reg(words[0]).dtype;
  require(ok);
  V value = scalar(words[2]);
  if (dtype.code == kDLBool) value = builder_.CreateIsNotNull(value);
  builder_.CreateStore(builder_.CreateZExtOrTrunc(value, builder_.getIntNTy(dtype.bits)), address);
}

// Rounds down; a division by zero is the runtime's to refuse, and the smallest integer over -1 wraps.
ProgramEmitter::V ProgramEmitter::floor_division(V a, V b, bool wants_quotient) {
  require(builder_.CreateIsNotNull(b));
  const V is_minus_one = builder_.CreateICmpEQ(b, number(-1));
  const V divisor = builder_.CreateSelect(is_minus_one, number(1), b);
  const V quotient = builder_.CreateSDiv(a, divisor), rest = builder_.CreateSRem(a, divisor);
  const V is_between = builder_.CreateICmpSLT(builder_.CreateXor(rest, divisor), number(0));
  const V is_rounded_up = builder_.CreateAnd(builder_.CreateIsNotNull(rest), is_between);
  if (wants_quotient) {
    if (support::flip(program_floor)) return quotient;
    const V down = builder_.CreateSub(quotient, builder_.CreateZExt(is_rounded_up, builder_.getInt64Ty()));
    return builder_.CreateSelect(is_minus_one, builder_.CreateNeg(a), down);
  }
  const V positive = builder_.CreateSelect(is_rounded_up, builder_.CreateAdd(rest, divisor), rest);
  return builder_.CreateSelect(is_minus_one, number(0), positive);
}

ProgramEmitter::V ProgramEmitter::arithmetic(Opcode opcode, V a, V b) {
  const auto flag = [&](V condition) { return builder_.CreateZExt(condition, builder_.getInt64Ty()); };
  const auto is_set = [&](V value) { return builder_.CreateIsNotNull(value); };
  switch (opcode) {
    case Opcode::scalar_add:
      return builder_.CreateAdd(a, b);
    case Opcode::scalar_subtract:
      return builder_.CreateSub(a, b);
    case Opcode::scalar_multiply:
      return builder_.CreateMul(a, b);
    case Opcode::scalar_floor_divide:
    case Opcode::scalar_floor_modulo:
      return floor_division(a, b, opcode == Opcode::scalar_floor_divide);
    case Opcode::scalar_minimum:
      return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
    case Opcode::scalar_maximum:
      return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
    case Opcode::scalar_equal:
      return flag(builder_.CreateICmpEQ(a, b));
    case Opcode::scalar_not_equal:
      return flag(builder_.CreateICmpNE(a, b));
    case Opcode::scalar_less:
      return flag(builder_.CreateICmpSLT(a, b));
    case Opcode::scalar_less_equal:
      return flag(builder_.CreateICmpSLE(a, b));
    case Opcode::scalar_and:
      return flag(builder_.CreateAnd(is_set(a), is_set(b)));
    case Opcode::scalar_or:
      return flag(builder_.CreateOr(is_set(a), is_set(b)));
    default:
      return nullptr;
  }
}

// ---- control ----

llvm::BasicBlock* ProgramEmitter::next_block() {
  const auto it = labels_.find(at_ + 1);
  return it == labels_.end() ? block() : it->second;
}

// A way back asks whether the run is to end: nothing else in the loop may.
void ProgramEmitter::jump(uint32_t label) {
  if (label <= at_) poll(builder_.getInt32(0));
  builder_.CreateBr(target(label));
}

void ProgramEmitter::jump_if(V condition, uint32_t there, llvm::BasicBlock* otherwise) {
  llvm::BasicBlock* taken = block();
  builder_.CreateCondBr(condition, taken, otherwise);
  builder_.SetInsertPoint(taken);
  jump(there);
}

void ProgramEmitter::loop_begin(Words words) {
  const V begin = scalar(words[1]), end = scalar(words[2]);
  set_scalar(words[0], begin);
  llvm::BasicBlock* body = next_block();
  jump_if(builder_.CreateICmpSGE(begin, end), words[3], body);
  builder_.SetInsertPoint(body);
}

void ProgramEmitter::loop_next(Words words) {
  const V before = scalar(words[0]), now = builder_.CreateAdd(before, number(1));
  V end = scalar(words[1]);
  if (support::flip(program_loop_turn)) end = builder_.CreateSub(end, number(1));
  set_scalar(words[0], now);
  const V goes_on =
      builder_.CreateAnd(builder_.CreateICmpSLT(now, end), builder_.CreateICmpNE(before, number(INT64_MAX)));
  llvm::BasicBlock* after = next_block();
  jump_if(goes_on, words[2], after);
  builder_.SetInsertPoint(after);
}

void ProgramEmitter::instruction(Words words) {
  switch (here().opcode) {
    case Opcode::alloc_tensor:
      return alloc_tensor(words);
    case Opcode::reserve_storage:
      return reserve_storage(words);
    case Opcode::load_constant:
      return load_constant(words);
    case Opcode::view:
      return view(words);
    case Opcode::match_shape:
      return match_shape(words);
    case Opcode::assert_true:
    case Opcode::assert_numbers:
      return require(builder_.CreateIsNotNull(scalar(words[0])));
    case Opcode::call_kernel:
      return call_kernel(words);
    case Opcode::scalar_set:
      return set_scalar(words[0], scalar(words[1]));
    case Opcode::scalar_floor_divide:
    case Opcode::scalar_floor_modulo:
    case Opcode::scalar_add:
    case Opcode::scalar_subtract:
    case Opcode::scalar_multiply:
    case Opcode::scalar_minimum:
    case Opcode::scalar_maximum:
    case Opcode::scalar_equal:
    case Opcode::scalar_not_equal:
    case Opcode::scalar_less:
    case Opcode::scalar_less_equal:
    case Opcode::scalar_and:
    case Opcode::scalar_or:
      return set_scalar(words[0], arithmetic(here().opcode, scalar(words[1]), scalar(words[2])));
    case Opcode::scalar_select:
      return set_scalar(words[0], builder_.CreateSelect(builder_.CreateIsNotNull(scalar(words[1])), scalar(words[2]),
                                                        scalar(words[3])));
    case Opcode::read_dim:
      return read_dim(words);
    case Opcode::read_rank:
      return read_rank(words);
    case Opcode::load_scalar:
      return load_scalar(words);
    case Opcode::store_scalar:
      return store_scalar(words);
    case Opcode::move:
      return move(words);
    case Opcode::kill:
      if (!kept_[words[0]].empty()) return;
      return hand_over();
    case Opcode::jump:
      return jump(words[0]);
    case Opcode::branch: {
      llvm::BasicBlock* other = block();
      jump_if(builder_.CreateIsNotNull(scalar(words[0])), words[1], other);
      builder_.SetInsertPoint(other);
      return jump(words[2]);
    }
    case Opcode::loop_begin:
      return loop_begin(words);
    case Opcode::loop_next:
      return loop_next(words);
    case Opcode::return_values:
      hand_over();
      builder_.CreateRet(builder_.getInt32(0));
      return;
    default:
      return hand_over();
  }
}

// ---- structure ----

void ProgramEmitter::begin(const std::string& symbol) {
  auto* type = llvm::FunctionType::get(builder_.getInt32Ty(), {builder_.getPtrTy()}, false);
  out_ = llvm::Function::Create(type, llvm::GlobalValue::WeakODRLinkage, symbol, module_);
  out_->setVisibility(llvm::GlobalValue::HiddenVisibility);
  builder_.SetInsertPoint(block());
  kept_.resize(function_.register_count);
  for (uint32_t r = 0; r < function_.register_count; ++r) {
    const auto keep = [&](llvm::Type* type) {
      kept_[r].push_back({type, values_.has_one_writer[r] ? nullptr : builder_.CreateAlloca(type)});
    };
    if (is_scalar(r)) keep(builder_.getInt64Ty());
    if (!lent(r)) continue;
    keep(builder_.getPtrTy());
    if (lent(r)->dims) continue;
    for (uint32_t i = 0; i < 1 + lent(r)->rank; ++i) keep(builder_.getInt64Ty());  // bytes, dims
  }
  uint32_t buffers = 1, numbers = abi::max_rank;
  for (const abi::KernelRecord& kernel : program_.kernels) {
    buffers = std::max(buffers, kernel.buffer_count);
    numbers = std::max(numbers, kernel.scalar_count);
  }
  buffers_ = builder_.CreateAlloca(llvm::ArrayType::get(builder_.getPtrTy(), buffers));
  numbers_ = builder_.CreateAlloca(llvm::ArrayType::get(builder_.getInt64Ty(), numbers));
  run_ = out_->getArg(0);
  services_ = run_field(offsetof(LatheProgramRun, services));
  registers_ = run_field(offsetof(LatheProgramRun, registers));
  call_state_ = run_field(offsetof(LatheProgramRun, call_state));
  error_code_ = run_field(offsetof(LatheProgramRun, error_code));
  tensor_offset_ = field(services_, offsetof(LatheProgramServices, tensor_offset), builder_.getInt64Ty(), true);
  for (uint32_t r = 0; r < function_.parameter_count; ++r)
    if (is_scalar(r)) take_back(r);
  for (uint32_t i = 0; i < function_.instruction_count; ++i)
    if (values_.is_label[i] && values_.is_reached[i]) labels_[i] = block();
}

llvm::Function* ProgramEmitter::emit(const std::string& symbol) {
  begin(symbol);
  for (at_ = 0; at_ < function_.instruction_count; ++at_) {
    if (!values_.is_reached[at_]) continue;
    llvm::BasicBlock* open = builder_.GetInsertBlock();
    if (const auto it = labels_.find(at_); it != labels_.end()) {
      if (it->second != open && !open->getTerminator()) builder_.CreateBr(it->second);
      builder_.SetInsertPoint(it->second);
      extents_.clear();  // others come here, who have not computed them
    }
    instruction(words());
  }
  return out_;
}

}  // namespace lathe::codegen
