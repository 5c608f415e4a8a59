// Reading a printed trace: lines of "outputs = sch.method(arguments)" in Python's spelling.
#include <charconv>

#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "schedule/instruction.h"

namespace lathe::schedule {

namespace {

class Reader {
 public:
  Reader(std::string_view line, size_t number) : line_(line), number_(number) {}

  Result<Instruction> instruction() {
    Instruction result;
    std::string name = word();
    while (name != "sch") {
      Argument output;
      if (!handle(name, output)) return problem("expected a handle or 'sch'");
      result.outputs.push_back(std::move(output));
      take(',');
      if (take('=')) {
        name = word();
        if (name != "sch") return problem("expected 'sch'");
        break;
      }
      name = word();
    }
    if (!take('.')) return problem("expected '.'");
    const std::string method = word();
    result.kind = find_instruction_kind(method);
    if (!result.kind) return problem(fmt::format("there is no instruction named '{}'", method));
    if (!take('(')) return problem("expected '('");
    while (!take(')')) {
      skip();
      const size_t start = at_;
      std::string key = word();
      if (!key.empty() && take('=')) {
        result.attributes.emplace_back(std::move(key), TRY(argument()));
      } else {
        at_ = start;
        result.inputs.push_back(TRY(argument()));
      }
      if (!take(',') && !peek(')')) return problem("expected ',' or ')'");
    }
    skip();
    if (at_ != line_.size()) return problem("expected the end of the line");
    return result;
  }

 private:
  Diagnostic problem(std::string_view what) const {
    return refuse(codes::trace, fmt::format("trace, line {}, column {}: {}", number_, at_ + 1, what));
  }
  void skip() {
    while (at_ < line_.size() && std::isspace(static_cast<unsigned char>(line_[at_]))) ++at_;
  }
  bool peek(char c) {
    skip();
    return at_ < line_.size() && line_[at_] == c;
  }
  bool take(char c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  std::string word() {
    skip();
    const size_t start = at_;
    while (at_ < line_.size() && (std::isalnum(static_cast<unsigned char>(line_[at_])) || line_[at_] == '_')) ++at_;
    return std::string(line_.substr(start, at_ - start));
  }
  static bool handle(const std::string& name, Argument& out) {
    if (name.size() < 2 || name.size() > 9 ||
        !std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c); }))
      return false;
    const auto index = static_cast<uint32_t>(std::stoul(name.substr(1)));
    if (name[0] == 'l')
      out = LoopRV{index};
    else if (name[0] == 'b')
      out = BlockRV{index};
    else if (name[0] == 'v')
      out = ExprRV{index};
    else
      return false;
    return true;
  }

  Result<Argument> argument(int depth = 0) {
    skip();
    if (depth > 8) return problem("lists are nested too deep");
    if (take('[')) {
      Argument::List list;
      while (!take(']')) {
        list.push_back(TRY(argument(depth + 1)));
        if (!take(',') && !peek(']')) return problem("expected ',' or ']'");
      }
      return Argument(std::move(list));
    }
    if (take('"')) {
      std::string text;
      while (at_ < line_.size() && line_[at_] != '"') {
        if (line_[at_] == '\\' && at_ + 1 < line_.size()) {
          ++at_;
          text += line_[at_] == 'n' ? '\n' : line_[at_];
        } else {
          text += line_[at_];
        }
        ++at_;
      }
      if (!take('"')) return problem("a string has no end");
      return Argument(std::move(text));
    }
    if (at_ < line_.size() && (line_[at_] == '-' || std::isdigit(static_cast<unsigned char>(line_[at_])))) {
      const size_t start = at_;
      const std::string_view digits = "+-.0123456789einfa";
      while (at_ < line_.size() && digits.find(line_[at_]) != std::string_view::npos) ++at_;
      const std::string text(line_.substr(start, at_ - start));
      const char *const first = text.data(), *const last = first + text.size();
      const bool is_real = text.find_first_of(".eni") != std::string::npos;
      int64_t whole = 0;
      double real = 0;
      const auto [end, error] = is_real ? std::from_chars(first, last, real) : std::from_chars(first, last, whole);
      if (error == std::errc() && end == last) return is_real ? Argument(real) : Argument(whole);
      return problem(fmt::format("'{}' is no number", text));
    }
    const size_t start = at_;
    const std::string name = word();
    Argument value;
    if (name == "lambda") return index_map(start);
    if (name == "None") return value;
    if (name == "True" || name == "False") return Argument(name == "True");
    if (handle(name, value)) return value;
    return problem("expected an argument");
  }

  // From "lambda" to the parenthesis that closes its results.
  Result<Argument> index_map(size_t start) {
    int open = 0;
    for (bool inside = false; at_ < line_.size() && !(inside && open == 0); ++at_) {
      if (line_[at_] == '(') ++open;
      if (line_[at_] == ')') --open;
      inside = inside || open > 0;
      if (open < 0) return problem("expected '('");
    }
    return Argument(TRY(parse_index_map(line_.substr(start, at_ - start))));
  }

  std::string_view line_;
  size_t number_;
  size_t at_ = 0;
};

}  // namespace

Result<Trace> parse_trace(const std::string& text) {
  Trace trace;
  size_t start = 0, number = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = std::string_view(text).substr(start, end - start);
    start = end + 1;
    ++number;
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    trace.append(TRY(Reader(line, number).instruction()));
  }
  return trace;
}

}  // namespace lathe::schedule
