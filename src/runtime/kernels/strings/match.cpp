// Whether an expression matches a whole string: all ways through the expression at once, a code point at a time
// (Thompson 1968), so the time is at most the length of the string times that of the expression.
#include "runtime/kernels/strings/kernels.h"

namespace lathe::strings {
namespace {

enum Step : int64_t { accept, one_of, either, jump, where };
enum Place : int64_t { text_begins, text_ends, line_begins, line_ends, word_edge, no_word_edge };

struct Instruction {
  int64_t step;
  int64_t a, b;  // one_of: first range, how many; either: both next; jump: next; where: a Place
};
struct CodeRange {
  int64_t first, last;
};
static_assert(sizeof(Instruction) == 24 && sizeof(CodeRange) == 16);

struct Expression {
  int64_t count = 0, range_count = 0;
  const Instruction* instructions = nullptr;
  const CodeRange* ranges = nullptr;

  bool read(AttributeReader& attributes) {
    const char *at = nullptr, *ranges_at = nullptr;
    if (!attributes.word(&count) || count < 1 || count > INT32_MAX ||
        !attributes.words(static_cast<uint64_t>(count) * 3, &at) || !attributes.word(&range_count) || range_count < 0 ||
        range_count > INT32_MAX || !attributes.words(static_cast<uint64_t>(range_count) * 2, &ranges_at))
      return false;
    instructions = reinterpret_cast<const Instruction*>(at);
    ranges = reinterpret_cast<const CodeRange*>(ranges_at);
    for (int64_t i = 0; i < count; ++i)
      if (!is_good(instructions[i], i)) return false;
    return true;
  }

 private:
  bool is_target(int64_t i) const { return i >= 0 && i < count; }
  bool is_good(const Instruction& at, int64_t i) const {
    switch (at.step) {
      case accept:
        return true;
      case one_of:
        return is_target(i + 1) && at.a >= 0 && at.b >= 0 && at.b <= range_count && at.a <= range_count - at.b;
      case either:
        return is_target(at.a) && is_target(at.b);
      case jump:
        return is_target(at.a);
      case where:
        return is_target(i + 1) && at.a >= text_begins && at.a <= no_word_edge;
      default:
        return false;
    }
  }
};

constexpr int64_t nothing = -1;  // before the first code point and after the last

bool is_word(int64_t code) {
  return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z') || code == '_';
}

bool is_at(int64_t place, int64_t before, int64_t after) {
  switch (place) {
    case text_begins:
      return before == nothing;
    case text_ends:
      return after == nothing;
    case line_begins:
      return before == nothing || before == '\n';
    case line_ends:
      return after == nothing || after == '\n';
    default:
      return (is_word(before) != is_word(after)) == (place == word_edge);
  }
}

// The instructions that are reached without a code point more, each once.
class Reached {
 public:
  bool allocate(Call& call, const Expression& expression) {
    expression_ = &expression;
    const auto count = static_cast<uint64_t>(expression.count);
    list_ = static_cast<int32_t*>(call.scratch(count, sizeof(int32_t)));
    place_ = static_cast<int32_t*>(call.scratch(count, sizeof(int32_t)));
    open_ = static_cast<int32_t*>(call.scratch(count * 2 + 1, sizeof(int32_t)));
    if (list_ == nullptr || place_ == nullptr || open_ == nullptr) return false;
    std::memset(place_, 0, count * sizeof(int32_t));
    return true;
  }
  void clear() { count_ = 0; }
  int64_t count() const { return count_; }
  int32_t operator[](int64_t i) const { return list_[i]; }

  void add(int64_t first, int64_t before, int64_t after) {
    int64_t open = 0;
    open_[open++] = static_cast<int32_t>(first);
    while (open > 0) {
      const int32_t at = open_[--open];
      if (place_[at] < count_ && list_[place_[at]] == at) continue;
      place_[at] = static_cast<int32_t>(count_);
      list_[count_++] = at;
      const Instruction& instruction = expression_->instructions[at];
      if (instruction.step == jump || instruction.step == either) open_[open++] = static_cast<int32_t>(instruction.a);
      if (instruction.step == either) open_[open++] = static_cast<int32_t>(instruction.b);
      if (instruction.step == where && is_at(instruction.a, before, after)) open_[open++] = at + 1;
    }
  }

 private:
  const Expression* expression_ = nullptr;
  int32_t *list_ = nullptr, *place_ = nullptr, *open_ = nullptr;
  int64_t count_ = 0;
};

bool takes(const Expression& expression, const Instruction& at, int64_t code) {
  int64_t low = at.a, high = at.a + at.b;  // ranges in order
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (expression.ranges[middle].last < code)
      low = middle + 1;
    else
      high = middle;
  }
  return low < at.a + at.b && expression.ranges[low].first <= code;
}

// 1 or 0; negative when the run is to end.
int matches(const Call& call, const Expression& expression, const Text& text, Reached& now, Reached& next) {
  const char *at = text.at, *const end = text.at + text.bytes;
  int64_t before = nothing, after = at < end ? decode(&at, end) : nothing;
  now.clear();
  now.add(0, before, after);
  for (uint64_t turn = 1; after != nothing && now.count() > 0; ++turn) {
    before = after;
    after = at < end ? decode(&at, end) : nothing;
    next.clear();
    for (int64_t i = 0; i < now.count(); ++i) {
      const Instruction& instruction = expression.instructions[now[i]];
      if (instruction.step == one_of && takes(expression, instruction, before)) next.add(now[i] + 1, before, after);
    }
    // The lists change places by what they point to.
    auto swap = now;
    now = next;
    next = swap;
    if (turn % 256 == 0 && call.is_stopped()) return -1;
  }
  if (after != nothing) return 0;
  for (int64_t i = 0; i < now.count(); ++i)
    if (expression.instructions[now[i]].step == accept) return 1;
  return 0;
}

}  // namespace

int32_t match(const LatheRuntimeCall* given) {
  Call call(given);
  Expression expression;
  if (!expression.read(call.attributes)) return call.wrong_attributes();
  const DLTensor* x = call.operand(0, string_number);
  if (x == nullptr) return call.failed();
  auto* out = static_cast<uint8_t*>(call.result(0, bool_type, x->ndim, x->shape));
  Reached now, next;
  if (out == nullptr || !now.allocate(call, expression) || !next.allocate(call, expression)) return call.failed();
  for (int64_t i = 0; i < count_of(*x); ++i) {
    Text text;
    if (!call.text(numbers(*x)[i], &text)) return call.failed();
    const int is_match = matches(call, expression, text, now, next);
    if (is_match < 0) return call.stop();
    out[i] = static_cast<uint8_t>(is_match);
    if (i % 1024 == 1023 && call.is_stopped()) return call.stop();
  }
  return 0;
}

}  // namespace lathe::strings
