// Expressions in lanes: what vectorize_loops computes of the values inside a loop.
#pragma once

#include "tir/rewrite.h"

namespace lathe::tir {

// Rewrites scalar expressions to vectors where they depend on a variable that differs by lane. What is the same in
// every lane stays scalar.
class LaneValues {
 public:
  explicit LaneValues(int64_t lanes) : lanes_(lanes) {}

  // `var` is `value` (a vector, or another variable) in this loop.
  void bind(const Var& var, const Expr& value) { values_[var.get()] = value; }
  Expr operator()(const Expr& e);

  Expr mask;                               // lanes that are active; null: all
  std::unordered_set<const VarNode*> own;  // addresses of memory that each lane has its own part of
  std::string refusal;                     // set when an expression cannot be computed in lanes

 private:
  Expr load(const BufferLoad& load);
  Expr call(const Call& call, const Expr& self);
  Expr choice(const Expr& condition, const Expr& yes, const Expr& no, bool lazy);
  Expr refuse(std::string reason, const Expr& e) {
    if (refusal.empty()) refusal = std::move(reason);
    return e;
  }
  template <class Kind>
  Expr compare(const Kind& n, Expr (*build)(Expr, Expr));

  int64_t lanes_;
  std::unordered_map<const VarNode*, Expr> values_;
};

}  // namespace lathe::tir
