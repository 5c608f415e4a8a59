// The recursive-descent parser behind syntax.h, in two files: expressions and statements.
#pragma once

#include "script/syntax.h"

namespace lathe::script::syntax {

class Parser {
 public:
  Parser(Tree& tree, std::vector<Token> tokens) : tree_(tree), tokens_(std::move(tokens)) {}

  void file();
  const Expr& whole_expression();

 private:
  // ---- tokens ----
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead(size_t n = 1) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  bool is(std::string_view text) const { return is(now(), text); }
  static bool is(const Token& token, std::string_view text) {
    return token.text.size() == text.size() && token.text[0] == text[0] &&
           (token.kind == TokenKind::symbol || token.kind == TokenKind::name) && token.text == text;
  }
  const Token& advance() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool accept(std::string_view text);
  const Token& expect(std::string_view text, std::string_view where);
  std::string expect_name(std::string_view what);
  uint32_t last_end() const { return at_ ? tokens_[at_ - 1].end : 0; }
  [[noreturn]] void unexpected(std::string_view wanted);
  [[noreturn]] void refuse(uint32_t begin, uint32_t end, std::string message, std::string help = "");
  static std::string describe(const Token& token);

  // ---- expressions ----
  Expr& make(ExprKind kind, uint32_t begin, std::vector<const Expr*> items = {}, std::string text = {});
  const Expr& finish(Expr& e);
  const Expr* closed(const Expr* e);
  const Expr* expression();                          // a conditional, lambda or operators
  const Expr* named_expression();                    // the same, or target := value
  const Expr* expression_list(bool slices = false);  // one, or a tuple without parentheses
  const Expr* starred_or_named();
  const Expr* operators(int level);
  const Expr* comparison(const Expr* first, uint32_t from);
  const Expr* unary();
  const Expr* power();
  const Expr* postfix();
  const Expr* atom();
  const Expr* lone_atom();
  const Expr* lambda();
  // Those that begin with a part begin at `from`: the part's bracket is theirs.
  const Expr* call(const Expr* callee, uint32_t from);
  const Expr* subscript(const Expr* object, uint32_t from);
  const Expr* slice_or_expression();
  const Expr* parenthesized();
  const Expr* list_display();
  const Expr* brace_display();
  const Expr* strings();
  const Expr* comprehension(uint32_t begin, std::string form, std::vector<const Expr*> element);
  const Expr* target_list();

  // ---- statements ----
  std::vector<const Stmt*> suite();
  void statement(std::vector<const Stmt*>& into);
  void simple_line(std::vector<const Stmt*>& into);
  const Stmt* simple();
  const Stmt* assignment();
  const Stmt* import_line();
  const Stmt* if_statement();
  const Stmt* for_statement();
  const Stmt* while_statement();
  const Stmt* with_statement();
  const Stmt* decorated();
  const Stmt* function(std::vector<const Expr*> decorators, uint32_t begin);
  const Stmt* class_statement(std::vector<const Expr*> decorators, uint32_t begin);
  Stmt& make_stmt(StmtKind kind, uint32_t begin);
  const Stmt* close(Stmt& s);
  void check_target(const Expr& e);

  // Counts the recursion while in scope.
  struct Nest {
    explicit Nest(Parser& parser);
    ~Nest() { --parser.nesting_; }
    Parser& parser;
  };

  Tree& tree_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t nesting_ = 0;
};

}  // namespace lathe::script::syntax
