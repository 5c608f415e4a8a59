#include "support/diagnostic.h"

#include <algorithm>

namespace lathe::support {

LineColumn line_column(const SourceText& source, uint32_t offset) {
  LineColumn at;
  const uint32_t stop = std::min<uint32_t>(offset, static_cast<uint32_t>(source.text.size()));
  for (uint32_t i = 0; i < stop; ++i) {
    if (source.text[i] == '\n') {
      ++at.line;
      at.column = 1;
    } else {
      ++at.column;
    }
  }
  return at;
}

std::string render(const Place& place) {
  if (const auto* range = std::get_if<TextRange>(&place)) {
    if (!range->source) return "";
    const LineColumn at = line_column(*range->source, range->begin);
    return range->source->name + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  }
  if (const auto* node = std::get_if<ModelNode>(&place)) {
    std::string text = node->file;
    if (!node->node.empty()) text += (text.empty() ? "node '" : ", node '") + node->node + "'";
    if (!node->operator_type.empty()) text += " (" + node->operator_type + ")";
    return text;
  }
  return "";
}

namespace {

// The source line of a range with carets under it.
std::string excerpt(const TextRange& range) {
  if (!range.source) return "";
  const std::string& text = range.source->text;
  const uint32_t begin = std::min<uint32_t>(range.begin, static_cast<uint32_t>(text.size()));
  size_t start = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
  start = start == std::string::npos ? 0 : start + 1;
  const size_t stop = std::min(text.find('\n', begin), text.size());
  const size_t carets = std::max<size_t>(1, std::min<size_t>(range.end, stop) - std::min<size_t>(begin, stop));
  std::string margin = text.substr(start, begin - start);
  for (char& c : margin)
    if (c != '\t') c = ' ';
  return "  " + text.substr(start, stop - start) + "\n  " + margin + std::string(carets, '^') + "\n";
}

void render_line(std::string& out, const Place& place, std::string_view label, std::string_view message) {
  const std::string where = render(place);
  if (!where.empty()) out += where + ": ";
  out += std::string(label) + std::string(message) + "\n";
  if (const auto* range = std::get_if<TextRange>(&place)) out += excerpt(*range);
}

}  // namespace

std::string render(const Diagnostic& diagnostic) {
  std::string out;
  render_line(out, diagnostic.place, "", diagnostic.message);
  for (const Note& note : diagnostic.notes) {
    out += "  ";
    render_line(out, note.place, "note: ", note.message);
  }
  if (!diagnostic.help.empty()) out += "  help: " + diagnostic.help + "\n";
  return out;
}

std::string render(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) out += render(diagnostic);
  return out;
}

DiagnosticError::DiagnosticError(Diagnostic diagnostic)
    : std::runtime_error(render(diagnostic)), diagnostics{std::move(diagnostic)} {}
DiagnosticError::DiagnosticError(Diagnostics all) : std::runtime_error(render(all)), diagnostics(std::move(all)) {}

}  // namespace lathe::support
