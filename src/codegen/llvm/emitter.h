// KernelEmitter: one kernel of kernel tir to one function of an LLVM module. Private to this folder (LLVM headers).
//
// The kernel's function has the signature of abi/kernel.h. Parallel loops become functions of their own that receive
// what they use in a closure on the caller's stack. Values are SSA; buffers of scope register are allocas of one vector
// each, which the first pass of the pipeline turns into phis.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include "codegen/emit/kernel.h"
#include "codegen/emit/math/expand.h"
#include "codegen/emit/order.h"
#include "codegen/emit/polls.h"
#include "codegen/llvm/debug/debug_lines.h"
#include "tir/register_index.h"

namespace lathe::codegen {

using ir::DType;
using ir::Expr;
using ir::Var;
using ir::VarNode;

// The memory behind a buffer's data variable.
struct Storage {
  struct Chunk {  // of a register buffer: elements [first, first + count)
    int64_t first, count;
    llvm::AllocaInst* slot;
  };
  llvm::Value* address = nullptr;  // null for scope register
  std::vector<Chunk> chunks;
  int scope = -1;       // number of its alias scope; -1: unknown memory
  bool shared = false;  // other threads may have it at the same time: it is from outside of the parallel body
};

// What is in view while one LLVM function is written.
struct Frame {
  llvm::Function* function = nullptr;
  llvm::Value* services = nullptr;
  llvm::Value* call_state = nullptr;
  bool parallel_body = false;
  std::unordered_map<const VarNode*, llvm::Value*> values;
  std::unordered_map<const VarNode*, Storage> storages;
  std::unordered_set<const VarNode*> allocated_ahead;  // by a loop, for all of its iterations
};

// Whether its memory comes from the heap, and neither from registers nor from the stack.
bool lies_on_heap(const tir::Allocate& n);

// The functions of which the target has instructions.
math::Native native_functions(const target::Target& target);

class KernelEmitter {
 public:
  // `lines`: where line tables are wanted; it outlives the emitter.
  KernelEmitter(llvm::Module& module, const Kernel& kernel, const target::Target& target, std::string symbol,
                DebugLines* lines = nullptr);
  llvm::Function* emit();

 private:
  using V = llvm::Value*;

  // types.cpp
  llvm::Type* scalar_type(DType t);    // of one lane in a register
  llvm::Type* register_type(DType t);  // bool is i1; narrow floats are their bits
  llvm::Type* memory_type(DType t);    // bool is i8
  V to_memory(V value, DType t);
  V from_memory(V value, DType t);
  V splat(V scalar, int lanes);
  V zero(DType t) { return llvm::Constant::getNullValue(register_type(t)); }

  // expressions.cpp
  V value(const Expr& e);
  V constant_float(DType t, double x);
  V ramp(const ir::Ramp& n);
  V shuffle(const ir::Shuffle& n);
  V let(const ir::Let& n);

  // arithmetic.cpp: lane by lane, both operands of dtype t.
  V add(DType t, V a, V b);
  V sub(DType t, V a, V b);
  V mul(DType t, V a, V b);
  V divide(const Expr& a, const Expr& b, bool floor);
  V remainder(const Expr& a, const Expr& b, bool floor);
  V float_remainder(DType t, V a, V b, bool floor);
  // The exact remainder of float64, of one element after the other.
  V remainder_of_each(V a, V b);
  // `near` where `fits` (one bool) holds, which is nearly always, else what `any` emits.
  V near_or_any(V fits, V near, support::function_ref<V()> any);
  V minimum(DType t, V a, V b);
  V float_extremum(llvm::Intrinsic::ID ieee, V a, V b);
  V maximum(DType t, V a, V b);
  enum class Comparison { eq, ne, lt, le, gt, ge };
  V compare(DType t, Comparison how, V a, V b);
  V compare_ramps(Comparison how, const ir::Expr& a, const ir::Expr& b);
  V integer_power(DType t, V base, V exponent);

