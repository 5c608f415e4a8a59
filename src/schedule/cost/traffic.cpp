#include "schedule/cost/traffic.h"

#include <map>

#include "ir/match.h"

namespace lathe::schedule {

using namespace tir;  // NOLINT: this file is about programs

namespace {

constexpr double line_bytes = target::cache_line_bytes;

// From the least to the greatest value, both taken.
struct Values {
  int64_t min = 0, max = 0;
  double count() const { return static_cast<double>(max) - static_cast<double>(min) + 1; }
};
using Environment = std::unordered_map<const ir::Node*, Values>;

// The values of an index over what its variables take; wide where it is not arithmetic on them.
class IndexValues {
 public:
  explicit IndexValues(const Environment& variables) : variables_(variables) {}

  // Nothing: any value.
  std::optional<Values> of(const Expr& e) const {
    if (const auto value = ir::as_int(e)) return Values{*value, *value};
    if (const auto it = variables_.find(e.get()); it != variables_.end()) return it->second;
    if (const auto* cast = e.as<ir::Cast>()) return of(cast->value);
    if (const auto* call = e.as<ir::Call>(); call && call->op == &ir::intrinsic::likely) return of(call->args[0]);
    if (const auto* select = e.as<ir::Select>()) return both(select->true_value, select->false_value, hull);
    if (const auto* add = e.as<ir::Add>())
      return both(add->a, add->b, [](Values a, Values b) { return Values{a.min + b.min, a.max + b.max}; });
    if (const auto* sub = e.as<ir::Sub>())
      return both(sub->a, sub->b, [](Values a, Values b) { return Values{a.min - b.max, a.max - b.min}; });
    if (const auto* mul = e.as<ir::Mul>()) return both(mul->a, mul->b, product);
    if (const auto* min = e.as<ir::Min>())
      return both(min->a, min->b,
                  [](Values a, Values b) { return Values{std::min(a.min, b.min), std::min(a.max, b.max)}; });
    if (const auto* max = e.as<ir::Max>())
      return both(max->a, max->b,
                  [](Values a, Values b) { return Values{std::max(a.min, b.min), std::max(a.max, b.max)}; });
    if (const auto* div = e.as<ir::FloorDiv>()) return divided(div->a, div->b, true);
    if (const auto* mod = e.as<ir::FloorMod>()) return divided(mod->a, mod->b, false);
    return std::nullopt;
  }

 private:
  static Values hull(Values a, Values b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
  static Values product(Values a, Values b) {
    const auto [least, greatest] = std::minmax({a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max});
    return {least, greatest};
  }
  static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

  std::optional<Values> both(const Expr& a, const Expr& b, Values (*combine)(Values, Values)) const {
    const auto left = of(a), right = of(b);
    if (!left || !right || !small(*left) || !small(*right)) return std::nullopt;
    return combine(*left, *right);
  }
  // Of which products and sums cannot overflow.
  static bool small(Values v) { return v.min > -(int64_t{1} << 31) && v.max < int64_t{1} << 31; }

  std::optional<Values> divided(const Expr& a, const Expr& b, bool quotient) const {
    const auto divisor = ir::as_int(b);
    const auto value = of(a);
    if (!divisor || *divisor <= 0 || !value) return std::nullopt;
    const Values quotients{floor_div(value->min, *divisor), floor_div(value->max, *divisor)};
    if (quotient) return quotients;
    if (quotients.min != quotients.max) return Values{0, *divisor - 1};
    return Values{value->min - quotients.min * *divisor, value->max - quotients.min * *divisor};
  }

  const Environment& variables_;
};

bool is_in_memory(const BufferAccess& access) { return access.buffer->scope != "register" && !access.in_init; }

}  // namespace

// The part of a buffer that accesses touch, a range of each dimension.
struct Traffic::Box {
  std::vector<Values> sides;

  void include(const Box& other) {
    for (size_t d = 0; d < sides.size(); ++d)
      sides[d] = {std::min(sides[d].min, other.sides[d].min), std::max(sides[d].max, other.sides[d].max)};
  }

