// A binary heap inside a tensor program (Williams, "Algorithm 232: Heapsort", 1964): of its elements the one that comes
// first in some order is at its top, place 0.
#pragma once

#include "ops/build/merge_sort.h"

namespace lathe::ops::build {

class Heap {
 public:
  // An element's value, and where it comes from, int64.
  struct Element {
    Expr value, origin;
  };
  using Order = std::function<Expr(const Element& a, const Element& b)>;  // whether a comes before b: a total order

  // What is held in the hand, and where the search for its place is: memory of the block around.
  struct Hand {
    explicit Hand(DType dtype);
    const ir::Buffer value, numbers;
  };

  // Its elements lie in `values` and `origins`.
  Heap(VectorAccess values, VectorAccess origins, const Hand& hand, Order order);

  Element at(const Expr& place) const { return {values_[place], origins_[place]}; }
  tir::Stmt put(const Expr& place, const Element& element) const;
  // Makes the first `size` elements a heap.
  tir::Stmt make(const Expr& size) const;
  // Takes the top off a heap of `size` elements, one at least, and puts this one in.
  tir::Stmt replace_top(const Expr& size, const Element& element) const;
  // Puts the elements of a heap of `size` in order, what comes first last.
  tir::Stmt sort(const Expr& size) const;

 private:
  // What is held goes down from `place` to where it belongs among `size` elements.
  tir::Stmt sink(const Expr& size, const Expr& place) const;
  tir::Stmt hold(const Element& element) const;

  const VectorAccess values_, origins_;
  const VectorAccess value_, numbers_;
  const Order order_;
};

}  // namespace lathe::ops::build
