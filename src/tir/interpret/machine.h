// The interpreter itself: an environment of variables and memories, evaluation of expressions (evaluate.cpp) and
// execution of statements (execute.cpp).
#pragma once

#include "tir/interpret/memory.h"

namespace lathe::tir::interpreter {

class Machine {
 public:
  explicit Machine(const InterpretOptions& options) : options_(options), random_(options.seed) {}

  Value evaluate(const Expr& e);
  int64_t evaluate_int(const Expr& e);
  bool holds(const Expr& condition) { return evaluate_int(condition) != 0; }
  void execute(const Stmt& s);

  void bind(const Var& var, Value value) { values_[var.get()] = std::move(value); }
  const Value* value_of(const Var& var) const;
  void bind_memory(const Var& var, Memory* memory, int64_t bit = 0) { memories_[var.get()] = {memory, bit}; }
  Memory* adopt(std::unique_ptr<Memory> memory);

 private:
  [[noreturn]] void fail(support::Code code, std::string message) const;
  const Value& variable(const VarNode& var) const;
  void step();
  // Where an address points: a bit of a memory.
  struct Pointer {
    Memory* memory = nullptr;
    int64_t bit = 0;
  };
  const Pointer& memory_of(const Buffer& buffer);

  // Where the elements of one access lie: bit offsets, one a lane of the index. A single one takes no heap memory.
  struct Places {
    Memory* memory = nullptr;
    int64_t first = -1;
    std::vector<int64_t> lanes;  // where there is more than one; -1: masked off
    std::span<const int64_t> at() const { return lanes.empty() ? std::span(&first, 1) : std::span(lanes); }
  };
  // The bit offset of the element at `index(d)` in each dimension.
  int64_t place(const Buffer& buffer, const Pointer& base, support::function_ref<int64_t(size_t)> index,
                const char* what);
  Places locate(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& predicate, const char* what);

  Value load(const BufferLoad& load);
  Value binary(Operation op, const Expr& a, const Expr& b);
  Value call(const Call& call);
  Value conditional(const Call& call);
  Value lanes_reduced(const Call& call);
  Value reinterpreted(const Call& call);

  void store(const BufferStore& store);
  void loop(const For& loop);
  void instance(const BlockRealize& realize);
  void run_block(const Block& block, bool first, size_t allocated);
  void with_memory(const Buffer& buffer, support::function_ref<void()> body);
  void alias(const MatchBufferRegion& match);
  void described(const Block& block, const std::string& intrin);
  bool ends_loop();
  void effect(const Call& call);
  // calls.cpp
  void call_function(const Call& call);
  void pass(const std::string& name, const Buffer& wanted, const Expr& given);
  // registered.cpp
  Value call_registered(const Call& call);
  struct Lent;
  void lend(const Call& array, Lent& lent);
  void take_back(const Lent& lent);

  const InterpretOptions& options_;
  std::mt19937_64 random_;
  int64_t steps_ = 0;
  const Intrinsic* exit_ = nullptr;  // break_loop or continue_loop, on the way to its loop
  std::unordered_map<const VarNode*, Value> values_;
  std::unordered_map<const VarNode*, Pointer> memories_;
  std::vector<std::string> called_;  // the functions that run, outermost first
  std::vector<std::unique_ptr<Memory>> owned_;
  // Inside a block: buffers that name a region of another, with the region's corner.
  struct Alias {
    Buffer source;
    std::vector<int64_t> corner;
  };
  std::unordered_map<const BufferNode*, Alias> aliases_;
  std::unordered_set<const VarNode*> layout_symbols_;  // that an alias bound: the next instance binds them anew
  std::map<std::string, TensorIntrin> intrins_;        // those met so far
};

}  // namespace lathe::tir::interpreter
