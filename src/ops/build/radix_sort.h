// Sorting inside a tensor program (Knuth, The Art of Computer Programming, volume 3, 5.2.5): elements become unsigned
// keys of the same order, which are put in order by a digit of eight bits at a time, the lowest first. Of few elements
// it is counted, in vectors, how many come before each (5.2, algorithm C).
#pragma once

#include "ops/build/statements.h"

namespace lathe::ops::build {

// a before b, NaN last.
Expr comes_before(const Expr& a, const Expr& b);

// A number of as many bits as the element has, and eight at least, unsigned: keys stand to each other as the elements
// do, NaN above all numbers, or the other way round where they descend. Also of vectors.
Expr order_key(const Expr& element, bool descending);
DType order_key_dtype(DType element);

class RadixSort {
 public:
  // What the sort works in, for so many elements at most: memory of the block around. The elements lie in one of two
  // rows.
  struct Memory {
    Memory(DType element, const Expr& capacity);
    Buffers all() const;
    const ir::Buffer keys, places;  // [2, capacity and a vector]
    const ir::Buffer counts;        // [digits, 256]
    const ir::Buffer ranks;
    const ir::Buffer registers;
  };
  explicit RadixSort(const Memory& memory);

  // Nothing is known of the elements before this.
  tir::Stmt start() const;
  // Of element number `at`: its key, and the int64 that goes with it.
  Expr key(const Expr& at) const;
  Expr place(const Expr& at) const;
  tir::Stmt put(const Expr& at, const Expr& key, const Expr& place) const;
  // The first `count` elements, `most` at most, in ascending order of their keys; equals stay in their order.
  tir::Stmt sort(const Expr& count, const Expr& most) const;
  tir::Stmt sort(const Expr& count) const { return sort(count, count); }

 private:
  enum : int64_t { side, at, before, register_count };

  tir::Stmt by_counting(const Expr& count) const;
  tir::Stmt by_digits(const Expr& count) const;
  tir::Stmt count_digits(const Expr& count) const;
  tir::Stmt by_digit(const Expr& count, int64_t digit) const;
  Expr digit_of(const Expr& key, int64_t digit) const;
  int64_t digits() const;

  const ir::Buffer keys_, places_, counts_, ranks_;
  const VectorAccess r_;
};

}  // namespace lathe::ops::build
