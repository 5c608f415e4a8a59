// Adjoints of the variables of a graph: the chain rule, binding by binding, last first.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "relax/block_builder.h"
#include "relax/control.h"
#include "relax/outline.h"

namespace lathe::ops::gradient {

using relax::Binding;
using relax::BlockBuilder;
using relax::Call;
using relax::Callee;
using relax::Expr;
using relax::StructInfo;
using relax::Var;

// What a sequence binds, emitted again with other variables.
struct CopiedBody {
  std::vector<Binding> bindings;
  Expr result;  // a tuple written out where it is one
};
// Variables like those of a function, by which `copies` replaces them.
std::vector<Var> copy_parameters(const std::vector<Var>& params, relax::Replacement& copies);

class Backward {
 public:
  // Emits into `builder`; `expanded` has the functions that the bindings call, without composites.
  Backward(BlockBuilder& builder, const ir::IRModule& expanded) : builder_(builder), expanded_(expanded) {}

  // A variable whose adjoint is asked for: what does not depend on one is left out.
  void want(const Expr& var) { active_.insert(var.get()); }
  // Adds to the adjoint of a variable, of an item of a tuple, or of the items of a tuple expression.
  support::Status add(const Expr& target, const Expr& adjoint);
  // The adjoint of a variable so far, or null where it is zero.
  Expr of(const Expr& var) const;

  // Emits a sequence with other variables and notes what of it depends on the variables wanted: loops that do keep what
  // each turn begins with. Before `run`, with its bindings.
  support::Result<CopiedBody> copy(const Expr& sequence, relax::Replacement copies);
  bool is_active(const Expr& e) const;
  support::Status run(const std::vector<Binding>& bindings);

 private:
  struct KeptLoop {
    relax::Loop loop;  // as it was
    Expr all;          // what is carried, the number of turns made, rows, and what each turn began with
  };
  // What a turn takes, by a scalar position, of something that all turns share.
  struct Taken {
    size_t captured;
    int64_t axis;
    Expr position, adjoint;
  };
  class TurnsBackward;
  using Bindings = std::vector<Binding>;

  // Adds to the adjoint of a variable, or of an item of one that is a tuple.
  support::Status add_item(const Expr& var, size_t item, const Expr& adjoint);
  bool depends(const Expr& value) const;
  void note_active(const Binding& binding);
  void bind(const Var& var, const Expr& value, Bindings& bindings);
  Expr bind_item(const Expr& tuple, size_t index, const std::string& name, Bindings& bindings);
  support::Result<Expr> keep_starts(const Var& var, const Expr& value, Bindings& bindings);

  support::Status reverse(const Expr& var, const Expr& value);
  support::Status reverse_call(const Call& call, const std::vector<Expr>& adjoints);
  support::Status reverse_program(const std::string& name, const Expr& value, const std::vector<Expr>& adjoints);
  support::Status reverse_branch(const Expr& value, const std::vector<Expr>& adjoints);
  support::Result<Callee> reversed_callee(const Callee& callee, const std::vector<Expr>& wanted,
                                          const std::vector<Expr>& adjoints);
  support::Status reverse_loop(const Expr& value, const std::vector<Expr>& adjoints);
  bool note_taken(const Call& call, const Expr& adjoint);
  support::Status add_taken(const Expr& x, int64_t axis, const Expr& positions, const Expr& rows);
  support::Result<std::vector<bool>> active_in_turns(const relax::Loop& loop, const relax::FunctionNode& body) const;

  BlockBuilder& builder_;
  const ir::IRModule& expanded_;
  std::unordered_set<const ir::Node*> active_;
  std::unordered_map<const ir::Node*, std::vector<Expr>> adjoints_;  // one, or one an item of a tuple
  std::unordered_map<const ir::Node*, KeptLoop> kept_;               // by their calls
  std::unordered_map<const ir::Node*, size_t> captured_;             // of a loop's turn, where they have adjoints
  std::vector<Taken> taken_;                                         // of those
};

// A tensor of zeros like `e`.
support::Result<Expr> zeros_like(BlockBuilder& builder, const Expr& e);
// Whether a value carries gradients: a tensor of float16, bfloat16, float32 or float64.
bool carries_gradient(const StructInfo& info);
support::Failure no_gradient_of(const Expr& e, std::string message, std::vector<support::Note> notes = {});

}  // namespace lathe::ops::gradient
