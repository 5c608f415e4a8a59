#include <bit>
#include <cstring>

#include "script/names.h"
#include "script/token.h"
#include "support/utf8.h"

namespace lathe::script {

void fail(support::Code code, const Source& source, uint32_t begin, uint32_t end, std::string message,
          std::string help) {
  throw support::DiagnosticError(support::Diagnostic{.code = code,
                                                     .place = support::TextRange{source, begin, end},
                                                     .message = std::move(message),
                                                     .help = std::move(help)});
}

namespace {

// What a character can be part of.
enum CharacterKind : uint8_t { letter_kind = 1, digit_kind = 2, doubled_kind = 4, assigned_kind = 8, symbol_kind = 16 };

constexpr std::array<uint8_t, 256> character_kinds = [] {
  std::array<uint8_t, 256> kinds{};
  for (int c = 0; c < 256; ++c) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80)
      kinds[static_cast<size_t>(c)] = letter_kind;
    if (c >= '0' && c <= '9') kinds[static_cast<size_t>(c)] = digit_kind;
  }
  const auto mark = [&](std::string_view letters, uint8_t kind) {
    for (const char c : letters) kinds[static_cast<uint8_t>(c)] |= kind;
  };
  mark("*/<>", doubled_kind);
  mark("=!<>+-*/%&|^@:", assigned_kind);
  mark("+-*/%@&|^~<>()[]{},:.;=", symbol_kind);
  return kinds;
}();

bool is_kind(char c, uint8_t kind) { return (character_kinds[static_cast<uint8_t>(c)] & kind) != 0; }
bool token_letter(char c) { return is_kind(c, letter_kind); }
bool token_digit(char c) { return is_kind(c, digit_kind); }

// The length of the operator or bracket that three characters begin with, the longest that there is; 0: none.
uint32_t symbol_length(char a, char b, char c) {
  const bool doubled = a == b && is_kind(a, doubled_kind);
  if (doubled && c == '=') return 3;
  if (a == '.' && b == '.' && c == '.') return 3;
  if (doubled || (a == '-' && b == '>') || (b == '=' && is_kind(a, assigned_kind))) return 2;
  return is_kind(a, symbol_kind) ? 1 : 0;
}

class Tokenizer {
 public:
  Tokenizer(const Source& source, std::deque<std::string>& decoded, uint32_t begin, uint32_t end, bool expression,
            bool indented)
      : source_(source),
        decoded_(decoded),
        text_(source->text),
        at_(begin),
        begin_(begin),
        end_(end),
        expression_(expression),
        takes_first_depth_(indented) {}

