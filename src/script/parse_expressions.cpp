#include "script/parse_syntax.h"

namespace lathe::script::syntax {

Parser::Nest::Nest(Parser& p) : parser(p) {
  if (++parser.nesting_ > max_nesting)
    fail(codes::too_deep, parser.tree_.source, parser.now().begin, parser.now().end,
         "the text is nested more than " + std::to_string(max_nesting) + " levels deep");
}

std::string Parser::describe(const Token& token) const {
  switch (token.kind) {
    case TokenKind::newline:
      return "the end of the line";
    case TokenKind::indent:
      return "an indentation";
    case TokenKind::dedent:
      return "the end of the indented lines";
    case TokenKind::end:
      return "the end of the text";
    case TokenKind::string:
    case TokenKind::bytes:
    case TokenKind::formatted:
      return "a string";
    default:
      return "'" + std::string(text(token)) + "'";
  }
}

void Parser::refuse(uint32_t begin, uint32_t end, std::string message, std::string help) {
  fail(codes::not_in_scripts, tree_.source, begin, end, std::move(message), std::move(help));
}

void Parser::unexpected(std::string_view wanted) {
  fail(codes::syntax, tree_.source, now().begin, std::max(now().end, now().begin + 1),
       "expected " + std::string(wanted) + ", found " + describe(now()));
}

const Token& Parser::expect(Word word, std::string_view where) {
  if (!is(word)) unexpected("'" + std::string(word.text) + "' " + std::string(where));
  return advance();
}

std::string Parser::expect_name(std::string_view what) {
  if (!is_plain(now())) unexpected(what);
  return std::string(text(advance()));
}

Expr& Parser::make(ExprKind kind, uint32_t begin, std::span<const Expr* const> items, std::string_view text) {
  Expr& e = tree_.exprs.add();
  e.kind = kind;
  e.begin = begin;
  e.end = last_end();
  e.items = tree_.items.keep(items);
  e.text = text;
  return e;
}

// Sets what follows from the items.
const Expr& Parser::finish(Expr& e) {
  for (size_t i = 0; i < e.items.size(); ++i) {
    if (!e.items[i]) continue;
    const bool chain = i == 0 && e.kind == ExprKind::binary && e.items[i]->kind == ExprKind::binary;
    e.depth = std::max(e.depth, e.items[i]->depth + !chain);
  }
  if (e.depth > max_nesting)
    fail(codes::too_deep, tree_.source, e.begin, e.end,
         "the text is nested more than " + std::to_string(max_nesting) + " levels deep");
  return e;
}

// A comprehension ends with the bracket that closes it.
const Expr* Parser::closed(const Expr* e) {
  const_cast<Expr*>(e)->end = last_end();
  return e;
}

const Expr& Parser::whole_expression() {
  const Expr* e = expression_list();
  if (now().kind != TokenKind::end) unexpected("the end of the expression");
  return *e;
}

// A name or number that nothing follows in its expression, as most are; null: it has to be looked at closer.
const Expr* Parser::lone_atom() {
  const Token &t = now(), &next = ahead();
  if (t.kind != TokenKind::name && t.kind != TokenKind::number) return nullptr;
  const bool ends = next.kind == TokenKind::newline || next.kind == TokenKind::end ||
                    (next.kind == TokenKind::symbol && next.word < 0x80 &&
                     std::string_view(",)]:=").find(static_cast<char>(next.word)) != std::string_view::npos);
  if (!ends || t.is_keyword) return nullptr;
  return atom();
}

const Expr* Parser::expression() {
  if (const Expr* lone = lone_atom()) return lone;
  const Nest nest(*this);
  if (is("lambda")) return lambda();
  const uint32_t begin = now().begin;
  const Expr* value = operators(0);
  if (!accept("if")) return value;
  const Expr* condition = operators(0);
  expect("else", "in a conditional expression");
  const Expr* other = expression();
  return &finish(make(ExprKind::conditional, begin, {condition, value, other}));
}

const Expr* Parser::named_expression() {
  const uint32_t begin = now().begin;
  if (is(ahead(), ":=") && is_plain(now())) {
    const std::string_view target = text(advance());
    advance();
    const Expr* value = expression();
    return &finish(make(ExprKind::named, begin, {value}, target));
  }
  return expression();
}

const Expr* Parser::starred_or_named() {
  const uint32_t begin = now().begin;
  if (!accept("*")) return named_expression();
  const Expr* value = operators(3);
  return &finish(make(ExprKind::starred, begin, {value}));
}

const Expr* Parser::expression_list(bool slices) {
  const uint32_t begin = now().begin;
  const auto one = [&] { return slices ? slice_or_expression() : starred_or_named(); };
  const Expr* first = one();
  if (!is(",")) return first;
  Items items(items_);
  items.push_back(first);
  while (accept(",")) {
    if (is(")") || is("]") || is("}") || is("=") || is(":") || now().kind == TokenKind::newline ||
        now().kind == TokenKind::end)
      break;
    items.push_back(one());
  }
  return &finish(make(ExprKind::tuple, begin, items.list()));
}

namespace {

// Levels of binary operators, loosest first; the two logical ones, not and comparison come before them.
constexpr int level_or = 0, level_and = 1, level_not = 2, level_comparison = 3, level_first = 4, level_last = 9;

int level_of(const Token& t) {
  if (t.kind != TokenKind::symbol) return -1;
  switch (t.word) {
    case packed_word("|"):
      return 4;
    case packed_word("^"):
      return 5;
    case packed_word("&"):
      return 6;
    case packed_word("<<"):
    case packed_word(">>"):
      return 7;
    case packed_word("+"):
    case packed_word("-"):
      return 8;
    case packed_word("*"):
    case packed_word("%"):
    case packed_word("@"):
    case packed_word("/"):
    case packed_word("//"):
      return level_last;
    default:
      return -1;
  }
}

}  // namespace

const Expr* Parser::operators(int level) {
  const uint32_t begin = now().begin;
  if (level <= level_and) {
    const Expr* first = operators(level + 1);
    const auto joined = [&] { return level == level_or ? is("or") : is("and"); };
    if (!joined()) return first;
    Items items(items_);
    items.push_back(first);
    for (; joined(); items.push_back(operators(level + 1))) advance();
    return &finish(make(ExprKind::logical, begin, items.list(), level == level_or ? "or" : "and"));
  }
  if (level == level_not) {
    if (!accept("not")) return operators(level_comparison);
    const Nest nest(*this);
    const Expr* operand = operators(level_not);
    return &finish(make(ExprKind::unary, begin, {operand}, "not"));
  }
  if (level == level_comparison) return comparison(operators(level_first), begin);
  // Precedence climbing: one loop for all arithmetic levels.
  const Expr* left = unary();
  while (true) {
    const int at = level_of(now());
    if (at < level) return left;
    const std::string_view symbol = text(advance());
    const Expr* right = at == level_last ? unary() : operators(at + 1);
    left = &finish(make(ExprKind::binary, begin, {left, right}, symbol));
  }
}

const Expr* Parser::comparison(const Expr* first, uint32_t from) {
  const auto may_compare = [&] {
    const Token& t = now();
    const auto first_letter = static_cast<char>(t.word & 0xff);
    if (t.kind == TokenKind::symbol)
      return first_letter == '<' || first_letter == '>' || first_letter == '=' || first_letter == '!';
    return t.is_keyword && (first_letter == 'i' || first_letter == 'n');
  };
  if (!may_compare()) return first;
  Items items(items_);
  Labels symbols(labels_);
  items.push_back(first);
  while (true) {
    std::string_view symbol;
    for (const Word known :
         {Word("<"), Word(">"), Word("=="), Word(">="), Word("<="), Word("!="), Word("in"), Word("is")})
      if (is(known)) symbol = known.text;
    if (is("not") && is(ahead(), "in")) {
      advance();
      symbol = "not in";
    }
    if (symbol.empty()) break;
    advance();
    if (symbol == "is" && accept("not")) symbol = "is not";
    symbols.push_back(symbol);
    items.push_back(operators(level_first));
  }
  if (symbols.size() == 0) return first;
  Expr& e = make(ExprKind::compare, from, items.list());
  e.labels = tree_.labels.keep(symbols.list());
  return &finish(e);
}

const Expr* Parser::unary() {
  const uint32_t begin = now().begin;
  if (!is("-") && !is("+") && !is("~")) return power();
  const Nest nest(*this);
  const std::string_view symbol = text(advance());
  const Expr* operand = unary();
  return &finish(make(ExprKind::unary, begin, {operand}, symbol));
}

const Expr* Parser::power() {
  const uint32_t begin = now().begin;
  const Expr* base = postfix();
  if (!accept("**")) return base;
  const Nest nest(*this);
  const Expr* exponent = unary();
  return &finish(make(ExprKind::binary, begin, {base, exponent}, "**"));
}

const Expr* Parser::postfix() {
  if (is("await")) refuse(now().begin, now().end, "scripts have no 'await'");
  const uint32_t begin = now().begin;  // of the bracket, where there is one
  const Expr* e = atom();
  while (true) {
    if (accept(".")) {
      if (!is_plain(now())) unexpected("a name after '.'");
      const std::string_view name = text(advance());
      e = &finish(make(ExprKind::attribute, begin, {e}, name));
    } else if (is("(")) {
      e = call(e, begin);
    } else if (is("[")) {
      e = subscript(e, begin);
    } else {
      return e;
    }
  }
}

const Expr* Parser::call(const Expr* callee, uint32_t from) {
  advance();
  Items items(items_);
  Labels labels(labels_);
  items.push_back(callee);
  while (!is(")")) {
    std::string_view label;
    const uint32_t begin = now().begin;
    if (accept("**")) {
      label = "**";
      items.push_back(expression());
    } else if (now().kind == TokenKind::name && is(ahead(), "=")) {
      if (!is_plain(now())) unexpected("an argument's name");
      label = text(advance());
      advance();
      items.push_back(expression());
    } else {
      const Expr* argument = starred_or_named();
      if (is("for")) argument = comprehension(begin, "generator", {argument});
      items.push_back(argument);
    }
    labels.push_back(label);
    if (!accept(",")) break;
  }
  expect(")", "after the arguments");
  Expr& e = make(ExprKind::call, from, items.list());
  e.labels = tree_.labels.keep(labels.list());
  return &finish(e);
}

const Expr* Parser::slice_or_expression() {
  const uint32_t begin = now().begin;
  const auto absent = [&] { return is(":") || is(",") || is("]"); };
  const Expr* start = is(":") ? nullptr : starred_or_named();
  if (!accept(":")) return start;
  const Expr* stop = absent() ? nullptr : expression();
  const Expr* step = nullptr;
  if (accept(":") && !absent()) step = expression();
  return &finish(make(ExprKind::slice, begin, {start, stop, step}));
}

const Expr* Parser::subscript(const Expr* object, uint32_t from) {
  advance();
  if (is("]")) unexpected("an index");
  const Expr* index = expression_list(true);
  expect("]", "after the index");
  return &finish(make(ExprKind::subscript, from, {object, index}));
}

const Expr* Parser::lambda() {
  const uint32_t begin = advance().begin;
  Items items(items_);
  Labels parameters(labels_);
  items.push_back(nullptr);
  while (!is(":")) {
    std::string star(is("*") || is("**") ? text(advance()) : "");
    parameters.push_back(tree_.texts.emplace_back(star + expect_name("a parameter")));
    items.push_back(accept("=") ? expression() : nullptr);
    if (!accept(",")) break;
  }
  expect(":", "before a lambda's body");
  const Expr* body = expression();
  items[0] = body;
  Expr& e = make(ExprKind::lambda, begin, items.list());
  e.labels = tree_.labels.keep(parameters.list());
  return &finish(e);
}

const Expr* Parser::atom() {
  const Token& t = now();
  switch (t.kind) {
    case TokenKind::number: {
      advance();
      const std::string_view s = text(t);
      const bool hexadecimal =
          s.size() > 1 && s[0] == '0' && !(s[1] >= '0' && s[1] <= '9') && s[1] != '.' && (s[1] | 32) != 'e';
      const bool floating = !hexadecimal && s.find_first_of(".eE") != std::string_view::npos;
      return &make(floating ? ExprKind::floating : ExprKind::integer, t.begin, {}, s);
    }
    case TokenKind::string:
    case TokenKind::bytes:
    case TokenKind::formatted:
      return strings();
    case TokenKind::name:
      if (is(t, "True") || is(t, "False") || is(t, "None")) {
        advance();
        return &make(ExprKind::constant, t.begin, {}, text(t));
      }
      if (is(t, "yield")) refuse(t.begin, t.end, "scripts have no 'yield'");
      if (t.is_keyword) unexpected("an expression");
      advance();
      return &make(ExprKind::name, t.begin, {}, text(t));
    default:
      break;
  }
  if (is("(")) return parenthesized();
  if (is("[")) return list_display();
  if (is("{")) return brace_display();
  if (is("...")) {
    advance();
    return &make(ExprKind::constant, t.begin, {}, "...");
  }
  unexpected("an expression");
}

// Adjacent literals are one.
const Expr* Parser::strings() {
  const Token& first = now();
  TokenKind kind = first.kind;
  std::string_view whole;
  size_t count = 0;
  for (; now().kind == TokenKind::string || now().kind == TokenKind::bytes || now().kind == TokenKind::formatted;
       ++count) {
    if ((now().kind == TokenKind::bytes) != (kind == TokenKind::bytes))
      fail(codes::syntax, tree_.source, now().begin, now().end, "bytes and text do not join");
    if (now().kind == TokenKind::formatted) kind = TokenKind::formatted;
    const std::string_view part = text(advance());
    whole = count == 0 ? part : tree_.texts.emplace_back(std::string(whole).append(part));
  }
  const ExprKind result = kind == TokenKind::bytes       ? ExprKind::bytes
                          : kind == TokenKind::formatted ? ExprKind::formatted
                                                         : ExprKind::string;
  return &make(result, first.begin, {}, whole);
}

const Expr* Parser::parenthesized() {
  const uint32_t begin = advance().begin;
  if (accept(")")) return &make(ExprKind::tuple, begin);
  const Expr* first = starred_or_named();
  if (is("for")) {
    const Expr* e = comprehension(begin, "generator", {first});
    expect(")", "after the generator");
    return closed(e);
  }
  if (!is(",")) {
    expect(")", "to close '('");
    if (first->kind == ExprKind::starred)
      fail(codes::syntax, tree_.source, first->begin, first->end,
           "a starred expression stands in a list or tuple only");
    return first;
  }
  Items items(items_);
  items.push_back(first);
  while (accept(","))
    if (!is(")")) items.push_back(starred_or_named());
  expect(")", "to close '('");
  return &finish(make(ExprKind::tuple, begin, items.list()));
}

const Expr* Parser::list_display() {
  const uint32_t begin = advance().begin;
  Items items(items_);
  while (!is("]")) {
    items.push_back(starred_or_named());
    if (items.size() == 1 && is("for")) {
      const Expr* e = comprehension(begin, "list", {items[0]});
      expect("]", "after the comprehension");
      return closed(e);
    }
    if (!accept(",")) break;
  }
  expect("]", "to close '['");
  return &finish(make(ExprKind::list, begin, items.list()));
}

const Expr* Parser::brace_display() {
  const uint32_t begin = advance().begin;
  Items items(items_);
  bool is_set = false;
  while (!is("}")) {
    if (accept("**")) {
      items.push_back(nullptr);
      items.push_back(operators(level_first));
    } else {
      items.push_back(starred_or_named());
      if (items.size() == 1) is_set = !is(":");
      if (!is_set) {
        expect(":", "between a key and its value");
        items.push_back(expression());
      }
      if (is("for") && items.size() == (is_set ? 1 : 2)) {
        const Expr* e =
            is_set ? comprehension(begin, "set", {items[0]}) : comprehension(begin, "dict", {items[0], items[1]});
        expect("}", "after the comprehension");
        return closed(e);
      }
    }
    if (!accept(",")) break;
  }
  expect("}", "to close '{'");
  return &finish(make(is_set ? ExprKind::set : ExprKind::dict, begin, items.list()));
}

const Expr* Parser::comprehension(uint32_t begin, std::string_view form, std::initializer_list<const Expr*> element) {
  Items items(items_);
  Labels labels(labels_);
  for (const Expr* part : element) items.push_back(part);
  labels.push_back("element");
  if (items.size() == 2) labels.push_back("value");
  while (accept("for")) {
    items.push_back(target_list());
    labels.push_back("for");
    expect("in", "in a comprehension");
    items.push_back(operators(0));
    labels.push_back("in");
    while (accept("if")) {
      items.push_back(operators(0));
      labels.push_back("if");
    }
  }
  Expr& e = make(ExprKind::comprehension, begin, items.list(), form);
  e.labels = tree_.labels.keep(labels.list());
  return &finish(e);
}

// The targets of `for`: they end before `in`, so comparisons do not take part.
const Expr* Parser::target_list() {
  const uint32_t begin = now().begin;
  const Expr* first = operators(level_first);
  if (!is(",")) {
    check_target(*first);
    return first;
  }
  Items items(items_);
  items.push_back(first);
  while (accept(","))
    if (!is("in")) items.push_back(operators(level_first));
  const Expr& e = finish(make(ExprKind::tuple, begin, items.list()));
  check_target(e);
  return &e;
}

}  // namespace lathe::script::syntax
