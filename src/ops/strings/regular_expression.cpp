#include "ops/strings/regular_expression.h"

#include "relax/codes.h"
#include "support/utf8.h"

namespace lathe::ops {

namespace {

using support::Diagnostic;
using support::DiagnosticError;
using Instruction = RegularExpression::Instruction;
using Ranges = std::vector<std::pair<int64_t, int64_t>>;

constexpr int64_t last_code = 0x10FFFF;
constexpr int64_t most_repeats = 1000;  // as RE2 allows
constexpr size_t most_instructions = 1 << 16;
constexpr int deepest_group = 200;

// In order, joined where they touch.
Ranges sorted(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges result;
  for (const auto& range : ranges) {
    if (!result.empty() && range.first <= result.back().second + 1)
      result.back().second = std::max(result.back().second, range.second);
    else
      result.push_back(range);
  }
  return result;
}

Ranges complement(const Ranges& ranges) {
  Ranges result;
  int64_t next = 0;
  for (const auto& [first, last] : sorted(ranges)) {
    if (first > next) result.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= last_code) result.emplace_back(next, last_code);
  return result;
}

const Ranges digits{{'0', '9'}}, spaces{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}},
    words{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

const std::map<std::string_view, Ranges>& named_classes() {
  static const std::map<std::string_view, Ranges> rows{
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7F}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
      {"digit", digits},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", words},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  return rows;
}

// The expression as a tree; a bounded repeat is written out when code is made.
struct Part {
  enum Kind : uint8_t { nothing, set, place, sequence, choice, repeat } kind = nothing;
  Ranges ranges;                // of a set
  int64_t least = 0, most = 0;  // of a repeat (-1: any number); the place
  std::vector<Part> parts;
};

struct Flags {
  bool ignores_case = false, many_lines = false, dot_takes_newline = false;
};

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  Part run() {
    Part whole = alternatives(Flags(), 0);
    if (at_ < pattern_.size()) fail("a ')' without its '('");
    return whole;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw DiagnosticError(
        Diagnostic{.code = relax::codes::wrong_attribute,
                   .message = fmt::format("the regular expression is wrong at byte {}: {}", at_, why)});
  }

  bool is_next(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!is_next(text)) return false;
    at_ += text.size();
    return true;
  }
  // A code point of UTF-8.
  int64_t take_code() {
    const size_t length = support::utf8_length(pattern_, at_);
    if (length == 0) fail("this is no UTF-8");
    const int64_t code = support::utf8_code(pattern_, at_, length);
    at_ += length;
    return code;
  }

  // The flags hold to the end of the group they stand in.
  Part alternatives(Flags flags, int depth) {
    if (depth > deepest_group) fail("groups are too deep inside each other");
    Part choice{.kind = Part::choice};
    Part sequence{.kind = Part::sequence};
    while (at_ < pattern_.size() && !is_next(")")) {
      if (take("|")) {
        choice.parts.push_back(std::move(sequence));
        sequence = Part{.kind = Part::sequence};
      } else if (take("\\Q")) {
        const size_t before = sequence.parts.size();
        while (at_ < pattern_.size() && !take("\\E")) sequence.parts.push_back(single(take_code(), flags));
        if (sequence.parts.size() > before) repeats(sequence.parts.back());
      } else if (!changes_flags(flags)) {
        sequence.parts.push_back(atom(flags, depth));
        repeats(sequence.parts.back());
      }
    }
    choice.parts.push_back(std::move(sequence));
    return choice;
  }

  // "(?im-s)" for what follows; "(?im-s:" is left for the group.
  bool changes_flags(Flags& flags) {
    const size_t begin = at_;
    Flags changed = flags;
    if (take("(?") && read_flags(changed) && take(")")) {
      flags = changed;
      return true;
    }
    at_ = begin;
    return false;
  }
  bool read_flags(Flags& flags) {
    bool on = true, any = false;
    for (; at_ < pattern_.size(); ++at_) {
      const char c = pattern_[at_];
      if (c == 'i')
        flags.ignores_case = on;
      else if (c == 'm')
        flags.many_lines = on;
      else if (c == 's')
        flags.dot_takes_newline = on;
      else if (c == '-' && on)
        on = false;
      else if (c != 'U')
        break;
      any = true;
    }
    return any;
  }

