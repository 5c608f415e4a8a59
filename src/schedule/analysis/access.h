// What a statement touches: every load and store in it, with its region in terms of loop variables. Taken from the
// bodies; declared regions are believed only of opaque calls.
#pragma once

#include "ir/visit.h"
#include "schedule/analysis/linear.h"

namespace lathe::schedule {

// A block around an access, below the walk's root, with the values of its variables in loop variables.
struct BlockInstance {
  const Block* block = nullptr;
  std::vector<Expr> values;
  std::shared_ptr<const BlockInstance> outer;
};

struct Access {
  Buffer buffer;
  std::vector<Range> region;  // block variables replaced by the values bound to them
  bool writes = false;
  bool certain = true;                            // not under a condition
  bool opaque = false;                            // believed, not seen: the whole buffer or a declared region
  const Block* block = nullptr;                   // the innermost block around it, below the walk's root
  std::vector<const For*> loops;                  // around it, below the walk's root, outermost first
  Expr predicate;                                 // of the realize of `block`, in loop variables; null: always
  std::shared_ptr<const BlockInstance> instance;  // of `block`
  Expr guard;                                     // the other conditions it is under, in loop variables; null: none
  bool exact = true;  // where predicate and guard hold, every element of the region is touched
  bool is_init = false;
  size_t order = 0;  // position in the program
};

// The instance of `block` that the access belongs to: its own block, or one around that; null: none.
const BlockInstance* instance_of(const Access& access, const Block& block);

// The accesses in `root`, in program order (an element's loads before its store).
std::vector<Access> accesses(const Stmt& root);

// The values bound to the block's variables, by variable.
VarMap bindings(const BlockRealize& realize);

// The buffers that a statement reads (or writes), each once, in order of first access.
std::vector<Buffer> buffers_read(const Stmt& root);
std::vector<Buffer> buffers_written(const Stmt& root);

// Whether one of the statements writes what the other touches.
bool conflict(const Stmt& a, const Stmt& b);

// Whether the value is known only when the program runs.
bool reads_memory(const Expr& e);

// Whether what the block computes depends on conditions, as padding's does.
bool is_conditional(const Block& block);

// A call in it whose effects are not known; null: none.
const Call* effect_in(const Stmt& root);

// A block with its declared reads and writes computed from its body and init.
Ref<Block> with_regions(const Ref<Block>& block);
// A block of these axes, with the regions that its init and its body touch.
Ref<Block> block_with_regions(std::vector<IterVar> iters, std::string name, Stmt init, Stmt body, Id id);

// Says where a body touches what its block does not declare; empty when every block is honest.
support::Diagnostics check_declared_regions(const PrimFunc& function);

// Whether the block's value is a reduction: it has reduce variables, and every element that it reads of a buffer it
// writes is the element it writes, in the same loops, whose indices use spatial variables (and these loops) only.
bool is_reduction(const Block& block);
// The same, whether or not it has reduce variables.
bool updates_own_element(const Block& block);
bool has_reduce_iters(const Block& block);
// Whether a tensorized block adds to what its init left, element by element: what it writes it does not say that it
// reads, as with_regions has it, and its reduce variables do not move that.
bool accumulates_by_intrin(const Block& block);

}  // namespace lathe::schedule