  std::vector<Token> run() {
    tokens_.reserve((end_ - begin_) / 3 + 8);
    if (begin_ == 0 && text_.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;
    bool line_start = !expression_;
    while (true) {
      if (line_start && brackets_.empty() && !indentation()) break;
      line_start = false;
      skip_blanks();
      if (at_ >= end_) break;
      if (text_[at_] == '\n') {
        if (!expression_ && brackets_.empty()) {
          push(TokenKind::newline, at_, at_ + 1);
          line_start = true;
        }
        ++at_;
        continue;
      }
      token();
    }
    if (!brackets_.empty())
      fail(codes::syntax, source_, brackets_.back(), brackets_.back() + 1,
           std::string("'") + text_[brackets_.back()] + "' is never closed");
    if (!expression_ && !tokens_.empty() && tokens_.back().kind != TokenKind::newline)
      push(TokenKind::newline, end_, end_);
    for (; indents_.size() > 1; indents_.pop_back()) push(TokenKind::dedent, end_, end_);
    push(TokenKind::end, end_, end_);
    return std::move(tokens_);
  }

 private:
  void push(TokenKind kind, uint32_t begin, uint32_t end, uint64_t word = 0) {
    tokens_.push_back({kind, false, begin, end, word});
  }
  // One whose text is not as written.
  void push_decoded(TokenKind kind, uint32_t begin, uint32_t end, std::string text) {
    decoded_.push_back(std::move(text));
    push(kind, begin, end, decoded_.size() << 8);
  }
  void push_name(uint32_t begin, uint32_t end) {
    const uint64_t word = word_at(begin, end - begin);
    tokens_.push_back({TokenKind::name, is_keyword(word), begin, end, word});
  }
  // packed_word of the text's part, from one load where there is as much.
  uint64_t word_at(uint32_t begin, uint32_t size) const {
    if (size > 8) return 0;
    if (begin + 8 > text_.size() || std::endian::native != std::endian::little)
      return packed_word(text_.substr(begin, size));
    uint64_t word = 0;
    std::memcpy(&word, text_.data() + begin, 8);
    return word & (~uint64_t{0} >> (64 - 8 * size));
  }

  char peek(uint32_t ahead = 0) const { return at_ + ahead < end_ ? text_[at_ + ahead] : '\0'; }

  // Blanks, comments and joined lines.
  void skip_blanks() {
    while (at_ < end_) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
        ++at_;
      } else if (c == '#') {
        while (at_ < end_ && text_[at_] != '\n') ++at_;
      } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
        at_ += peek(1) == '\n' ? 2 : 3;
      } else {
        return;
      }
    }
  }

  // Measures the line's indentation; false at the end of the text. Blank lines are skipped.
  bool indentation() {
    while (at_ < end_) {
      const uint32_t start = at_;
      uint32_t column = 0;
      for (; at_ < end_ && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\f'); ++at_)
        column = text_[at_] == '\t' ? (column / 8 + 1) * 8 : text_[at_] == '\f' ? 0 : column + 1;
      skip_blanks();
      if (at_ >= end_) return false;
      if (text_[at_] == '\n') {
        ++at_;
        continue;
      }
      if (std::exchange(takes_first_depth_, false)) indents_ = {column};
      if (column > indents_.back()) {
        indents_.push_back(column);
        push(TokenKind::indent, start, at_);
      }
      for (; column < indents_.back() && indents_.size() > 1; indents_.pop_back()) push(TokenKind::dedent, start, at_);
      if (column != indents_.back())
        fail(codes::syntax, source_, start, at_, "this line's indentation matches no line above it");
      return true;
    }
    return false;
  }

  void token() {
    const uint32_t start = at_;
    const char c = text_[at_];
    if (token_digit(c) || (c == '.' && token_digit(peek(1)))) return number();
    if (c == '"' || c == '\'') return string(start, "");
    if (token_letter(c)) {
      while (at_ < end_ && (token_letter(text_[at_]) || token_digit(text_[at_]))) ++at_;
      const std::string_view name = text_.substr(start, at_ - start);
      if ((peek() == '"' || peek() == '\'') && is_prefix(name)) return string(start, name);
      return push_name(start, at_);
    }
    if (!match_symbol()) {
      const bool printable = c > ' ' && c < 0x7f;
      fail(codes::syntax, source_, at_, at_ + 1,
           printable ? std::string("'") + c + "' is no part of a script"
                     : "a byte of value " + std::to_string(static_cast<uint8_t>(c)) + " is no part of a script");
    }
  }

  bool match_symbol() {
    const uint32_t length = symbol_length(text_[at_], peek(1), peek(2));
    if (length == 0) return false;
    const char c = text_[at_];
    if (c == '(' || c == '[' || c == '{') brackets_.push_back(at_);
    if (c == ')' || c == ']' || c == '}') close(c);
    push(TokenKind::symbol, at_, at_ + length, word_at(at_, length));
    at_ += length;
    return true;
  }

  void close(char c) {
    const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (brackets_.empty()) fail(codes::syntax, source_, at_, at_ + 1, std::string("'") + c + "' closes nothing");
    if (text_[brackets_.back()] != opening)
      throw support::DiagnosticError(support::Diagnostic{
          .code = codes::syntax,
          .place = support::TextRange{source_, at_, at_ + 1},
          .message = std::string("'") + c + "' does not close '" + text_[brackets_.back()] + "'",
          .notes = {{support::TextRange{source_, brackets_.back(), brackets_.back() + 1}, "opened here"}}});
    brackets_.pop_back();
  }

  void number() {
    const uint32_t start = at_;
    const auto digits = [&] {
      while (token_digit(peek()) || peek() == '_') ++at_;
    };
    if (peek() == '0' && (peek(1) | 32) >= 'a' &&
        ((peek(1) | 32) == 'x' || (peek(1) | 32) == 'o' || (peek(1) | 32) == 'b')) {
      at_ += 2;
      while (token_digit(peek()) || (token_letter(peek()) && static_cast<uint8_t>(peek()) < 0x80)) ++at_;
    } else {
      digits();
      if (peek() == '.') {
        ++at_;
        digits();
      }
      if ((peek() | 32) == 'e' &&
          (token_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && token_digit(peek(2))))) {
        at_ += 2;
        digits();
      }
      if ((peek() | 32) == 'j') fail(codes::not_in_scripts, source_, start, at_ + 1, "scripts have no complex numbers");
    }
    if (token_letter(peek())) fail(codes::syntax, source_, start, at_ + 1, "a number runs into a name");
    const std::string_view text = text_.substr(start, at_ - start);
    if (text.find('_') == std::string_view::npos) return push(TokenKind::number, start, at_);
    std::string plain(text);
    std::erase(plain, '_');
    push_decoded(TokenKind::number, start, at_, std::move(plain));
  }

  static bool is_prefix(std::string_view name) {
    if (name.size() > 2) return false;
    std::string lower;
    for (const char c : name) lower += static_cast<char>(c | 32);
    for (const std::string_view known : {"r", "u", "b", "f", "br", "rb", "fr", "rf"})
      if (lower == known) return true;
    return false;
  }

  void string(uint32_t start, std::string_view prefix) {
    bool raw = false, bytes = false, formatted = false;
    for (const char c : prefix) {
      raw = raw || (c | 32) == 'r';
      bytes = bytes || (c | 32) == 'b';
      formatted = formatted || (c | 32) == 'f';
    }
    const char quote = text_[at_];
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    std::string decoded;
    while (true) {
      if (at_ >= end_ || (!triple && text_[at_] == '\n'))
        fail(codes::syntax, source_, start, start + static_cast<uint32_t>(prefix.size()) + 1,
             "this string is never closed");
      const char c = text_[at_];
      if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) break;
      if (c == '\\' && !formatted) {
        escape(decoded, raw);
      } else {
        if (c == '\\' && formatted) decoded += text_[at_++];
        if (at_ < end_) decoded += text_[at_++];
      }
    }
    at_ += triple ? 3 : 1;
    const TokenKind kind = formatted ? TokenKind::formatted : bytes ? TokenKind::bytes : TokenKind::string;
    push_decoded(kind, start, at_, std::move(decoded));
  }

  // One escape sequence at '\\'.
  void escape(std::string& out, bool raw) {
    const uint32_t start = at_++;
    const char c = peek();
    if (raw) {
      out += '\\';
      if (at_ < end_) out += text_[at_++];
      return;
    }
    if (at_ < end_) ++at_;
    switch (c) {
      case '\n':
        return;
      case 'a':
        out += '\a';
        return;
      case 'b':
        out += '\b';
        return;
      case 'f':
        out += '\f';
        return;
      case 'n':
        out += '\n';
        return;
      case 'r':
        out += '\r';
        return;
      case 't':
        out += '\t';
        return;
      case 'v':
        out += '\v';
        return;
      case '\\':
      case '\'':
      case '"':
        out += c;
        return;
      case 'x':
        out += static_cast<char>(hexadecimal(start, 2));
        return;
      case 'u':
        support::append_utf8(out, hexadecimal(start, 4));
        return;
      case 'U':
        support::append_utf8(out, hexadecimal(start, 8));
        return;
      default:
        break;
    }
    if (c >= '0' && c <= '7') {
      int value = c - '0';
      for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i) value = value * 8 + (text_[at_++] - '0');
      out += static_cast<char>(value);
      return;
    }
    out += '\\';
    if (at_ > start + 1) out += c;
  }

  uint32_t hexadecimal(uint32_t start, int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) {
      const char c = peek();
      const int d = token_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
      if (d < 0)
        fail(codes::syntax, source_, start, at_,
             "an escape takes " + std::to_string(count) + " hexadecimal digits here");
      value = value * 16 + static_cast<uint32_t>(d);
      ++at_;
    }
    return value;
  }

  Source source_;
  std::deque<std::string>& decoded_;
  std::string_view text_;
  uint32_t at_, begin_, end_;
  bool expression_, takes_first_depth_;
  std::vector<uint32_t> brackets_;
  std::vector<uint32_t> indents_{0};
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const Source& source, std::deque<std::string>& decoded, uint32_t begin, uint32_t end,
                            bool expression, bool indented) {
  return Tokenizer(source, decoded, begin, end, expression, indented).run();
}

}  // namespace lathe::script
