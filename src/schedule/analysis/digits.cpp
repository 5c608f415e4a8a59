#include "schedule/analysis/digits.h"

#include "ir/structural.h"
#include "support/mutation.h"

namespace lathe::schedule {

LATHE_FAULT(digits_need_no_lowest, "schedule_test", "all digits but the lowest determine a number");

namespace {

// (number // place) % count; a count of 0 stands for no remainder.
struct Place {
  int64_t place = 1, count = 0;
};

// The steps as one quotient and one remainder, where their divisors are constants that divide one another.
std::optional<Place> place_of(const DigitSteps& steps) {
  Place at;
  for (const auto& [operation, by] : steps) {
    const auto divisor = as_int(by);
    if (!divisor || *divisor <= 0) return std::nullopt;
    if (operation == '/') {
      if (at.count % *divisor != 0 || __builtin_mul_overflow(at.place, *divisor, &at.place)) return std::nullopt;
      at.count /= *divisor;
      if (at.count == 1) return std::nullopt;  // nothing is left of the number
    } else if (at.count == 0 || at.count % *divisor == 0) {
      at.count = *divisor;
    } else if (*divisor < at.count) {
      return std::nullopt;
    }
  }
  return at;
}

// By places: number // place is known for the highest digit, and a digit below that reaches up to it makes it known
// for a smaller place, down to 1.
bool determine_by_places(const std::vector<DigitSteps>& digits, std::optional<int64_t> below) {
  std::vector<Place> places;
  int64_t known = 0;
  const auto lower = [&](int64_t place) { known = known == 0 ? place : std::min(known, place); };
  for (const DigitSteps& steps : digits) {
    const auto at = place_of(steps);
    if (!at) continue;
    // A remainder that takes nothing away is none.
    if (at->count == 0 || (below && at->count >= *below / at->place + (*below % at->place != 0)))
      lower(at->place);
    else
      places.push_back(*at);
  }
  if (known == 0) return false;
  for (size_t round = 0; known > 1 && round <= places.size(); ++round)
    for (const Place& each : places)
      if (each.place < known && known % each.place == 0 && each.count % (known / each.place) == 0) lower(each.place);
  return known == 1 || support::flip(digits_need_no_lowest);
}

// The same for divisors that are any expressions: n is chosen among those taken first, and all digits that begin with
// % n or / n split into two smaller systems.
bool determine_by_splits(const std::vector<DigitSteps>& digits, size_t depth) {
  if (depth > 8) return false;
  for (const DigitSteps& steps : digits)
    if (steps.empty()) return true;
  for (const DigitSteps& chosen : digits) {
    const Expr& divisor = chosen.front().second;
    std::vector<DigitSteps> quotient, remainder;
    for (const DigitSteps& steps : digits) {
      if (!structural_equal(steps.front().second, divisor)) continue;
      (steps.front().first == '/' ? quotient : remainder).emplace_back(steps.begin() + 1, steps.end());
    }
    if (quotient.empty() || remainder.empty()) continue;
    if (determine_by_splits(quotient, depth + 1) && determine_by_splits(remainder, depth + 1)) return true;
  }
  return false;
}

}  // namespace

Digit digit_of(const Expr& atom) {
  if (const auto* quotient = atom.as<FloorDiv>()) {
    Digit digit = digit_of(quotient->a);
    digit.steps.emplace_back('/', quotient->b);
    return digit;
  }
  if (const auto* remainder = atom.as<FloorMod>()) {
    Digit digit = digit_of(remainder->a);
    digit.steps.emplace_back('%', remainder->b);
    return digit;
  }
  return {atom, {}};
}

bool same_steps(const DigitSteps& a, const DigitSteps& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].first != b[i].first || !structural_equal(a[i].second, b[i].second)) return false;
  return true;
}

bool determine(const std::vector<DigitSteps>& digits, std::optional<int64_t> below) {
  return determine_by_splits(digits, 0) || determine_by_places(digits, below);
}

}  // namespace lathe::schedule