  Part atom(const Flags& flags, int depth) {
    if (take("(")) return group(flags, depth);
    if (is_next("[")) {
      ++at_;
      return Part{.kind = Part::set, .ranges = bracket(flags)};
    }
    if (take("."))
      return Part{.kind = Part::set, .ranges = flags.dot_takes_newline ? complement({}) : complement({{'\n', '\n'}})};
    if (take("^")) return place(flags.many_lines ? RegularExpression::line_begins : RegularExpression::text_begins);
    if (take("$")) return place(flags.many_lines ? RegularExpression::line_ends : RegularExpression::text_ends);
    if (is_next("*") || is_next("+") || is_next("?")) fail("there is nothing to repeat");
    if (take("\\")) return escape(flags);
    return single(take_code(), flags);
  }

  static Part place(RegularExpression::Place where) { return Part{.kind = Part::place, .least = where}; }

  Part group(Flags flags, int depth) {
    if (take("?")) {
      if (take("P<") || take("<")) {
        if (is_next("=") || is_next("!")) fail("expressions do not look around");
        const size_t end = pattern_.find('>', at_);
        const std::string_view name = end == std::string_view::npos ? "" : pattern_.substr(at_, end - at_);
        if (name.empty() ||
            !std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; }))
          fail("the name of a group is missing");
        at_ = end + 1;
      } else if (!take(":") && !(read_flags(flags) && take(":"))) {
        fail("expressions do not look around, and this is no flag");
      }
    }
    Part inside = alternatives(flags, depth + 1);
    if (!take(")")) fail("a ')' is missing");
    return inside;
  }

  // A character, in both cases where they do not count (of ASCII's letters, as far as the tables here go).
  static Ranges with_cases(Ranges ranges, const Flags& flags) {
    if (!flags.ignores_case) return sorted(std::move(ranges));
    const Ranges given = ranges;
    const auto add = [&](int64_t from, int64_t to, int64_t distance) {
      for (const auto& [first, last] : given)
        if (std::max(first, from) <= std::min(last, to))
          ranges.emplace_back(std::max(first, from) + distance, std::min(last, to) + distance);
    };
    add('a', 'z', 'A' - 'a');
    add('A', 'Z', 'a' - 'A');
    for (const char letter : {'k', 'K'}) add(letter, letter, 0x212A - letter);  // the sign of kelvin
    for (const char letter : {'s', 'S'}) add(letter, letter, 0x017F - letter);  // the long s
    return sorted(std::move(ranges));
  }
  Part single(int64_t code, const Flags& flags) {
    if (flags.ignores_case && code > 0x7F) fail("letters beyond ASCII are not compared without their case");
    return Part{.kind = Part::set, .ranges = with_cases({{code, code}}, flags)};
  }

  // \d, \w, \s and their opposites; nothing else.
  std::optional<Ranges> letter_class() {
    const char c = at_ < pattern_.size() ? pattern_[at_] : '\0';
    const Ranges* of = c == 'd' || c == 'D'   ? &digits
                       : c == 'w' || c == 'W' ? &words
                       : c == 's' || c == 'S' ? &spaces
                                              : nullptr;
    if (!of) return std::nullopt;
    ++at_;
    return c >= 'a' ? *of : complement(*of);
  }

  Part escape(const Flags& flags) {
    if (auto ranges = letter_class()) return Part{.kind = Part::set, .ranges = *ranges};
    if (take("A")) return place(RegularExpression::text_begins);
    if (take("z")) return place(RegularExpression::text_ends);
    if (take("b")) return place(RegularExpression::word_edge);
    if (take("B")) return place(RegularExpression::no_word_edge);
    return single(escaped_code(), flags);
  }

  int64_t escaped_code() {
    if (at_ >= pattern_.size()) fail("a '\\' ends the expression");
    static constexpr std::pair<char, char> named[] = {{'a', '\a'}, {'f', '\f'}, {'t', '\t'},
                                                      {'n', '\n'}, {'r', '\r'}, {'v', '\v'}};
    const char c = pattern_[at_];
    for (const auto& [letter, code] : named)
      if (c == letter) return ++at_, code;
    if (take("x{")) return number(16, 8, "}");
    if (take("x")) return number(16, 2, "");
    if (c == '0') return number(8, 3, "");
    if (c >= '1' && c <= '9') fail("expressions do not refer back to their groups");
    const bool is_mark = static_cast<unsigned char>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c));
    if (!is_mark) fail(fmt::format("'\\{}' is not one of the escapes that Lathe knows", c));
    return ++at_, c;
  }

  // Digits up to `end`, or at most so many where there is none.
  int64_t number(int base, int most, std::string_view end) {
    int64_t value = 0;
    int count = 0;
    for (; count < most && at_ < pattern_.size(); ++count, ++at_) {
      const char c = pattern_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : 99;
      if (digit >= base) break;
      value = value * base + digit;
    }
    if (count == 0 || (base == 16 && end.empty() && count < most) || !take(end) || value > last_code)
      fail("this is no code of a character");
    return value;
  }

  Ranges bracket(const Flags& flags) {
    const bool is_negated = take("^");
    Ranges ranges;
    for (bool is_first = true; is_first || !take("]"); is_first = false) {
      if (at_ >= pattern_.size()) fail("a ']' is missing");
      if (take("[:")) {
        const bool is_other = take("^");
        const size_t end = pattern_.find(":]", at_);
        const auto row = end == std::string_view::npos ? named_classes().end()
                                                       : named_classes().find(pattern_.substr(at_, end - at_));
        if (row == named_classes().end()) fail("there is no class of characters of that name");
        at_ = end + 2;
        const Ranges named = is_other ? complement(row->second) : row->second;
        ranges.insert(ranges.end(), named.begin(), named.end());
        continue;
      }
      if (is_next("\\") && at_ + 1 < pattern_.size()) {
        ++at_;
        if (const auto of = letter_class()) {
          ranges.insert(ranges.end(), of->begin(), of->end());
          continue;
        }
        --at_;
      }
      const int64_t first = bracket_code();
      int64_t last = first;
      if (is_next("-") && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
        ++at_;
        last = bracket_code();
      }
      if (last < first) fail("a range of characters ends before it begins");
      if (flags.ignores_case && last > 0x7F) fail("letters beyond ASCII are not compared without their case");
      ranges.emplace_back(first, last);
    }
    ranges = with_cases(std::move(ranges), flags);
    return is_negated ? complement(ranges) : ranges;
  }
  int64_t bracket_code() {
    if (take("\\")) return escaped_code();
    if (at_ >= pattern_.size()) fail("a ']' is missing");
    return take_code();
  }

  void repeats(Part& part) {
    for (bool was_repeated = false; at_ < pattern_.size(); was_repeated = true) {
      int64_t least = 0, most = -1;
      const size_t begin = at_;
      if (take("+"))
        least = 1;
      else if (take("?"))
        most = 1;
      else if (!take("*") && !(take("{") && bounds(&least, &most))) {
        at_ = begin;  // a '{' that begins no bounds is a character
        return;
      }
      if (was_repeated) fail("what is repeated is repeated again");
      take("?");  // a whole match does not care which way is tried first
      Part repeated{.kind = Part::repeat, .least = least, .most = most};
      repeated.parts.push_back(std::move(part));
      part = std::move(repeated);
    }
  }
  bool bounds(int64_t* least, int64_t* most) {
    if (!decimal(least)) return false;
    *most = *least;
    if (take(",") && !decimal(most)) *most = -1;
    if (!take("}")) return false;
    if (*least > most_repeats || *most > most_repeats || (*most >= 0 && *most < *least))
      fail(fmt::format("a part is repeated at most {} times, and the bounds are in order", most_repeats));
    return true;
  }
  bool decimal(int64_t* value) {
    const size_t begin = at_;
    *value = 0;
    for (; at_ < pattern_.size() && pattern_[at_] >= '0' && pattern_[at_] <= '9'; ++at_)
      *value = std::min<int64_t>(*value * 10 + (pattern_[at_] - '0'), most_repeats + 1);
    return at_ > begin;
  }

  std::string_view pattern_;
  size_t at_ = 0;
};

