// Python's tokens: names, numbers, strings with their prefixes, operators, and the line structure (line joining,
// indentation).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "script/codes.h"

namespace lathe::script {

using Source = std::shared_ptr<const support::SourceText>;

enum class TokenKind : uint8_t { name, number, string, bytes, formatted, symbol, newline, indent, dedent, end };

// A symbol or a name of at most eight characters as one number, so that comparing with one is cheap, the first
// character lowest; 0: longer.
constexpr uint64_t packed_word(std::string_view text) {
  if (text.size() > 8) return 0;
  uint64_t word = 0;
  for (size_t i = 0; i < text.size(); ++i) word |= uint64_t{static_cast<uint8_t>(text[i])} << (8 * i);
  return word;
}

// A keyword or symbol of the grammar.
struct Word {
  uint64_t packed;
  std::string_view text;
  consteval Word(const char* word) : packed(packed_word(word)), text(word) {}  // NOLINT: written as a literal
};

struct Token {
  TokenKind kind = TokenKind::end;
  bool is_keyword = false;
  uint32_t begin = 0, end = 0;
  uint64_t word = 0;  // of symbols and names: packed; of what is decoded: its place, above a byte that begins no word
};

// The tokens of bytes [begin, end) of the source. Strings are decoded, and numbers freed of underscores, into
// `decoded`: such a token's word is 256 times the place there, counted from 1. With `expression`, the text is one
// expression: line breaks and indentation mean nothing; with `indented`, lines stand as deep as the first one. A
// DiagnosticError says what is no token.
std::vector<Token> tokenize(const Source& source, std::deque<std::string>& decoded, uint32_t begin, uint32_t end,
                            bool expression = false, bool indented = false);

[[noreturn]] void fail(support::Code code, const Source& source, uint32_t begin, uint32_t end, std::string message,
                       std::string help = "");

}  // namespace lathe::script
