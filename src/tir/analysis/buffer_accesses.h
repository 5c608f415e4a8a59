// Where and how buffers are accessed under a statement, block by block: each load and store with the loops around it
// and its indices in terms of those loops. And what follows: which values a read can see.
#pragma once

#include "tir/analysis/regions.h"

namespace lathe::tir {

struct BufferAccess {
  Buffer buffer;
  bool is_write = false;
  std::vector<Expr> indices;    // in loop variables: the variables of blocks are replaced by their values
  std::vector<Range> part;      // what a block around says it touches, in loop variables; empty: what the indices say
  std::vector<Ref<For>> loops;  // outermost first; the lanes of a vector of indices are loops of the access's own
  size_t lanes = 0;             // how many of the loops, innermost, are such
  Ref<Block> block;             // the innermost around it; null outside blocks
  Expr predicate;               // of the blocks around it, in loop variables
  std::vector<size_t>
      branches;              // branches of ifs around it, outermost first, by their numbers among those that were seen
  bool conditional = false;  // in a while, or under a condition of its own
  bool in_init = false;
  // Reads of a reduction with init, of the element that the same instance writes.
  bool accumulates = false;
  size_t order = 0;  // of execution, within one iteration of the loops that two accesses share
};

// Every access under `s`, in order of execution. `opaque` receives the buffers that are used in a way that is no plain
// access (an alias, an address).
std::vector<BufferAccess> buffer_accesses(const Stmt& s, std::unordered_set<const BufferNode*>* opaque = nullptr);

// How many loops, outermost first, are around both.
size_t shared_loops(const BufferAccess& a, const BufferAccess& b);

// Whether every element that `read` reads in one iteration of the loops it shares with `write` was written there by
// `write` before.
bool is_covered_by(const BufferAccess& read, const BufferAccess& write);
// The same of several writes together, each of which fills a box that adjoins another's.
bool is_covered_by(const BufferAccess& read, const std::vector<const BufferAccess*>& writes);

// The loops in `loops` from number `from` on, as domains.
Domains domains_of(const std::vector<Ref<For>>& loops, size_t from);

}  // namespace lathe::tir
