// The interpreter itself: an environment of variables and memories, evaluation of expressions (evaluate.cpp) and
// execution of statements (execute.cpp).
#pragma once

#include "tir/interpret/memory.h"

namespace lathe::tir::interpreter {

class Machine {
 public:
  explicit Machine(const InterpretOptions& options) : options_(options), random_(options.seed) {}

  Value evaluate(const Expr& e);
  int64_t evaluate_int(const Expr& e) { return evaluate(e).first.i; }
  bool holds(const Expr& condition) { return evaluate(condition).first.i != 0; }
  void execute(const Stmt& s);

  void bind(const Var& var, Value value) { values_[var.get()] = std::move(value); }
  const Value* value_of(const Var& var) const;
  void bind_memory(const Var& var, Memory* memory) { memories_[var.get()] = memory; }
  Memory* adopt(std::unique_ptr<Memory> memory);

 private:
  [[noreturn]] void fail(support::Code code, std::string message) const;
  void step();
  Memory& memory_of(const Buffer& buffer);

  // Where the elements of one access lie: bit offsets, one a lane of the index.
  struct Places {
    Memory* memory;
    std::vector<int64_t> at;  // of lanes that are read or written; -1: masked off
  };
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
  void with_memory(const Buffer& buffer, support::function_ref<void()> body);
  void alias(const MatchBufferRegion& match);
  void described(const Block& block, const std::string& intrin);
  void effect(const Call& call);

  const InterpretOptions& options_;
  std::mt19937_64 random_;
  int64_t steps_ = 0;
  std::unordered_map<const VarNode*, Value> values_;
  std::unordered_map<const VarNode*, Memory*> memories_;
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
