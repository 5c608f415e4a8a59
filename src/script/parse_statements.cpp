#include "script/parse_syntax.h"

namespace lathe::script::syntax {

Tree parse(const Source& source, bool indented) {
  constexpr size_t largest = size_t{1} << 30;
  if (source->text.size() > largest)
    fail(codes::too_deep, source, 0, 0,
         "the text has " + std::to_string(source->text.size()) + " bytes, more than 1 GiB");
  Tree tree;
  tree.source = source;
  Parser(tree, tokenize(source, tree.texts, 0, static_cast<uint32_t>(source->text.size()), false, indented)).file();
  return tree;
}

const Expr& parse_expression(Tree& tree, uint32_t begin, uint32_t end) {
  return Parser(tree, tokenize(tree.source, tree.texts, begin, end, true)).whole_expression();
}

Stmt& Parser::make_stmt(StmtKind kind, uint32_t begin) {
  Stmt& s = tree_.stmts.add();
  s.kind = kind;
  s.begin = begin;
  s.head_end = last_end();
  return s;
}

const Stmt* Parser::close(Stmt& s) {
  s.end = last_end();
  if (s.body.empty()) s.head_end = s.end;
  return &s;
}

void Parser::file() {
  while (now().kind != TokenKind::end) {
    if (now().kind == TokenKind::newline) {
      advance();
      continue;
    }
    if (now().kind == TokenKind::indent)
      fail(codes::syntax, tree_.source, now().begin, now().end + 1,
           "this line is indented, but nothing above opens a suite");
    statement(tree_.body);
  }
}

std::vector<const Stmt*> Parser::suite() {
  const Nest nest(*this);
  expect(":", "before a suite");
  std::vector<const Stmt*> body;
  if (now().kind != TokenKind::newline) {
    simple_line(body);
    return body;
  }
  advance();
  if (now().kind != TokenKind::indent) unexpected("an indented suite");
  advance();
  while (now().kind != TokenKind::dedent && now().kind != TokenKind::end) {
    if (now().kind == TokenKind::indent)
      fail(codes::syntax, tree_.source, now().begin, now().end + 1,
           "this line is indented, but nothing above opens a suite");
    statement(body);
  }
  if (now().kind == TokenKind::dedent) advance();
  return body;
}

void Parser::statement(std::vector<const Stmt*>& into) {
  const Token& t = now();
  if (t.is_keyword) {
    if (is("if")) return into.push_back(if_statement());
    if (is("for")) return into.push_back(for_statement());
    if (is("while")) return into.push_back(while_statement());
    if (is("with")) return into.push_back(with_statement());
    if (is("def")) return into.push_back(function({}, t.begin));
    if (is("class")) return into.push_back(class_statement({}, t.begin));
    for (const std::string_view other : {"try", "async", "raise", "del", "global", "nonlocal"})
      if (text(t) == other) refuse(t.begin, t.end, "scripts have no '" + std::string(other) + "' statement");
  }
  if (is("@")) return into.push_back(decorated());
  simple_line(into);
}

void Parser::simple_line(std::vector<const Stmt*>& into) {
  do {
    if (now().kind == TokenKind::newline) break;
    into.push_back(simple());
  } while (accept(";"));
  if (now().kind != TokenKind::newline) unexpected("the end of the line");
  advance();
}

const Stmt* Parser::simple() {
  const uint32_t begin = now().begin;
  if (is("import") || is("from")) return import_line();
  if (accept("pass")) return close(make_stmt(StmtKind::pass, begin));
  if (accept("break")) return close(make_stmt(StmtKind::break_, begin));
  if (accept("continue")) return close(make_stmt(StmtKind::continue_, begin));
  if (accept("return")) {
    const Expr* value = now().kind == TokenKind::newline || is(";") ? nullptr : expression_list();
    Stmt& s = make_stmt(StmtKind::return_, begin);
    s.value = value;
    return close(s);
  }
  if (accept("assert")) {
    const Expr* condition = expression();
    const Expr* message = accept(",") ? expression() : nullptr;
    Stmt& s = make_stmt(StmtKind::assert_, begin);
    s.value = condition;
    s.message = message;
    return close(s);
  }
  return assignment();
}

void Parser::check_target(const Expr& e) {
  switch (e.kind) {
    case ExprKind::name:
    case ExprKind::attribute:
    case ExprKind::subscript:
      return;
    case ExprKind::starred:
      return check_target(*e.items[0]);
    case ExprKind::tuple:
    case ExprKind::list:
      for (const Expr* item : e.items) check_target(*item);
      return;
    default:
      fail(codes::syntax, tree_.source, e.begin, e.end, "this cannot be assigned to");
  }
}

const Stmt* Parser::assignment() {
  const uint32_t begin = now().begin;
  const Expr* first = expression_list();
  if (accept(":")) {
    check_target(*first);
    const Expr* annotation = expression();
    const Expr* value = accept("=") ? expression_list() : nullptr;
    Stmt& s = make_stmt(StmtKind::annotated, begin);
    s.target = first;
    s.annotation = annotation;
    s.value = value;
    return close(s);
  }
  // Of the symbols that end in "=", comparisons have been taken.
  if (now().kind == TokenKind::symbol && now().end - now().begin > 1 && source_[now().end - 1] == '=' && !is(":=")) {
    const std::string_view symbol = text(advance());
    check_target(*first);
    const Expr* value = expression_list();
    Stmt& s = make_stmt(StmtKind::augmented, begin);
    s.target = first;
    s.name = symbol.substr(0, symbol.size() - 1);
    s.value = value;
    return close(s);
  }
  std::vector<const Expr*> parts{first};
  while (accept("=")) parts.push_back(expression_list());
  Stmt& s = make_stmt(parts.size() > 1 ? StmtKind::assign : StmtKind::expression, begin);
  s.value = parts.back();
  parts.pop_back();
  for (const Expr* target : parts) check_target(*target);
  s.targets = std::move(parts);
  return close(s);
}

const Stmt* Parser::import_line() {
  const uint32_t begin = now().begin;
  const auto dotted = [&] {
    std::string path;
    while (accept(".")) path += '.';
    if (now().kind == TokenKind::name && !is("import")) path += expect_name("a module");
    while (accept(".")) path += "." + expect_name("a module");
    return path;
  };
  std::vector<Import> imports;
  if (accept("import")) {
    do {
      const std::string path = dotted();
      const std::string top = path.substr(0, path.find('.'));
      if (accept("as"))
        imports.push_back({path, expect_name("a name")});
      else
        imports.push_back({top, top});
    } while (accept(","));
  } else {
    expect("from", "in an import");
    const std::string module = dotted();
    expect("import", "after the module");
    const bool parentheses = accept("(");
    do {
      if (accept("*")) break;
      if (parentheses && is(")")) break;
      const std::string name = expect_name("a name");
      imports.push_back({module + "." + name, accept("as") ? expect_name("a name") : name});
    } while (accept(","));
    if (parentheses) expect(")", "after the imported names");
  }
  Stmt& s = make_stmt(StmtKind::import_, begin);
  s.imports = std::move(imports);
  return close(s);
}

const Stmt* Parser::if_statement() {
  const uint32_t begin = advance().begin;
  const Nest nest(*this);
  const Expr* condition = named_expression();
  Stmt& s = make_stmt(StmtKind::if_, begin);
  s.value = condition;
  s.body = suite();
  if (is("elif"))
    s.other.push_back(if_statement());
  else if (accept("else"))
    s.other = suite();
  return close(s);
}

const Stmt* Parser::for_statement() {
  const uint32_t begin = advance().begin;
  const Expr* target = target_list();
  expect("in", "in a loop");
  const Expr* iterable = expression_list();
  Stmt& s = make_stmt(StmtKind::for_, begin);
  s.target = target;
  s.value = iterable;
  s.body = suite();
  if (accept("else")) s.other = suite();
  return close(s);
}

const Stmt* Parser::while_statement() {
  const uint32_t begin = advance().begin;
  const Expr* condition = named_expression();
  Stmt& s = make_stmt(StmtKind::while_, begin);
  s.value = condition;
  s.body = suite();
  if (accept("else")) s.other = suite();
  return close(s);
}

const Stmt* Parser::with_statement() {
  const uint32_t begin = advance().begin;
  std::vector<std::pair<const Expr*, const Expr*>> contexts;
  do {
    const Expr* context = expression();
    const Expr* target = nullptr;
    if (accept("as")) {
      target = operators(4);
      check_target(*target);
    }
    contexts.emplace_back(context, target);
  } while (accept(","));
  Stmt& s = make_stmt(StmtKind::with, begin);
  s.contexts = std::move(contexts);
  s.body = suite();
  return close(s);
}

const Stmt* Parser::decorated() {
  const uint32_t begin = now().begin;
  std::vector<const Expr*> decorators;
  while (accept("@")) {
    decorators.push_back(named_expression());
    if (now().kind != TokenKind::newline) unexpected("the end of the line");
    advance();
  }
  if (is("def")) return function(std::move(decorators), begin);
  if (is("class")) return class_statement(std::move(decorators), begin);
  unexpected("'def' or 'class' after a decorator");
}

const Stmt* Parser::function(std::vector<const Expr*> decorators, uint32_t begin) {
  advance();
  std::string name = expect_name("a function's name");
  expect("(", "after the function's name");
  std::vector<Parameter> parameters;
  while (!is(")")) {
    if (is("*") || is("**") || is("/"))
      refuse(now().begin, now().end, "functions of scripts take plain parameters only");
    Parameter parameter{.begin = now().begin};
    parameter.name = expect_name("a parameter");
    parameter.end = last_end();
    if (accept(":")) parameter.annotation = expression();
    if (accept("=")) parameter.default_value = expression();
    parameters.push_back(std::move(parameter));
    if (!accept(",")) break;
  }
  expect(")", "after the parameters");
  const Expr* result = accept("->") ? expression() : nullptr;
  Stmt& s = make_stmt(StmtKind::function, begin);
  s.name = std::move(name);
  s.decorators = std::move(decorators);
  s.parameters = std::move(parameters);
  s.value = result;
  s.body = suite();
  return close(s);
}

const Stmt* Parser::class_statement(std::vector<const Expr*> decorators, uint32_t begin) {
  advance();
  std::string name = expect_name("a class's name");
  if (accept("(")) {
    while (!is(")")) {
      expression();
      if (!accept(",")) break;
    }
    expect(")", "after the class's bases");
  }
  Stmt& s = make_stmt(StmtKind::class_, begin);
  s.name = std::move(name);
  s.decorators = std::move(decorators);
  s.body = suite();
  return close(s);
}

}  // namespace lathe::script::syntax
