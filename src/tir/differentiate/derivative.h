// Derivatives of scalar expressions by the elements that they read: the step that reversing a tensor program repeats.
#pragma once

#include "support/function_ref.h"
#include "tir/stmt.h"

namespace lathe::tir {

// What an expression's adjoint adds to the adjoint of one element that it reads: `amount`, where `guard` holds (null:
// always). `amount` may read what only `guard` makes legal.
struct Contribution {
  Ref<BufferLoad> element;
  Expr guard, amount;
};

// Whether derivatives by the elements of a buffer are wanted.
using IsActive = support::function_ref<bool(const Buffer&)>;

// What `adjoint`, an expression of e's dtype, adds to the elements of active buffers that `e` reads; contributions to
// one element under one guard are one. What is no float has no derivative. Where a function has none, as at a kink,
// the convention is: of equal operands min and max take the first; abs, and steps such as floor, have the slope 0.
// An intrinsic without a derivative is a DiagnosticError, tir-no-gradient.
std::vector<Contribution> contributions(const Expr& e, const Expr& adjoint, IsActive is_active);

// Whether `e` reads an element of an active buffer where its value may depend on it smoothly.
bool is_active(const Expr& e, IsActive is_active);

}  // namespace lathe::tir
