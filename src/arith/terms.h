// Looking at expressions quickly: kinds as numbers for switches, equality of values without binders, and a total order
// that is the same in every run.
#pragma once

#include "ir/build.h"
#include "ir/floor.h"

namespace lathe::arith {

using ir::DType;
using ir::Expr;
using ir::ExprNode;
using ir::Var;
using ir::VarNode;

// The number of a kind, for `switch (kind_of(e))`.
template <class T>
inline constexpr int kind = ir::FamilyKinds<ExprNode>::type::index_of<T>();
inline int kind_of(const ExprNode& e) { return e.node_class().kind; }
inline int kind_of(const Expr& e) { return e->node_class().kind; }

// The node as a kind that the caller has made sure of, by a switch as above.
template <class T>
const T& as(const ExprNode& e) {
  return static_cast<const T&>(e);
}
template <class T>
const T& as(const Expr& e) {
  return static_cast<const T&>(*e);
}

// Calls `visit` with the node as its kind when it has two operands `a` and `b`; false for other kinds.
template <class F>
bool visit_binary(const ExprNode& e, F&& visit) {
  switch (kind_of(e)) {
#define LATHE_CASE(Kind)    \
  case kind<ir::Kind>:      \
    visit(as<ir::Kind>(e)); \
    return true;
    // clang-format off
    LATHE_CASE(Add) LATHE_CASE(Sub) LATHE_CASE(Mul) LATHE_CASE(Div) LATHE_CASE(Mod) LATHE_CASE(FloorDiv)
    LATHE_CASE(FloorMod) LATHE_CASE(Min) LATHE_CASE(Max) LATHE_CASE(EQ) LATHE_CASE(NE) LATHE_CASE(LT) LATHE_CASE(LE)
    LATHE_CASE(GT) LATHE_CASE(GE) LATHE_CASE(And) LATHE_CASE(Or)
#undef LATHE_CASE
    default: return false;
    // clang-format on
  }
}

// Whether two expressions are the same computation on the same variables and memory, so that one value serves for both
// where no store lies between. Calls with effects, binders and reductions are never the same.
bool same(const ExprNode& a, const ExprNode& b);
inline bool same(const Expr& a, const Expr& b) { return a.get() == b.get() || same(*a, *b); }

// A total order up to `same`, by kind, names and constants; variables of one name in the order in which `numbers` meets
// them. Negative, zero or positive.
using VarNumbers = std::unordered_map<const VarNode*, int>;
int compare(const ExprNode& a, const ExprNode& b, VarNumbers& numbers);

// Sorts a short list, keeping the order of equal items.
template <class T, class Less>
void sort_few(std::vector<T>& items, Less less) {
  for (size_t i = 1; i < items.size(); ++i)
    for (size_t j = i; j > 0 && less(items[j], items[j - 1]); --j) std::swap(items[j], items[j - 1]);
}

// Arithmetic on int64 that says when the result does not fit.
inline bool checked_add(int64_t a, int64_t b, int64_t& out) { return !__builtin_add_overflow(a, b, &out); }
inline bool checked_mul(int64_t a, int64_t b, int64_t& out) { return !__builtin_mul_overflow(a, b, &out); }
using ir::floor_div;
using ir::floor_mod;
// The greatest common divisor, at least 0; of the smallest int64 and 0: 1 (always a divisor).
inline int64_t gcd(int64_t a, int64_t b) {
  constexpr int64_t smallest = std::numeric_limits<int64_t>::min();
  return a == smallest || b == smallest ? 1 : std::gcd(a, b);
}

}  // namespace lathe::arith