  // casts.cpp
  V cast(DType from, DType to, V v);
  V widen(DType narrow, V bits);     // a narrow float's bits to float32
  V narrow(DType narrow, V single);  // float32 to a narrow float's bits, rounded to nearest even
  V round_to_odd_single(V wide);     // float64 to float32 such that a second rounding is right
  V saturated_to_int(V v, int bits, bool low_half);
  V compared_to_int(V v, int bits);
  V converted_by_x86(V v);
  // Float arithmetic on narrow types happens in float32.
  static bool is_narrow(DType t);
  static DType computed_as(DType t);
  template <class Operation>
  V in_single(DType t, Operation&& operation, std::initializer_list<V> operands);

  // memory/memory.cpp
  V load(const ir::BufferLoad& n);
  void store(const tir::BufferStore& n);
  V address(const ir::Buffer& buffer, V index);
  bool is_masked_row(DType element, int lanes) const;
  llvm::Constant* first_lanes(int count, int of);
  V load_row(const ir::Buffer& buffer, int lanes, V at);
  void store_row(const ir::Buffer& buffer, V v, V at);
  V load_near(const ir::Buffer& buffer, V first, const std::vector<int64_t>& offsets);
  V load_registers(const Storage& storage, int64_t first, int lanes);
  void store_registers(const Storage& storage, int64_t first, int lanes, V v, V predicate);
  void tag(llvm::Instruction* access, const ir::Buffer& buffer);
  template <class Instruction>
  Instruction* tagged(Instruction* access, const ir::Buffer& buffer) {
    tag(access, buffer);
    return access;
  }
  Storage& storage_of(const ir::Buffer& buffer);
  V mask_of(const Expr& predicate, int lanes);  // with the lanes that are live; null: all
  V index_value(const Expr& index);

  // memory/columns.cpp: lanes of a register buffer that are apart; one column of a square of vectors.
  V load_apart(const Storage& storage, DType t, const tir::RegisterIndex& at);
  V column(std::vector<V> rows, int64_t number, int element_bits);

  // memory/packed.cpp: elements below a byte.
  static bool is_packed(DType t) { return t.storage_bits() < 8; }
  V load_packed(const ir::Buffer& buffer, V index);              // one element
  void store_packed(const ir::Buffer& buffer, V index, V bits);  // one element
  V load_packed_lanes(const ir::Buffer& buffer, const Expr& index, V mask);
  void store_packed_lanes(const ir::Buffer& buffer, const Expr& index, V lanes, V mask);
  V load_whole_bytes(const ir::Buffer& buffer, V first, int lanes, V mask);
  void store_whole_bytes(const ir::Buffer& buffer, V first, V lanes, V mask);
  V byte_of(const ir::Buffer& buffer, V index);
  V shift_of(const ir::Buffer& buffer, V index);
  bool is_contended(const ir::Buffer& buffer);

  // statements.cpp
  void statement(const tir::Stmt& s);
  void allocate(const tir::Allocate& n);
  // Memory of the heap for it, and no more than that.
  void allocate_on_heap(const tir::Allocate& n);
  void allocate_registers(const tir::Allocate& n, Storage& storage);
  void allocate_constant(const tir::AllocateConst& n);
  void conditional(const tir::IfThenElse& n);
  void while_loop(const tir::While& n);

  // loops.cpp
  void parallel_loop(const tir::For& n);
  void iterate(const tir::For& n, V begin, V end, bool is_entered, llvm::BasicBlock* after);
  void iterate_entered(const tir::For& n, V begin, V end, llvm::BasicBlock* after);
  void iterate_in_runs(const tir::For& n, V begin, V end, int64_t every, llvm::BasicBlock* after);
  llvm::BasicBlock* run_of(const tir::For& n, V begin, V end, bool asks, llvm::BasicBlock* after);
  void ask(llvm::BasicBlock* go_on);
  void check(const tir::AssertStmt& n, const ir::NodeRef& at);
  bool terminated() const { return builder_.GetInsertBlock()->getTerminator() != nullptr; }

