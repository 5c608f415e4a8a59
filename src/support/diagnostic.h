// Diagnostics: what a user is told when their input cannot be accepted. A diagnostic is a value; stages collect them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lathe::support {

// A diagnostic's stable name, such as "onnx-unknown-operator". Every room declares its codes as constants in its own
// `codes.h`; every code is expected by some test.
struct Code {
  std::string_view name;
  friend bool operator==(const Code& a, const Code& b) { return a.name == b.name; }
};

// A text that diagnostics can point into: a script file or a string handed to the parser.
struct SourceText {
  std::string name;  // path, or "<string>"
  std::string text;
};

// The half-open byte range [begin, end) of a source text.
struct TextRange {
  std::shared_ptr<const SourceText> source;
  uint32_t begin = 0;
  uint32_t end = 0;
};

// A node of a model file: which file, which node (by name, or "#12" by position), which operator.
struct ModelNode {
  std::string file;
  std::string node;
  std::string operator_type;
};

using Place = std::variant<std::monostate, TextRange, ModelNode>;

// One-based line and column (in bytes) of an offset.
struct LineColumn {
  uint32_t line = 1;
  uint32_t column = 1;
};
LineColumn line_column(const SourceText& source, uint32_t offset);

// A second place that explains the first: "left operand is the output of 'MatMul_3'".
struct Note {
  Place place;
  std::string message;
};

struct Diagnostic {
  Code code;
  Place place;
  std::string message;  // lower case, one sentence, no full stop, in the user's terms, with shapes and numbers
  std::vector<Note> notes;
  std::string help;  // a known fix, or empty

  Diagnostic& note(std::string text, Place where = {}) {
    notes.push_back({std::move(where), std::move(text)});
    return *this;
  }
};

using Diagnostics = std::vector<Diagnostic>;

// The text a user sees: place, message, source line with caret, notes, help.
std::string render(const Diagnostic& diagnostic);
std::string render(const Diagnostics& diagnostics);
// "bert.onnx, node 'Add_12'" or "file.py:3:7"; empty for no place.
std::string render(const Place& place);

// Carries a user's error out of builders whose signature has no room for a Result. Caught at the edges (parser,
// importer, bindings, driver) and turned back into diagnostics.
class DiagnosticError : public std::runtime_error {
 public:
  explicit DiagnosticError(Diagnostic diagnostic);
  explicit DiagnosticError(Diagnostics diagnostics);
  Diagnostics diagnostics;
};

// A broken invariant of the compiler itself. Caught at the edge, which leaves a reproducer.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Checks an invariant of the compiler (never a property of a user's input).
inline void require(bool condition, std::string_view message) {
  if (!condition) [[unlikely]]
    throw InternalError(std::string(message));
}
[[noreturn]] inline void unreachable(std::string_view message) { throw InternalError(std::string(message)); }

}  // namespace lathe::support
