#include "driver/reduce/shrink_script.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace lathe::driver {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

size_t indent_of(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }
bool is_blank(const std::string& line) { return indent_of(line) == line.size(); }

// One past the last line of the statement that begins at `begin`: what is indented deeper belongs to it, and lines in
// which its brackets are still open.
size_t end_of_statement(const Lines& lines, size_t begin) {
  const size_t indent = indent_of(lines[begin]);
  size_t end = begin + 1;
  while (end < lines.size() && (is_blank(lines[end]) || indent_of(lines[end]) > indent ||
                                (indent_of(lines[end]) == indent && lines[end].find_first_of(")]}") == indent)))
    ++end;
  return end;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The words of a line in order, as [begin, end) positions.
std::vector<std::pair<size_t, size_t>> words_of(const std::string& line) {
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t at = 0; at < line.size();) {
    if (!is_word(line[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < line.size() && is_word(line[at])) ++at;
    words.emplace_back(begin, at);
  }
  return words;
}

// Whole words replaced; words after a point are names of something else.
std::string replaced(const std::string& line, const std::set<std::string>& words, const std::string& by) {
  std::string made;
  size_t copied = 0;
  for (const auto& [begin, end] : words_of(line)) {
    if (!words.count(line.substr(begin, end - begin)) || (begin > 0 && line[begin - 1] == '.')) continue;
    made += line.substr(copied, begin - copied) + by;
    copied = end;
  }
  return made + line.substr(copied);
}

// "for i, j in …:" declares i and j.
std::set<std::string> loop_variables(const std::string& line) {
  std::set<std::string> names;
  const size_t first = indent_of(line), in = line.find(" in ");
  if (line.compare(first, 4, "for ") != 0 || in == std::string::npos) return names;
  const std::string head = line.substr(first + 4, in - first - 4);
  for (const auto& [begin, end] : words_of(head)) names.insert(head.substr(begin, end - begin));
  return names;
}

std::set<long long, std::greater<>> numbers_of(const Lines& lines) {
  std::set<long long, std::greater<>> numbers;
  for (const std::string& line : lines)
    for (const auto& [begin, end] : words_of(line)) {
      const std::string word = line.substr(begin, end - begin);
      if (word.size() < 16 && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; }))
        if (const long long number = std::stoll(word); number > 1) numbers.insert(number);
    }
  return numbers;
}

class ScriptShrinking {
 public:
  ScriptShrinking(Lines lines, const std::function<bool(const std::string&)>& holds, const ShrinkScriptOptions& options)
      : best_(std::move(lines)), holds_(holds), options_(options) {}

  std::string run() {
    for (bool shrunk = true; shrunk;) {
      shrunk = statements();
      shrunk |= numbers();
    }
    return text_of(best_);
  }

 private:
  bool attempt(const std::string& what, Lines lines) {
    if (attempts_ >= options_.most_attempts || lines == best_) return false;
    const std::string text = text_of(lines);
    if (!tried_.insert(text).second) return false;
    ++attempts_;
    if (!holds_(text)) return false;
    best_ = std::move(lines);
    if (options_.on_progress) options_.on_progress(what, static_cast<int>(best_.size()));
    return true;
  }

  // From the first line on, so that what holds most goes first; a line whose statement was dropped is another now.
  bool statements() {
    bool shrunk = false;
    for (size_t at = 0; at < best_.size();) {
      const bool edited = !is_blank(best_[at]) && (drop(at) || hoist(at));
      shrunk |= edited;
      if (!edited) ++at;
    }
    return shrunk;
  }

  bool drop(size_t at) {
    const auto begin = static_cast<std::ptrdiff_t>(at), end = static_cast<std::ptrdiff_t>(end_of_statement(best_, at));
    Lines without = best_;
    without.erase(without.begin() + begin, without.begin() + end);
    if (attempt("a statement dropped", without)) return true;
    Lines empty = best_;
    empty.erase(empty.begin() + begin + 1, empty.begin() + end);
    empty[at] = best_[at].substr(0, indent_of(best_[at])) + "T.evaluate(0)";
    return attempt("a statement emptied", empty);
  }

  // The header goes, and what is under it moves to its place.
  bool hoist(size_t at) {
    const size_t end = end_of_statement(best_, at), indent = indent_of(best_[at]);
    if (best_[at].empty() || best_[at].back() != ':' || at + 1 >= end) return false;
    const size_t inner = indent_of(best_[at + 1]);
    const std::set<std::string> variables = loop_variables(best_[at]);
    Lines lines(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(at));
    for (size_t i = at + 1; i < end; ++i) {
      const size_t cut = std::min(indent_of(best_[i]), inner) - std::min(indent_of(best_[i]), indent);
      lines.push_back(replaced(best_[i].substr(cut), variables, "0"));
    }
    lines.insert(lines.end(), best_.begin() + static_cast<std::ptrdiff_t>(end), best_.end());
    return attempt("a loop or branch gave way to what is in it", std::move(lines));
  }

  bool numbers() {
    bool shrunk = false;
    for (const long long number : numbers_of(best_))
      for (const long long smaller : {1LL, 2LL, number / 2, number - 1}) {
        if (smaller < 1 || smaller >= number) continue;
        Lines lines = best_;
        for (std::string& line : lines) line = replaced(line, {std::to_string(number)}, std::to_string(smaller));
        if (attempt("a smaller number", std::move(lines))) {
          shrunk = true;
          break;
        }
      }
    return shrunk;
  }

  Lines best_;
  const std::function<bool(const std::string&)>& holds_;
  const ShrinkScriptOptions& options_;
  std::set<std::string> tried_;
  int attempts_ = 0;
};

}  // namespace

std::string shrink_script(std::string text, const std::function<bool(const std::string&)>& holds,
                          const ShrinkScriptOptions& options) {
  return ScriptShrinking(lines_of(text), holds, options).run();
}

}  // namespace lathe::driver