  // services.cpp: calls through the table of abi/services.h.
  V service(size_t offset, llvm::FunctionType* type, llvm::ArrayRef<V> args);
  void raise(V code, const std::string& message, const std::string& node);
  void leave(V code);  // returns from the kernel
  V heap(V bytes);
  void release(V memory);
  V text(const std::string& s);
  V registered_call(const ir::Call& n);
  V passed_tensor(const ir::Call& array);
  V passed_extents(std::span<const Expr> extents);
  V stack_bytes(size_t bytes);
  void put(V value, V base, size_t offset);

  // intrinsics.cpp
  template <class Node>
  V written_out(const Node& n);     // by codegen/emit/math; null where the target has it
  V call_apart(const ir::Call& n);  // by a function of its own
  V call(const Expr& e, const ir::Call& n);
  V select(const ir::Select& n);
  V sum(const ir::Add& n);
  V product(const ir::Mul& n);
  V native_call(const Expr& e, const ir::Call& n);
  V inverse_root(const ir::Call& n);
  V copy_sign(const ir::Call& n);
  V classify(const ir::Call& n);
  struct PlacedElement {
    ir::Buffer buffer;
    V index;
  };
  PlacedElement placed_element(const ir::Call& n);  // of which a call takes the address
  V address_of(const ir::Call& n);
  V prefetch(const ir::Call& n);
  V scale(const ir::Call& n);
  V lookup(const ir::Call& n);
  V by_registers(int width, const std::vector<V>& vectors, support::function_ref<V(const std::vector<V>&)> compute);
  V choose(const ir::Call& n);  // if_then_else
  V extern_call(const ir::Call& n);
  V reduce_lanes(const ir::Call& n);
  V shift(const ir::Call& n, bool left);
  V fused_multiply_add(const ir::Call& n);
  V cast_count(const ir::Call& n, llvm::Intrinsic::ID id);

  // named_intrinsics.cpp
  V llvm_call(const ir::Call& n);

  // tiles.cpp: at the start of a function's body, after what may have freed the tiles, and when all is written.
  void begin_tiles(const tir::Stmt& body);
  void restore_tiles();
  void end_tiles();

  // entry.cpp
  void collect_scopes();
  llvm::Function* declare(llvm::FunctionType* type, const std::string& name, bool internal);
  void bind_parameters();
  llvm::BasicBlock* block(const char* name);
  llvm::AllocaInst* stack_slot(llvm::Type* type, const llvm::Twine& name, llvm::Align align);
  llvm::Type* f32(int lanes) { return vector_of(builder_.getFloatTy(), lanes); }
  llvm::Type* f64(int lanes) { return vector_of(builder_.getDoubleTy(), lanes); }
  llvm::Type* i(int bits, int lanes) { return vector_of(builder_.getIntNTy(static_cast<unsigned>(bits)), lanes); }
  static llvm::Type* vector_of(llvm::Type* t, int lanes);
  static int lanes_of(V v);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> builder_;
  const Kernel& kernel_;
  const target::Target& target_;
  const math::Native native_;
  const bool keeps_order_;
  std::string symbol_;
  DebugLines* lines_;
  Frame frame_;
  bool in_index_ = false;                                     // arithmetic here cannot wrap: decision 3 of the design
  V live_ = nullptr;                                          // lanes that an enclosing if_then_else evaluates
  std::map<llvm::Function*, llvm::BasicBlock*> tile_blocks_;  // of functions that use tiles: where they are set up
  std::unordered_map<const VarNode*, int> alias_scopes_;
  PollPlan polls_;
  std::unordered_set<const VarNode*> counters_;  // variables of loops
  std::unordered_set<const VarNode*> stored_;    // data of the buffers that the kernel stores to
  std::vector<llvm::MDNode*> alias_scope_, alias_others_;
  std::unordered_map<const VarNode*, std::vector<std::pair<int64_t, int64_t>>> register_accesses_;
};

}  // namespace lathe::codegen
