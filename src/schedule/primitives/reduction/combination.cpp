#include "schedule/primitives/reduction/combination.h"

#include "ir/structural.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule {

LATHE_FAULT(rfactor_wrong_identity, "schedule_test", "rfactor: partial results start at one");

namespace {

// What no value of the type is above (or below).
Expr extreme(DType dtype, bool largest) {
  if (dtype.is_ieee_float() || dtype.is_bfloat16())
    return constant(dtype, (largest ? 1 : -1) * std::numeric_limits<double>::infinity());
  return largest ? max_value(dtype) : min_value(dtype);
}

}  // namespace

std::optional<std::pair<Expr, Expr>> sides_of(const NodeRef& e) {
  const auto of = [](const auto& node) { return std::pair(node.a, node.b); };
  if (const auto* sum = e.as<Add>()) return of(*sum);
  if (const auto* product = e.as<Mul>()) return of(*product);
  if (const auto* larger = e.as<Max>()) return of(*larger);
  if (const auto* smaller = e.as<Min>()) return of(*smaller);
  return std::nullopt;
}

std::optional<Combination> combination(const Block& block) {
  Combination found;
  found.store = block.body.as<BufferStore>();
  const auto* init = block.init ? block.init.as<BufferStore>() : nullptr;
  if (!found.store || (block.init && !init) || found.store->predicate) return std::nullopt;
  const DType dtype = found.store->value->dtype;
  const auto is_own = [&](const Expr& e) {
    const auto* load = e.as<BufferLoad>();
    return load && load->buffer == found.store->buffer;
  };
  const Expr& value = found.store->value;
  bool matched = false;
  if (const auto sides = sides_of(value)) {
    matched = is_own(sides->first) != is_own(sides->second);
    found.value = is_own(sides->first) ? sides->second : sides->first;
  }
  if (value.is<Add>()) {
    found.combine = [](Expr a, Expr b) { return a + b; };
    found.identity = constant(dtype, support::flip(rfactor_wrong_identity) ? 1 : 0);
  } else if (value.is<Mul>()) {
    found.combine = [](Expr a, Expr b) { return a * b; };
    found.identity = constant(dtype, 1);
  } else if (value.is<Max>()) {
    found.combine = [](Expr a, Expr b) { return max(std::move(a), std::move(b)); };
    found.identity = init ? init->value : extreme(dtype, false);
  } else if (value.is<Min>()) {
    found.combine = [](Expr a, Expr b) { return min(std::move(a), std::move(b)); };
    found.identity = init ? init->value : extreme(dtype, true);
  } else if (const auto* chosen = value.as<Select>()) {
    // The larger, where a NaN is passed over: the result so far is never one.
    const auto* more = chosen->condition.as<GT>();
    matched = more && is_own(chosen->false_value) && is_own(more->b) && !is_own(chosen->true_value) &&
              structural_equal(more->a, chosen->true_value);
    found.value = chosen->true_value;
    found.combine = [](Expr a, Expr b) { return select(gt(b, a), b, a); };
    found.identity = init ? init->value : extreme(dtype, false);
    if (const auto start = found.identity ? as_float(found.identity) : std::nullopt; !start || std::isnan(*start))
      matched = false;
  }
  if (!matched) return std::nullopt;
  // The identity of max and min is the block's own start where it has one, the same for every element.
  return as_int(found.identity) || as_float(found.identity) ? std::optional(found) : std::nullopt;
}

}  // namespace lathe::schedule
