// Rows from text: a precedence parser over Python's operators.
#include "arith/rules/rule.h"

namespace lathe::arith::rules {
namespace {

using namespace ir;

struct Operator {
  std::string_view token;
  int precedence;
  int kind;
  bool comparison = false;
};

// Longer tokens first where one begins with another.
constexpr Operator operators[] = {
    {"or", 1, kind<Or>},       {"and", 2, kind<And>},     {"==", 4, kind<EQ>, true}, {"!=", 4, kind<NE>, true},
    {"<=", 4, kind<LE>, true}, {">=", 4, kind<GE>, true}, {"<", 4, kind<LT>, true},  {">", 4, kind<GT>, true},
    {"+", 5, kind<Add>},       {"-", 5, kind<Sub>},       {"*", 6, kind<Mul>},       {"//", 6, kind<FloorDiv>},
    {"%", 6, kind<FloorMod>},
};

struct Function {
  std::string_view name;
  int operands;
  int kind;
};
constexpr Function functions[] = {
    {"min", 2, kind<Min>},       {"max", 2, kind<Max>},   {"tdiv", 2, kind<Div>},           {"tmod", 2, kind<Mod>},
    {"select", 3, kind<Select>}, {"ramp", 3, kind<Ramp>}, {"broadcast", 2, kind<Broadcast>}};

constexpr int not_precedence = 3;

class Parser {
 public:
  Parser(std::string_view text, std::vector<std::string>& names) : text_(text), names_(names) {}

  Pattern run() {
    expression(0);
    skip_spaces();
    check(at_ == text_.size(), "something follows the expression");
    return std::move(pattern_);
  }

 private:
  void check(bool condition, std::string_view what) {
    support::require(condition, "rule '" + std::string(text_) + "': " + std::string(what));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  static bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  uint8_t push(PatternNode node) {
    check(pattern_.nodes.size() < 60, "too long");
    pattern_.nodes.push_back(node);
    return static_cast<uint8_t>(pattern_.nodes.size() - 1);
  }

  uint8_t operation(int kind_number, std::initializer_list<uint8_t> operands) {
    PatternNode node{.kind = kind_number};
    node.constant = true;
    for (const uint8_t o : operands) {
      node.operand[node.operands++] = o;
      node.constant = node.constant && pattern_.nodes[o].constant;
    }
    const bool logical = kind_number >= kind<EQ> && kind_number <= kind<Not>;
    const PatternNode& last = pattern_.nodes[node.operand[kind_number == kind<Broadcast> ? 0 : node.operands - 1]];
    node.is_bool = logical || (kind_number != kind<Ramp> && last.is_bool);
    if (kind_number == kind<Ramp> || kind_number == kind<Broadcast>) node.constant = false;
    return push(node);
  }

  const Operator* next_operator(int lowest) {
    skip_spaces();
    const Operator* found = nullptr;
    for (const Operator& op : operators)
      if (text_.substr(at_).starts_with(op.token) && (!found || op.token.size() > found->token.size())) found = &op;
    return found && found->precedence >= lowest ? found : nullptr;
  }

  uint8_t expression(int lowest) {
    uint8_t left = operand();
    while (const Operator* op = next_operator(lowest)) {
      at_ += op->token.size();
      const uint8_t right = expression(op->precedence + 1);
      left = operation(op->kind, {left, right});
    }
    return left;
  }

  uint8_t operand() {
    skip_spaces();
    check(at_ < text_.size(), "it ends early");
    if (take("(")) {
      const uint8_t inner = expression(0);
      check(take(")"), "a ')' is missing");
      return inner;
    }
    if (is_digit(text_[at_]) || text_[at_] == '-') return number();
    check(is_letter(text_[at_]), "an operand is missing");
    const size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "not") return operation(kind<Not>, {expression(not_precedence)});
    if (name == "true" || name == "false")
      return push({.kind = literal, .value = name == "true", .is_bool = true, .constant = true});
    for (const Function& f : functions)
      if (f.name == name) return function(f);
    return slot(name);
  }

  uint8_t number() {
    const bool negative = take("-");
    int64_t value = 0;
    check(at_ < text_.size() && is_digit(text_[at_]), "a number is missing");
    while (at_ < text_.size() && is_digit(text_[at_])) value = value * 10 + (text_[at_++] - '0');
    return push({.kind = literal, .value = negative ? -value : value, .constant = true});
  }

