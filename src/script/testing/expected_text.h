// Text tests of passes: the program given and the program that becomes of it, in one file beside the test.
//
//   # case: writes_out_a_short_loop
//   <a program>
//   # becomes:
//   <the program expected, or "# refused: <code>: <message>">
//
// With LATHE_UPDATE_EXPECTED=1 (`./dev update-expected`) what becomes of each program is written into the file instead
// of compared, for review with git diff; a new case is its first two lines.
#pragma once

#include "ir/pass.h"
#include "script/dialect.h"

namespace lathe::script::testing {

struct TextCase {
  std::string name, given, expected;

  friend bool operator==(const TextCase&, const TextCase&) = default;
};

// The cases of a file, and the file of these cases: reading what was written gives the same.
support::Result<std::vector<TextCase>> read_cases(std::string_view text);
std::string write_cases(const std::vector<TextCase>& cases);

// What becomes of the programs that a text holds: `pass` applied to them and printed, without the lines that every
// script begins with; a refusal is the line "# refused: …".
support::Result<std::string> text_after(const ir::Pass& pass, const ir::PassContext& context, std::string_view given,
                                        Dialects dialects);

// Runs the pass on every case of the text file beside the test `test` (its __FILE__): x_test.txt beside x_test.cpp.
// Says what is not as expected; empty when everything is, or was rewritten.
std::string check_cases(const ir::Pass& pass, const ir::PassContext& context, const char* test, Dialects dialects);

}  // namespace lathe::script::testing
