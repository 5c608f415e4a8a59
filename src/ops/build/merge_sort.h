// Sorting inside a tensor program: runs of 1, 2, 4, … are merged.
#pragma once

#include "ops/build/statements.h"

namespace lathe::ops::build {

// Leaves a negative number in register `compared` where element a comes before element b, else none.
using CompareElements = std::function<tir::Stmt(const Expr& a, const Expr& b)>;

class MergeSort {
 public:
  // All int64: `order` and `other` of `count` elements, `registers` of so many as the constant says.
  MergeSort(Expr count, VectorAccess order, VectorAccess other, VectorAccess registers)
      : n_(std::move(count)), order_(std::move(order)), other_(std::move(other)), r_(std::move(registers)) {}

  // order[k] becomes the number of the element that comes at place k; equals stay in their order.
  tir::Stmt sort(const CompareElements& compare) const;

  static constexpr int64_t registers = 8, compared = 7;

 private:
  enum : int64_t { width, low, middle, high, left, right, out };

  tir::Stmt merge(const CompareElements& compare) const;

  const Expr n_;
  const VectorAccess order_, other_, r_;
};

}  // namespace lathe::ops::build
