// What is read and what is refused; that it matches as it should is tests/python/test_strings.py's.
#include "ops/strings/regular_expression.h"

#include <gtest/gtest.h>

namespace lathe::ops {
namespace regular_expression_test {

std::string refusal(std::string_view pattern) {
  const auto made = compile_expression(pattern);
  return made.ok() ? "" : made.diagnostics()[0].message;
}

std::string steps_of(std::string_view pattern) {
  static constexpr const char* names[] = {"accept", "one_of", "either", "jump", "where"};
  const RegularExpression made = compile_expression(pattern).value_or_throw();
  std::string text;
  for (const auto& [step, a, b] : made.instructions) {
    text += names[step];
    if (step == RegularExpression::one_of)
      for (int64_t i = a; i < a + b; ++i) {
        const auto [first, last] = made.ranges[static_cast<size_t>(i)];
        text += fmt::format(" {:x}-{:x}", first, last);
      }
    if (step == RegularExpression::either) text += fmt::format(" {} {}", a, b);
    if (step == RegularExpression::jump || step == RegularExpression::where) text += fmt::format(" {}", a);
    text += "; ";
  }
  return text;
}

TEST(regular_expression, becomes_steps) {
  EXPECT_EQ(steps_of(""), "accept; ");
  EXPECT_EQ(steps_of("a|b"), "either 1 3; one_of 61-61; jump 4; one_of 62-62; accept; ");
  EXPECT_EQ(steps_of("a*"), "either 1 3; one_of 61-61; jump 0; accept; ");
  EXPECT_EQ(steps_of("a{1,2}"), "one_of 61-61; either 2 3; one_of 61-61; accept; ");
  EXPECT_EQ(steps_of("^\\b$"), "where 0; where 4; where 1; accept; ");
  EXPECT_EQ(steps_of("(?m)^$"), "where 2; where 3; accept; ");
  EXPECT_EQ(steps_of("[^b-d]"), "one_of 0-61 65-10ffff; accept; ");
  EXPECT_EQ(steps_of("[a-cb-d\\d]"), "one_of 30-39 61-64; accept; ");
  EXPECT_EQ(steps_of("(?i)b(?-i:b)"), "one_of 42-42 62-62; one_of 62-62; accept; ");
}

TEST(regular_expression, says_where_it_is_wrong) {
  EXPECT_EQ(refusal("ab("), "the regular expression is wrong at byte 3: a ')' is missing");
  EXPECT_EQ(refusal("a)"), "the regular expression is wrong at byte 1: a ')' without its '('");
  for (const auto& [pattern, why] : std::vector<std::pair<std::string, std::string>>{{"*a", "nothing to repeat"},
                                                                                     {"a+*", "repeated again"},
                                                                                     {"a{2}{3}", "repeated again"},
                                                                                     {"a{3,2}", "in order"},
                                                                                     {"a{1001}", "at most 1000"},
                                                                                     {"[a", "']' is missing"},
                                                                                     {"[z-a]", "ends before"},
                                                                                     {"[[:nope:]]", "of that name"},
                                                                                     {"\\", "ends the expression"},
                                                                                     {"\\y", "not one of the escapes"},
                                                                                     {"\\1", "refer back"},
                                                                                     {"\\x{110000}", "no code"},
                                                                                     {"\\xg", "no code"},
                                                                                     {"(?=a)", "look around"},
                                                                                     {"(?<!a)", "look around"},
                                                                                     {"(?P<>a)", "name of a group"},
                                                                                     {"(?z)", "no flag"},
                                                                                     {"\xff", "no UTF-8"},
                                                                                     {"(?i)\xc3\xa4", "beyond ASCII"},
                                                                                     {"((a{999}){999}){9}", "steps"},
                                                                                     {"(((){999}){999}){9}", "steps"},
                                                                                     {std::string(999, '('), "deep"}})
    EXPECT_NE(refusal(pattern).find(why), std::string::npos) << pattern << ": " << refusal(pattern);
}

}  // namespace regular_expression_test
}  // namespace lathe::ops
