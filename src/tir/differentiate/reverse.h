// Parts of the reversal of a tensor program: what happens to one statement at its top level.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "tir/differentiate/derivative.h"

namespace lathe::tir {

using BufferSet = std::unordered_set<const ir::Node*>;
inline void merge(BufferSet& all, const BufferSet& more) { all.insert(more.begin(), more.end()); }

// The buffers that a gradient goes through, and where their adjoints are kept.
class Adjoints {
 public:
  void add(const Buffer& buffer, const Buffer& adjoint) { adjoints_[buffer.get()] = adjoint; }
  bool has(const Buffer& buffer) const { return adjoints_.count(buffer.get()) != 0; }
  const Buffer& of(const Buffer& buffer) const { return adjoints_.at(buffer.get()); }

 private:
  std::unordered_map<const ir::Node*, Buffer> adjoints_;
};

// A statement that computes one tensor, each element once: loops around one block whose variables are those of the
// loops, that stores `value`, or combines it over reduce axes into what its init, or a statement before, has stored.
struct Stage {
  enum class Kind : uint8_t { assign, sum, largest, smallest } kind = Kind::assign;
  std::vector<IterVar> axes;  // spatial and reduce, in the order of the loops
  Buffer output;
  std::vector<Expr> at;  // its index there: the spatial variables, each once
  Expr value;
  bool has_init = false;
};
std::optional<Stage> as_stage(const Stmt& s);

// Adds to the adjoints of what the stage reads. Of equal elements the first is the largest. The adjoints in
// `overwritten` get nothing from elsewhere: they are stored to instead, where all of their elements are.
std::vector<Stmt> reverse_stage(const Stage& stage, const Adjoints& adjoints, const BufferSet& overwritten = {});
// The adjoints that `reverse_stage` can give all elements of.
BufferSet covered_by_reversal(const Stage& stage, const Adjoints& adjoints);

// The elements that the reversal of a stage, or of a plain statement, reads of buffers of the program itself.
BufferSet needed_by_reversal(const Stage& stage, const Adjoints& adjoints);
BufferSet needed_by_reversal(const Stmt& plain, const Adjoints& adjoints);

// A plain statement (plain_statements.h) that keeps what it overwrites in buffers that are `taped`, and the statement
// that undoes it step by step, last step first, adding to adjoints.
struct ReversedStatement {
  Stmt forward, backward;
  std::vector<Buffer> tapes;
};
ReversedStatement reverse_statement(const Stmt& plain, const Adjoints& adjoints, const BufferSet& taped);

// element += amount, where the guard holds.
Stmt add_to_adjoint(const Contribution& c, const Adjoints& adjoints);
// The buffers that are read, or stored to, anywhere under `root`.
BufferSet read_in(const NodeRef& root);
BufferSet stored_in(const NodeRef& root);

// Throws the diagnostic that says which construct, "calls", has no gradient.
[[noreturn]] void refuse_gradient(const std::string& construct);

}  // namespace lathe::tir