class Writer {
 public:
  RegularExpression run(const Part& part) {
    write(part);
    emit({RegularExpression::accept});
    return std::move(made_);
  }

 private:
  [[noreturn]] static void refuse() {
    throw DiagnosticError(
        Diagnostic{.code = relax::codes::wrong_attribute,
                   .message = fmt::format("the regular expression takes more than {} steps", most_instructions)});
  }
  size_t next() const { return made_.instructions.size(); }
  size_t emit(Instruction instruction) {
    if (next() >= most_instructions) refuse();
    made_.instructions.push_back(instruction);
    return next() - 1;
  }
  Instruction& at(size_t i) { return made_.instructions[i]; }
  int64_t here() const { return static_cast<int64_t>(next()); }

  void write(const Part& part) {
    if (++written_ > 4 * most_instructions) refuse();  // repeated are parts that may take no steps
    switch (part.kind) {
      case Part::nothing:
        return;
      case Part::set: {
        const auto [known, is_new] = sets_.try_emplace(part.ranges, static_cast<int64_t>(made_.ranges.size()));
        if (is_new) made_.ranges.insert(made_.ranges.end(), part.ranges.begin(), part.ranges.end());
        emit({RegularExpression::one_of, known->second, static_cast<int64_t>(part.ranges.size())});
        return;
      }
      case Part::place:
        emit({RegularExpression::where, part.least});
        return;
      case Part::sequence:
        for (const Part& each : part.parts) write(each);
        return;
      case Part::choice:
        return choice(part.parts);
      case Part::repeat:
        return repeat(part);
    }
  }

