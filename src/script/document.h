// Pieces of script text: expressions that know how tightly they bind, so that parentheses appear exactly where the
// grammar needs them; and lines with indentation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"

namespace lathe::script {

// Python's levels of precedence, loosest first.
enum class Precedence : uint8_t {
  lambda_,
  conditional,
  or_,
  and_,
  not_,
  comparison,  // never chained: an operand that is a comparison takes parentheses
  sum,
  product,
  unary,
  postfix,
  atom,
};

// An expression's text and how tightly its outermost operator binds.
struct Document {
  std::string text;
  Precedence precedence = Precedence::atom;

  // The text as an operand that must bind at least as tightly as `least`.
  std::string within(Precedence least) const { return precedence < least ? "(" + text + ")" : text; }
};

Document infix(const Document& a, std::string_view symbol, const Document& b, Precedence precedence);
// "callee(a, b)", "object[a, b]" (no index: "object[()]"), "(a, b)" or "(a,)", "[a, b]".
Document call(std::string_view callee, std::span<const std::string> arguments);
Document subscript(std::string_view object, std::span<const std::string> indices);
Document tuple(std::span<const std::string> items);
Document list(std::span<const std::string> items);

// A Python string literal in double quotes; bytes that are no printable ASCII or UTF-8 are escaped.
Document string_literal(std::string_view text);
Document integer(int64_t value);
// A Python float that reads back to the same double, in the shortest form in which `dtype` reads back to it; infinities
// and NaN as a string literal ("inf", "-inf", "nan", "nan(0x…)" with the bits of another NaN).
Document floating(double value, ir::DType dtype);

std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

// Lines of a script. `top` marks a place where lines may be put later.
class Lines {
 public:
  explicit Lines(int indent_spaces) : spaces_(indent_spaces) {}
  void line(std::string_view text);
  void blank() { lines_.emplace_back(); }
  void indent() { ++level_; }
  void dedent() { --level_; }
  int level() const { return level_; }
  size_t count() const { return lines_.size(); }
  // Puts a line, at the present indentation, before line `position`.
  void insert(size_t position, int level, std::string_view text);
  std::string str() const;

 private:
  int spaces_;
  int level_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace lathe::script
