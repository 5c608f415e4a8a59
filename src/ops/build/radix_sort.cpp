#include "ops/build/radix_sort.h"

namespace lathe::ops::build {

namespace {

constexpr int64_t digit_bits = 8, values_of_a_digit = 1 << digit_bits;
constexpr int64_t lanes = 16;
constexpr int64_t a_few = 256;  // elements that are compared with one another, whose ranks fit any key

// The element as one of a dtype whose bits a key can be made of.
Expr of_whole_bytes(const Expr& element) {
  const DType dtype = element->dtype;
  const auto as = [&](DType to) { return ir::cast(to.with_lanes(dtype.lanes), element); };
  if (dtype.is_bool()) return as(DType::uint(8));
  if (dtype.is_floating()) return dtype.bits < 16 ? as(DType::float_(32)) : element;
  if (dtype.bits >= 8) return element;
  return as(dtype.is_uint() ? DType::uint(8) : DType::int_(8));
}

}  // namespace

Expr comes_before(const Expr& a, const Expr& b) {
  if (a->dtype.is_bool()) return ir::logical_and(ir::logical_not(a), b);
  if (!a->dtype.is_floating()) return a < b;
  return ir::logical_or(a < b, ir::logical_and(ir::ne(b, b), ir::eq(a, a)));
}

DType order_key_dtype(DType element) {
  if (element.is_floating()) return DType::uint(std::max<int>(element.bits, element.bits < 16 ? 32 : 16));
  return DType::uint(std::max<int>(element.bits, 8));
}

Expr order_key(const Expr& element, bool descending) {
  const Expr value = of_whole_bytes(element);
  const DType dtype = value->dtype, bits = order_key_dtype(element->dtype.element()).with_lanes(dtype.lanes);
  const auto flipped = [&](const Expr& e) { return ir::call(bits, ir::intrinsic::bitwise_not, {e}); };
  const auto one_of = [&](const ir::Intrinsic& op, const Expr& a, const Expr& b) { return ir::call(bits, op, {a, b}); };
  const Expr sign = one_of(ir::intrinsic::shift_left, ir::constant(bits, 1), ir::constant(bits, dtype.bits - 1));
  const Expr zero = ir::constant(bits, 0);
  Expr key = value;
  if (!dtype.is_uint()) {
    // Both zeros are one.
    const Expr none = ir::constant(dtype, 0);
    const Expr number = dtype.is_floating() ? ir::select(ir::eq(value, none), none, value) : value;
    const Expr raw = ir::call(bits, ir::intrinsic::reinterpret, {number});
    key = one_of(ir::intrinsic::bitwise_xor, raw, sign);
    // Of negative floats the larger bits are those of the smaller number.
    if (dtype.is_floating()) {
      key = ir::select(ir::eq(one_of(ir::intrinsic::bitwise_and, raw, sign), zero), key, flipped(raw));
      key = ir::select(ir::eq(value, value), key, flipped(zero));
    }
  }
  return descending ? flipped(key) : key;
}

RadixSort::Memory::Memory(DType element, const Expr& capacity)
    : keys(scratch("keys", {ir::int64(2), relax::simplified(capacity + lanes)}, order_key_dtype(element))),
      places(scratch("key_places", keys->shape, DType::int64())),
      counts(
          scratch("digits", {ir::int64(keys->dtype.bits / digit_bits), ir::int64(values_of_a_digit)}, DType::int64())),
      ranks(scratch("ranks", {ir::int64(a_few)}, keys->dtype)),
      registers(scratch("sorting", {ir::int64(register_count)}, DType::int64())) {}

Buffers RadixSort::Memory::all() const { return {keys, places, counts, ranks, registers}; }

RadixSort::RadixSort(const Memory& memory)
    : keys_(memory.keys),
      places_(memory.places),
      counts_(memory.counts),
      ranks_(memory.ranks),
      r_{memory.registers, {}} {}

int64_t RadixSort::digits() const { return keys_->dtype.bits / digit_bits; }

tir::Stmt RadixSort::start() const { return r_.set(side, ir::int64(0)); }
Expr RadixSort::key(const Expr& at) const { return ir::load(keys_, {r_[side], at}); }
Expr RadixSort::place(const Expr& at) const { return ir::load(places_, {r_[side], at}); }
tir::Stmt RadixSort::put(const Expr& at, const Expr& key, const Expr& place) const {
  return tir::seq({store(keys_, key, {r_[side], at}), store(places_, place, {r_[side], at})});
}

Expr RadixSort::digit_of(const Expr& key, int64_t digit) const {
  const DType bits = key->dtype;
  const Expr shifted = ir::call(bits, ir::intrinsic::shift_right, {key, ir::constant(bits, digit * digit_bits)});
  return ir::cast(DType::int64(),
                  ir::call(bits, ir::intrinsic::bitwise_and, {shifted, ir::constant(bits, values_of_a_digit - 1)}));
}

tir::Stmt RadixSort::sort(const Expr& count, const Expr& most) const {
  if (ir::as_int(most).value_or(a_few + 1) <= a_few) return by_counting(count);
  return ir::as_int(count) ? by_digits(count) : when(count <= a_few, by_counting(count), by_digits(count));
}

tir::Stmt RadixSort::by_counting(const Expr& count) const {
  const Expr other = 1 - r_[side], none = ir::int64(0);
  const DType words = keys_->dtype.with_lanes(lanes);
  const Expr groups = relax::simplified(ir::floordiv(count + (lanes - 1), ir::int64(lanes)));
  // Whole vectors are looked at.
  const tir::Stmt fill = loops_over({relax::simplified(groups * lanes - count)}, [&](const Indices& i) {
    return store(keys_, ir::constant(keys_->dtype, 0), {r_[side], count + i[0]});
  });
  const tir::Stmt rank = loops_over({groups}, [&](const Indices& group) {
    const Expr first = group[0] * lanes, behind = ir::min(first + lanes, count);
    const Expr elements = ir::make<ir::Ramp>(first, ir::int64(1), lanes), own = key(elements);
    // One more for those that an element between `begin` and `end` comes before.
    const auto add = [&](const Expr& begin, const Expr& end, const std::function<Expr(const Expr& j)>& comes_before) {
      return loops_over({end - begin}, [&](const Indices& i) {
        const Expr more = ir::select(comes_before(begin + i[0]), ir::constant(words, 1), ir::constant(words, 0));
        return store(ranks_, ir::load(ranks_, {elements}) + more, {elements});
      });
    };
    return tir::seq({store(ranks_, ir::constant(words, 0), {elements}),
                     add(none, first, [&](const Expr& j) { return key(j) <= own; }),
                     add(first, behind,
                         [&](const Expr& j) {
                           return ir::logical_or(key(j) < own, ir::logical_and(ir::eq(key(j), own), j < elements));
                         }),
                     add(behind, count, [&](const Expr& j) { return key(j) < own; })});
  });
  const tir::Stmt move = loops_over({count}, [&](const Indices& i) {
    return tir::seq({r_.set(at, ir::cast(DType::int64(), ir::load(ranks_, i))),
                     store(keys_, key(i[0]), {other, r_[at]}), store(places_, place(i[0]), {other, r_[at]})});
  });
  return tir::seq({fill, rank, move, r_.set(side, other)});
}

tir::Stmt RadixSort::count_digits(const Expr& count) const {
  const Shape all{ir::int64(digits()), ir::int64(values_of_a_digit)};
  const tir::Stmt none = loops_over(all, [&](const Indices& i) { return store(counts_, ir::int64(0), i); });
  const tir::Stmt each = loops_over({count}, [&](const Indices& i) {
    std::vector<tir::Stmt> counted;
    for (int64_t d = 0; d < digits(); ++d) {
      const Indices cell{ir::int64(d), digit_of(key(i[0]), d)};
      counted.push_back(store(counts_, ir::load(counts_, cell) + 1, cell));
    }
    return tir::seq(std::move(counted));
  });
  return tir::seq({none, each});
}

tir::Stmt RadixSort::by_digit(const Expr& count, int64_t digit) const {
  const Expr d = ir::int64(digit), other = 1 - r_[side];
  // Numbers of elements become where the first of each goes.
  const tir::Stmt begins = loops_over({ir::int64(values_of_a_digit)}, [&](const Indices& value) {
    return tir::seq({r_.set(at, ir::load(counts_, {d, value[0]})), store(counts_, r_[before], {d, value[0]}),
                     r_.set(before, r_[before] + r_[at])});
  });
  const tir::Stmt move = loops_over({count}, [&](const Indices& i) {
    const Indices cell{d, digit_of(key(i[0]), digit)};
    return tir::seq({r_.set(at, ir::load(counts_, cell)), store(counts_, r_[at] + 1, cell),
                     store(keys_, key(i[0]), {other, r_[at]}), store(places_, place(i[0]), {other, r_[at]})});
  });
  const tir::Stmt all = tir::seq({r_.set(before, ir::int64(0)), begins, move, r_.set(side, other)});
  // A digit that is the same in all leaves them where they are.
  const Expr equal = ir::load(counts_, {d, digit_of(key(ir::int64(0)), digit)});
  return when(equal < count, all);
}

tir::Stmt RadixSort::by_digits(const Expr& count) const {
  std::vector<tir::Stmt> all{count_digits(count)};
  for (int64_t d = 0; d < digits(); ++d) all.push_back(by_digit(count, d));
  return tir::seq(std::move(all));
}

}  // namespace lathe::ops::build
