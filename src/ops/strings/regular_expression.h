// Regular expressions in RE2's syntax, as far as whole strings are matched without asking what the groups hold,
// compiled into steps for the kernel strings.match (src/runtime/kernels/strings/match.cpp, which says what they mean).
//
// There are: characters and escapes, ., [classes] with ranges, names ([:alpha:]) and \d \w \s, groups, | * + ? {n,m}
// and their lazy forms, ^ $ \A \z \b \B, \Q...\E, and the flags i, m, s, U. Not there, and refused: classes of
// Unicode's (\p),
// \C, and what RE2 has not either (looking around, back references).
#pragma once

#include "support/result.h"

namespace lathe::ops {

struct RegularExpression {
  enum Step : int64_t { accept, one_of, either, jump, where };
  enum Place : int64_t { text_begins, text_ends, line_begins, line_ends, word_edge, no_word_edge };
  struct Instruction {
    int64_t step = accept;
    int64_t a = 0, b = 0;
  };
  std::vector<Instruction> instructions;
  std::vector<std::pair<int64_t, int64_t>> ranges;  // of code points, those of one class in order
};

// Diagnostics: relax-wrong-attribute, with the place in the pattern.
support::Result<RegularExpression> compile_expression(std::string_view pattern);

}  // namespace lathe::ops