  void choice(const std::vector<Part>& parts) {
    std::vector<size_t> ends;
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool is_last = i + 1 == parts.size();
      const size_t fork = is_last ? 0 : emit({RegularExpression::either, here() + 1});
      write(parts[i]);
      if (is_last) break;
      ends.push_back(emit({RegularExpression::jump}));
      at(fork).b = here();
    }
    for (const size_t end : ends) at(end).a = here();
  }

  void repeat(const Part& part) {
    const Part& inner = part.parts[0];
    for (int64_t i = 0; i < part.least; ++i) write(inner);
    if (part.most < 0) {
      const size_t fork = emit({RegularExpression::either, here() + 1});
      write(inner);
      emit({RegularExpression::jump, static_cast<int64_t>(fork)});
      at(fork).b = here();
      return;
    }
    std::vector<size_t> forks;
    for (int64_t i = part.least; i < part.most; ++i) {
      forks.push_back(emit({RegularExpression::either, here() + 1}));
      write(inner);
    }
    for (const size_t fork : forks) at(fork).b = here();
  }

  RegularExpression made_;
  size_t written_ = 0;
  std::map<Ranges, int64_t> sets_;
};

}  // namespace

support::Result<RegularExpression> compile_expression(std::string_view pattern) {
  return support::catch_diagnostics(
      [&]() -> support::Result<RegularExpression> { return Writer().run(Parser(pattern).run()); });
}

}  // namespace lathe::ops
