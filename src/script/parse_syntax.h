// The recursive-descent parser behind syntax.h, in two files: expressions and statements.
#pragma once

#include "script/syntax.h"

namespace lathe::script::syntax {

class Parser {
 public:
  Parser(Tree& tree, std::vector<Token> tokens) : tree_(tree), source_(tree.source->text), tokens_(std::move(tokens)) {}

  void file();
  const Expr& whole_expression();

 private:
  // ---- tokens ----
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  // Names, numbers and symbols as they are written, strings decoded.
  std::string_view text(const Token& token) const {
    const bool as_written = token.word == 0 || (token.word & 0xff) != 0;
    return as_written ? source_.substr(token.begin, token.end - token.begin) : tree_.texts[(token.word >> 8) - 1];
  }
  bool is(Word word) const { return is(now(), word); }
  static bool is(const Token& token, Word word) { return token.word == word.packed; }
  // A name that is no keyword.
  static bool is_plain(const Token& token) { return token.kind == TokenKind::name && !token.is_keyword; }
  const Token& advance() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool accept(Word word) {
    if (!is(word)) return false;
    advance();
    return true;
  }
  const Token& expect(Word word, std::string_view where);
  std::string expect_name(std::string_view what);
  uint32_t last_end() const { return at_ ? tokens_[at_ - 1].end : 0; }
  [[noreturn]] void unexpected(std::string_view wanted);
  [[noreturn]] void refuse(uint32_t begin, uint32_t end, std::string message, std::string help = "");
  std::string describe(const Token& token) const;

  // ---- expressions ----
  // What is gathered for one node, above what the nodes around it have gathered so far.
  template <class T>
  class Gathered {
   public:
    explicit Gathered(std::vector<T>& all) : all_(all), first_(all.size()) {}
    Gathered(const Gathered&) = delete;
    Gathered& operator=(const Gathered&) = delete;
    ~Gathered() { all_.resize(first_); }
    void push_back(T one) { all_.push_back(one); }
    size_t size() const { return all_.size() - first_; }
    T& operator[](size_t i) { return all_[first_ + i]; }
    std::span<const T> list() const { return {all_.data() + first_, size()}; }

   private:
    std::vector<T>& all_;
    size_t first_;
  };
  using Items = Gathered<const Expr*>;
  using Labels = Gathered<std::string_view>;

  Expr& make(ExprKind kind, uint32_t begin, std::span<const Expr* const> items = {}, std::string_view text = {});
  Expr& make(ExprKind kind, uint32_t begin, std::initializer_list<const Expr*> items, std::string_view text = {}) {
    return make(kind, begin, std::span(items.begin(), items.size()), text);
  }
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
  const Expr* comprehension(uint32_t begin, std::string_view form, std::initializer_list<const Expr*> element);
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
  const std::string_view source_;
  const std::vector<Token> tokens_;
  std::vector<const Expr*> items_;
  std::vector<std::string_view> labels_;
  size_t at_ = 0;
  uint32_t nesting_ = 0;
};

}  // namespace lathe::script::syntax
