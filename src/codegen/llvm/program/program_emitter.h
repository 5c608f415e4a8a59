// ProgramEmitter: one function of the register program to one function of an LLVM module, with the signature of
// abi/compiled_program.h. Private to this folder (LLVM headers).
//
// An instruction is code of its own or is handed to the runtime. What code of its own checks, the runtime would refuse
// as well, and it is asked to, so that every error is said in one place.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "abi/program.h"
#include "codegen/emit/program_values.h"

namespace lathe::codegen {

class ProgramEmitter {
 public:
  ProgramEmitter(llvm::Module& module, const abi::ProgramView& program, const abi::FunctionRecord& function,
                 const ProgramValues& values);
  llvm::Function* emit(const std::string& symbol);

 private:
  using V = llvm::Value*;
  using Words = const uint32_t*;

  // A number or an address: itself where one instruction makes it, else in a slot that LLVM will do away with.
  struct Cell {
    llvm::Type* type;
    llvm::AllocaInst* slot = nullptr;
    V value = nullptr;
  };
  // The cells of a register that the function keeps: of a scalar one; of a lent tensor its address, and where the dims
  // are not fixed its bytes and its dims.
  using Kept = std::vector<Cell>;
  struct Extent {
    V fits;  // i1: there is such a tensor; null: there is for sure
    V bytes;
  };
  using Operands = llvm::SmallVector<V, 8>;

  // ---- values ----
  const abi::RegisterRecord& reg(uint32_t index) const {
    return program_.registers[function_.first_register + uint64_t{index}];
  }
  const std::optional<LentTensor>& lent(uint32_t reg) const { return values_.lent[reg]; }
  V number(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }
  V scalar(uint32_t word);
  V read(const Cell& cell);
  void write(Cell& cell, V value);
  bool is_scalar(uint32_t index) const { return reg(index).kind == abi::ValueKind::scalar; }
  void set_scalar(uint32_t reg, V value) { write(kept_[reg][0], value); }
  V data_of(uint32_t reg);  // of any tensor
  V dim_of(uint32_t reg, uint32_t axis);
  V bytes_of(uint32_t reg);  // of a lent tensor
  // -1 where only the run knows.
  int32_t rank_of(uint32_t reg) const;
  void set_tensor(uint32_t reg, V data, V bytes, const Operands& dims);
  Extent extent(DLDataType dtype, const Operands& dims);
  V object(uint32_t reg);  // the DLTensor of one that the runtime keeps
  Operands scalars(Words words, uint32_t count);

  // ---- the runtime's side ----
  V field(V base, size_t offset, llvm::Type* type, bool is_fixed);
  V run_field(size_t offset) { return field(run_, offset, builder_.getPtrTy(), true); }
  V slot(uint32_t reg, size_t offset);
  V service(size_t offset, llvm::ArrayRef<V> arguments);
  // Hands the instruction over, and reads back what it wrote.
  void hand_over();
  void give_operands();
  void give(uint32_t reg);
  void take_back(uint32_t reg);
  void leave_unless_zero(V status);
  void require(V condition);
  void poll(V status);

  // ---- instructions ----
  void instruction(Words words);
  void alloc_tensor(Words words);
  void reserve_storage(Words words);
  std::pair<V, V> dynamic_storage(uint32_t storage);  // memory and bytes
  void load_constant(Words words);
  void view(Words words);
  void move(Words words);
  void match_shape(Words words);
  void call_kernel(Words words);
  void read_dim(Words words);
  void read_rank(Words words);
  void load_scalar(Words words);
  void store_scalar(Words words);
  V element_address(uint32_t tensor, uint32_t position, V* ok);
  V floor_division(V a, V b, bool wants_quotient);
  V arithmetic(abi::Opcode opcode, V a, V b);
  void jump(uint32_t label);
  void jump_if(V condition, uint32_t there, llvm::BasicBlock* otherwise);
  void loop_begin(Words words);
  void loop_next(Words words);

  // ---- structure ----
  const abi::InstructionRecord& here() const {
    return program_.instructions[function_.first_instruction + uint64_t{at_}];
  }
  Words words() const { return program_.operands.records + here().first_operand; }
  void begin(const std::string& symbol);
  llvm::BasicBlock* block() { return llvm::BasicBlock::Create(context_, "", out_); }
  llvm::BasicBlock* target(uint32_t label) { return labels_.at(label); }
  llvm::BasicBlock* next_block();

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> builder_;
  const abi::ProgramView& program_;
  const abi::FunctionRecord& function_;
  const ProgramValues& values_;
  llvm::Function* out_ = nullptr;
  V run_ = nullptr, services_ = nullptr, registers_ = nullptr, tensor_offset_ = nullptr, call_state_ = nullptr,
    error_code_ = nullptr;
  llvm::AllocaInst *buffers_ = nullptr, *numbers_ = nullptr;
  std::vector<Kept> kept_;
  std::map<uint32_t, llvm::BasicBlock*> labels_;
  std::map<std::pair<std::vector<V>, uint64_t>, Extent> extents_;  // in view, by dims and bits of an element
  uint32_t at_ = 0;                                                // the instruction that is being written
};

}  // namespace lathe::codegen
