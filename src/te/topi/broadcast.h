// Elementwise operators by name, with NumPy's broadcasting.
#pragma once

#include "te/tensor.h"

namespace lathe::te::topi {

struct UnaryRow {
  std::string_view name;
  Expr (*of)(const Expr& x);
  std::string_view meaning;
};
struct BinaryRow {
  std::string_view name;
  Expr (*of)(const Expr& a, const Expr& b);
  std::string_view meaning;
};
std::span<const UnaryRow> unary_rows();
std::span<const BinaryRow> binary_rows();

// The shape of both broadcast against each other: aligned at the last dimension, 1 meets any. Extents of which it is
// not known that they are equal are taken to be. Diagnostics: te-shapes.
std::vector<Expr> broadcast_shapes(const std::vector<Expr>& a, const std::vector<Expr>& b);

Tensor binary(const BinaryRow& row, const Tensor& a, const Tensor& b);
Tensor unary(const UnaryRow& row, const Tensor& x);
// The element of `a` where `condition` holds, else that of `b`.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

[[noreturn]] void refuse_shapes(std::string message);

}  // namespace lathe::te::topi
