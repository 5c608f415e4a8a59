#include "script/document.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "support/utf8.h"

namespace lathe::script {

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) text += separator;
    text += parts[i];
  }
  return text;
}

Document infix(const Document& a, std::string_view symbol, const Document& b, Precedence precedence) {
  const auto tighter = static_cast<Precedence>(static_cast<uint8_t>(precedence) + 1);
  const Precedence left = precedence == Precedence::comparison ? tighter : precedence;
  std::string text = a.within(left);
  ((text += ' ') += symbol) += ' ';
  text += b.within(tighter);
  return {std::move(text), precedence};
}

Document call(std::string_view callee, std::span<const std::string> arguments) {
  return {std::string(callee) + "(" + join(arguments) + ")", Precedence::postfix};
}
Document subscript(std::string_view object, std::span<const std::string> indices) {
  return {std::string(object) + "[" + (indices.empty() ? "()" : join(indices)) + "]", Precedence::postfix};
}
Document tuple(std::span<const std::string> items) { return {"(" + join(items) + (items.size() == 1 ? ",)" : ")")}; }
Document list(std::span<const std::string> items) { return {"[" + join(items) + "]"}; }

Document string_literal(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto code = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (code >= 0x20 && code < 0x7f) {
      out += c;
    } else if (const size_t length = code >= 0x80 ? support::utf8_length(text, i) : 0) {
      out += text.substr(i, length);
      i += length - 1;
    } else {
      ((out += "\\x") += digits[code >> 4]) += digits[code & 15];
    }
  }
  return {out + "\""};
}

Document integer(int64_t value) { return {std::to_string(value), value < 0 ? Precedence::unary : Precedence::atom}; }

Document floating(double value, ir::DType dtype) {
  if (std::isnan(value)) {
    const auto bits = std::bit_cast<uint64_t>(value);
    if (bits == 0x7ff8000000000000ULL) return string_literal("nan");
    char hex[20];
    const auto end = std::to_chars(hex, hex + sizeof hex, bits, 16).ptr;
    return string_literal("nan(0x" + std::string(hex, end) + ")");
  }
  if (std::isinf(value)) return string_literal(value < 0 ? "-inf" : "inf");
  char buffer[40];
  std::string text;
  if (dtype.bits < 64 && static_cast<double>(static_cast<float>(value)) == value) {
    text.assign(buffer, std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value)).ptr);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    if (static_cast<double>(static_cast<float>(back)) != value) text.clear();  // rounding twice would miss it
  }
  if (text.empty()) text.assign(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return {text, std::signbit(value) ? Precedence::unary : Precedence::atom};
}

void Lines::line(std::string_view text) {
  lines_.push_back(std::string(static_cast<size_t>(level_ * spaces_), ' ') + std::string(text));
}
void Lines::insert(size_t position, int level, std::string_view text) {
  lines_.insert(lines_.begin() + static_cast<ptrdiff_t>(position),
                std::string(static_cast<size_t>(level * spaces_), ' ') + std::string(text));
}
std::string Lines::str() const {
  size_t size = 0;
  for (const std::string& l : lines_) size += l.size() + 1;
  std::string text;
  text.reserve(size);
  for (const std::string& l : lines_) (text += l) += '\n';
  return text;
}

}  // namespace lathe::script