  // In whole lines: what is contiguous is one piece.
  double bytes(const BufferNode& buffer) const {
    double piece = buffer.dtype.bits * buffer.dtype.lanes / 8.0, pieces = 1;
    bool contiguous = true;
    for (size_t d = sides.size(); d-- > 0;) {
      (contiguous ? piece : pieces) *= sides[d].count();
      const auto extent = ir::as_int(buffer.shape[d]);
      contiguous = contiguous && extent && sides[d].count() >= static_cast<double>(*extent);
    }
    return pieces * std::ceil(piece / line_bytes) * line_bytes;
  }
};

std::optional<Traffic> Traffic::of(const Stmt& body) {
  Traffic traffic;
  for (BufferAccess& access : buffer_accesses(body)) {
    for (const Ref<For>& loop : access.loops)
      if (!ir::as_int(loop->extent)) return std::nullopt;
    for (const Expr& extent : access.buffer->shape)
      if (!ir::as_int(extent)) return std::nullopt;
    if (is_in_memory(access)) traffic.accesses_.push_back(std::move(access));
  }
  return traffic;
}

double Traffic::touched() const { return touched(accesses_, 0); }

double Traffic::missed(double cache_bytes) const {
  return touched() <= cache_bytes ? 0 : missed(accesses_, 0, cache_bytes);
}

// What the accesses touch in one iteration of the first `depth` loops, which they share: their first.
double Traffic::touched(std::span<const BufferAccess> accesses, size_t depth) const {
  struct Parts {
    Box whole;
    double apart = 0;  // the sum of the boxes of different accesses
    std::vector<Box> boxes;
  };
  std::map<const BufferNode*, Parts> parts;
  for (const BufferAccess& access : accesses) {
    Environment variables;
    for (size_t k = 0; k < access.loops.size(); ++k) {
      const For& loop = *access.loops[k];
      const int64_t first = ir::as_int(loop.min).value_or(0), extent = *ir::as_int(loop.extent);
      variables[loop.loop_var.get()] =
          k < depth ? Values{first, first} : Values{first, first + std::max<int64_t>(extent, 1) - 1};
    }
    const IndexValues values(variables);
    Box box;
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const int64_t last = std::max<int64_t>(*ir::as_int(access.buffer->shape[d]), 1) - 1;
      const Values found = values.of(access.indices[d]).value_or(Values{0, last});
      const int64_t low = std::clamp<int64_t>(found.min, 0, last);
      box.sides.push_back({low, std::clamp<int64_t>(found.max, low, last)});
    }
    Parts& part = parts[access.buffer.get()];
    if (part.boxes.empty())
      part.whole = box;
    else
      part.whole.include(box);
    const auto same = [&](const Box& other) {
      return std::ranges::equal(other.sides, box.sides,
                                [](Values a, Values b) { return a.min == b.min && a.max == b.max; });
    };
    if (std::ranges::any_of(part.boxes, same)) continue;
    part.apart += box.bytes(*access.buffer);
    part.boxes.push_back(std::move(box));
  }
  double bytes = 0;
  for (const auto& [buffer, part] : parts) bytes += std::min(part.whole.bytes(*buffer), part.apart);
  return bytes;
}

// The same of what misses; the accesses do not fit together.
double Traffic::missed(std::span<const BufferAccess> accesses, size_t depth, double cache_bytes) const {
  double bytes = 0;
  for (size_t first = 0, end = 0; first < accesses.size(); first = end) {
    const BufferAccess& access = accesses[first];
    end = first + 1;
    if (access.loops.size() <= depth) {
      bytes += touched(accesses.subspan(first, 1), depth);
      continue;
    }
    const Ref<For>& loop = access.loops[depth];
    while (end < accesses.size() && accesses[end].loops.size() > depth && accesses[end].loops[depth] == loop) ++end;
    const auto inside = accesses.subspan(first, end - first);
    if (touched(inside, depth + 1) <= cache_bytes)
      bytes += touched(inside, depth);
    else
      bytes += static_cast<double>(*ir::as_int(loop->extent)) * missed(inside, depth + 1, cache_bytes);
  }
  return bytes;
}

}  // namespace lathe::schedule