  uint8_t function(const Function& f) {
    check(take("("), "a '(' is missing");
    uint8_t operands[3] = {};
    for (int i = 0; i < f.operands; ++i) {
      if (i > 0) check(take(","), "a ',' is missing");
      operands[i] = expression(0);
    }
    check(take(")"), "a ')' is missing");
    if (f.operands == 2) return operation(f.kind, {operands[0], operands[1]});
    return operation(f.kind, {operands[0], operands[1], operands[2]});
  }

  uint8_t slot(std::string_view name) {
    const char first = name[0];
    PatternNode node;
    if (first == 'c' || first == 'l') {
      check(name.size() == 2 && is_digit(name[1]), "a constant is named c1, c2, …");
      node = {.kind = constant_slot, .constant = true};
    } else {
      check(name.size() == 1, "a name is one letter");
      const bool boolean = first >= 'p' && first <= 'r';
      node = {.kind = boolean ? bool_wildcard : number_wildcard, .is_bool = boolean};
    }
    const auto it = std::find(names_.begin(), names_.end(), name);
    node.slot = static_cast<uint8_t>(it - names_.begin());
    if (it == names_.end()) names_.emplace_back(name);
    check(names_.size() <= max_slots, "too many names");
    return push(node);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<std::string>& names_;
  Pattern pattern_;
};

// The conjuncts of a condition, each a pattern of its own.
void split_condition(const Pattern& whole, size_t root, std::vector<Pattern>& out) {
  const PatternNode& node = whole.nodes[root];
  if (node.kind == kind<And>) {
    split_condition(whole, node.operand[0], out);
    split_condition(whole, node.operand[1], out);
    return;
  }
  out.push_back({{whole.nodes.begin(), whole.nodes.begin() + static_cast<ptrdiff_t>(root) + 1}});
}

bool commutative(int k) {
  return k == kind<Add> || k == kind<Mul> || k == kind<Min> || k == kind<Max> || k == kind<EQ> || k == kind<NE> ||
         k == kind<And> || k == kind<Or>;
}

}  // namespace

std::string Rule::text() const {
  return std::string(pattern_text) + " -> " + std::string(replacement_text) +
         (condition_text.empty() ? "" : " when " + std::string(condition_text));
}

Rule parse_rule(std::string_view family, Domain domain, std::string_view pattern, std::string_view replacement,
                std::string_view condition) {
  Rule rule{.domain = domain,
            .family = family,
            .pattern_text = pattern,
            .replacement_text = replacement,
            .condition_text = condition,
            .pattern = {},
            .replacement = {},
            .conditions = {},
            .names = {}};
  rule.pattern = Parser(pattern, rule.names).run();
  const size_t bound = rule.names.size();
  rule.replacement = Parser(replacement, rule.names).run();
  if (!condition.empty()) {
    const Pattern whole = Parser(condition, rule.names).run();
    split_condition(whole, whole.nodes.size() - 1, rule.conditions);
  }
  support::require(rule.names.size() == bound, "rule '" + rule.text() + "' uses a name that its pattern does not bind");
  return rule;
}

std::vector<Rule> orders_of(const Rule& rule) {
  std::vector<Rule> orders{rule};
  for (size_t n = 0; n < rule.pattern.nodes.size(); ++n) {
    const PatternNode& node = rule.pattern.nodes[n];
    if (!commutative(node.kind)) continue;
    const PatternNode &a = rule.pattern.nodes[node.operand[0]], &b = rule.pattern.nodes[node.operand[1]];
    // Constants stand on the right once their parent is simplified, so no order has them on the left.
    if (a.constant || b.constant) continue;
    const size_t count = orders.size();
    for (size_t i = 0; i < count; ++i) {
      Rule swapped = orders[i];
      std::swap(swapped.pattern.nodes[n].operand[0], swapped.pattern.nodes[n].operand[1]);
      orders.push_back(std::move(swapped));
    }
  }
  return orders;
}

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> rows;
#define LATHE_RULE(domain, pattern, replacement, condition) \
  rows.push_back(parse_rule(family, Domain::domain, pattern, replacement, condition));
    std::string_view family;
    family = "sums";
#include "arith/rules/sums.def"
    family = "products";
#include "arith/rules/products.def"
    family = "quotients";
#include "arith/rules/quotients.def"
    family = "truncated quotients";
#include "arith/rules/truncated_quotients.def"
    family = "minima and maxima";
#include "arith/rules/minima_maxima.def"
    family = "comparisons";
#include "arith/rules/comparisons.def"
    family = "logic";
#include "arith/rules/logic.def"
    family = "choices";
#include "arith/rules/choices.def"
    family = "vectors";
#include "arith/rules/vectors.def"
#undef LATHE_RULE
    return rows;
  }();
  return rules;
}

}  // namespace lathe::arith::rules
