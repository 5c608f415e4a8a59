// Python's tokens: names, numbers, strings with their prefixes, operators, and the line structure (line joining,
// indentation).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "script/codes.h"

namespace lathe::script {

using Source = std::shared_ptr<const support::SourceText>;

enum class TokenKind : uint8_t { name, number, string, bytes, formatted, symbol, newline, indent, dedent, end };

struct Token {
  TokenKind kind = TokenKind::end;
  uint32_t begin = 0, end = 0;
  std::string text;  // names, numbers and symbols as written; strings decoded
};

// The tokens of bytes [begin, end) of the source. With `expression`, the text is one expression: line breaks and
// indentation mean nothing; with `indented`, lines stand as deep as the first one. A DiagnosticError says what is no
// token.
std::vector<Token> tokenize(const Source& source, uint32_t begin, uint32_t end, bool expression = false,
                            bool indented = false);

[[noreturn]] void fail(support::Code code, const Source& source, uint32_t begin, uint32_t end, std::string message,
                       std::string help = "");

}  // namespace lathe::script
