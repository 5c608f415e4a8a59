// Rewrite rules as rows. A row is LATHE_RULE(domain, "pattern", "replacement", "condition") in one of the .def files
// here, in the notation of Python with `//` and `%` rounding down, and tdiv(a, b), tmod(a, b), min, max, select,
// ramp(base, stride, lanes) and broadcast(value, lanes) as functions.
//
//   names       x y z w u v any number; p q r any bool; c1 c2 … constants (also broadcast); l1 … the lanes of a vector
//   condition   must hold: computed where it is of constants alone, else shown by bounds and simplification. A rule
//               never applies where a divisor in its condition or replacement would be zero, or its constants overflow
//   domain      where the row is valid, and what it is proved for (rules_proof_test.cpp):
//                 index    mathematical integers: int64, and narrower integers where bounds show that no operation
//                          of pattern and replacement wraps
//                 integer  these, and integers of every width that wrap
//                 number   these, and IEEE floats
//                 logic    bools alone
//
// A division by zero in the pattern has no value, so there the replacement is free; it never adds one.
#pragma once

#include "arith/terms.h"

namespace lathe::arith::rules {

enum class Domain : uint8_t { index, integer, number, logic };

// What a pattern node is, where it is no kind of expression.
inline constexpr int number_wildcard = -1, bool_wildcard = -2, constant_slot = -3, literal = -4;

struct PatternNode {
  int kind = literal;  // kind<Add> and so on, or one of the above
  uint8_t slot = 0;    // wildcards and constants
  uint8_t operands = 0;
  uint8_t operand[3] = {0, 0, 0};  // earlier nodes; the lanes of ramp and broadcast are their last operand
  int64_t value = 0;               // literals
  bool is_bool = false;
  bool constant = false;  // of constants and literals alone
};

// A pattern, replacement or condition: nodes in post-order, the root last. Empty: always true.
struct Pattern {
  std::vector<PatternNode> nodes;
  const PatternNode& root() const { return nodes.back(); }
};

inline constexpr size_t max_slots = 12;

struct Rule {
  Domain domain;
  std::string_view family, pattern_text, replacement_text, condition_text;
  Pattern pattern, replacement;
  std::vector<Pattern> conditions;  // all must hold
  std::vector<std::string> names;   // of the slots
  std::string text() const;         // "x - x -> 0"
};

// Parses one row; throws InternalError where it is malformed.
Rule parse_rule(std::string_view family, Domain domain, std::string_view pattern, std::string_view replacement,
                std::string_view condition);

// Every row as written, family by family.
const std::vector<Rule>& all_rules();
// `rule` with the operands of commutative operations in every order that differs.
std::vector<Rule> orders_of(const Rule& rule);

}  // namespace lathe::arith::rules

namespace lathe::arith {

struct Knowledge;

// What the first rule that applies at the root of `e`, whose operands are simplified, makes of it; null for none.
Expr apply_rules(Knowledge& known, const Expr& e);

}  // namespace lathe::arith
