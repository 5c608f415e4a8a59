#include "ops/build/heap.h"

#include "ops/build/statements.h"

namespace lathe::ops::build {

namespace {

enum : int64_t { origin, place, child, goes_on, registers };

}  // namespace

Heap::Hand::Hand(DType dtype)
    : value(ir::buffer("held_value", {ir::int64(1)}, dtype, "local")),
      numbers(ir::buffer("held_numbers", {ir::int64(registers)}, DType::int64(), "local")) {}

Heap::Heap(VectorAccess values, VectorAccess origins, const Hand& hand, Order order)
    : values_(std::move(values)),
      origins_(std::move(origins)),
      value_{hand.value, {}},
      numbers_{hand.numbers, {}},
      order_(std::move(order)) {}

tir::Stmt Heap::put(const Expr& to, const Element& element) const {
  // The value last: the order of elements asks for it.
  return tir::seq({origins_.set(to, element.origin), values_.set(to, element.value)});
}

tir::Stmt Heap::hold(const Element& element) const {
  return tir::seq({numbers_.set(origin, element.origin), value_.set(0, element.value)});
}

tir::Stmt Heap::sink(const Expr& size, const Expr& from) const {
  const Element held{value_[0], numbers_[origin]};
  const Expr first = numbers_[place] * 2 + 1, last = size - 1;
  const Expr left = ir::min(first, last), right = ir::min(first + 1, last);
  const tir::Stmt choose = numbers_.set(child, ir::select(order_(at(right), at(left)), right, left));
  const tir::Stmt rise = tir::seq({put(numbers_[place], at(numbers_[child])), numbers_.set(place, numbers_[child])});
  const tir::Stmt stop = numbers_.set(goes_on, ir::int64(0));
  const tir::Stmt step =
      when(first < size, tir::seq({choose, when(order_(at(numbers_[child]), held), rise, stop)}), stop);
  return tir::seq({numbers_.set(place, from), numbers_.set(goes_on, ir::int64(1)),
                   ir::make<tir::While>(ir::ne(numbers_[goes_on], ir::int64(0)), step), put(numbers_[place], held)});
}

tir::Stmt Heap::make(const Expr& size) const {
  const Expr parents = ir::floordiv(size, ir::int64(2));
  return loops_over({parents}, [&](const Indices& i) {
    const Expr parent = parents - 1 - i[0];
    return tir::seq({hold(at(parent)), sink(size, parent)});
  });
}

tir::Stmt Heap::replace_top(const Expr& size, const Element& element) const {
  return tir::seq({hold(element), sink(size, ir::int64(0))});
}

tir::Stmt Heap::sort(const Expr& size) const {
  return loops_over({ir::max(size - 1, ir::int64(0))}, [&](const Indices& i) {
    const Expr last = size - 1 - i[0];
    return tir::seq({hold(at(last)), put(last, at(ir::int64(0))), sink(last, ir::int64(0))});
  });
}

}  // namespace lathe::ops::build
