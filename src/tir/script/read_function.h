// Reads one tensor function from its syntax tree.
#pragma once

#include <set>

#include "script/expr_reader.h"
#include "tir/stmt.h"

namespace lathe::tir {

class FunctionReader : public script::ExprReader {
 public:
  FunctionReader(script::Context& context) : ExprReader(context, scope_) {}
  FunctionReader(script::Context& context, script::Scope& outer) : ExprReader(context, outer) {}
  Function function(const script::syntax::Stmt& def);

 private:
  using Syntax = script::syntax::Expr;
  using Line = script::syntax::Stmt;
  using Lines = std::vector<const Line*>;

  // What a block is made of while its lines are read; the function itself is one, for its root.
  struct OpenBlock {
    std::vector<IterVar> iter_vars;
    std::vector<Expr> values;
    std::optional<std::vector<BufferRegion>> reads, writes;
    std::vector<Buffer> alloc_buffers;
    std::vector<MatchBufferRegion> match_buffers;
    Attributes annotations;
    Expr predicate;
    Stmt init;
    bool is_function = false;
    bool realized = true;
  };
  // A suite while it is read: a definition takes what follows it as its scope.
  struct Frame {
    std::vector<Stmt> before;
    std::function<Stmt(Stmt)> wrap;
  };
  struct Suite {
    std::vector<Frame> frames;
    std::vector<Stmt> statements;
    void define(std::function<Stmt(Stmt)> wrap) { frames.push_back({std::exchange(statements, {}), std::move(wrap)}); }
    Stmt finish();
  };

  // ---- functions and buffers ----
  void decorations(const Line& def);
  void parameter(const script::syntax::Parameter& p);
  Buffer make_buffer(const script::Arguments& arguments, size_t first, const std::string& name);
  Buffer buffer_from_index(const Syntax& index, const std::string& name);
  void define(std::string_view name, Value value, const Syntax& at);

  // ---- statements ----
  Stmt suite(const Lines& lines);
  Stmt scoped_suite(const Lines& lines);
  void line(const Line& s, Suite& into);
  void assign(const Line& s, const Syntax& target, Suite& into);
  bool assign_call(const Syntax& target, const Syntax& call, Suite& into);
  void bind_let(std::string_view name, const Syntax& at, Expr value, Suite& into);
  void annotated(const Line& s, Suite& into);
  void augmented(const Line& s, Suite& into);
  void store(const Syntax& target, const Syntax& value, Suite& into, const Line& s);
  void expression(const Line& s, Suite& into);
  bool expression_call(const Syntax& call, const Line& s, Suite& into);
  Stmt store_call(const Buffer& b, const Syntax& indices, const Syntax& stored, const Syntax* predicate);
  void with(const Line& s, size_t context, Suite& into);
  Stmt for_loop(const Line& s);
  std::vector<Range> grid(const Syntax& call);
  Stmt branch(const Line& s);
  Expr condition(const Syntax& e);
  // Statements that open a scope and bind a name or nothing: the wrap of their body.
  std::function<Stmt(Stmt)> opener(const Syntax& call, const std::string& path, const std::string& name);

  // ---- threads and branches as frames ----
  bool env_thread(const Syntax& target, const Syntax& call);
  std::function<Stmt(Stmt)> launch_thread(const Syntax& call, const std::string& name);
  Stmt branch_frames(const Syntax& call, const Line& s);

  // ---- macros ----
  // Puts a macro's statements where it is called; false where the callee is none.
  bool macro_call(const Syntax& call, Suite& into);
  void expand(const Syntax& call, const Line& def, FunctionReader& reader, Suite& into);

  // ---- blocks ----
  Stmt block(const Syntax& call, const Line& s);
  void axis(const Syntax& target, const Syntax& call, const std::string& kind);
  void remap(const Syntax& target, const Syntax& call);
  void add_axis(const Syntax& target, Range dom, Expr value, IterType type, DType dtype, std::string tag);
  std::vector<BufferRegion> region_list(const script::Arguments& arguments);
  bool block_line(const std::string& path, const Syntax& call);
  OpenBlock& block_for(const Syntax& at, const char* what);

  template <class T>
  Ref<T> placed(Ref<T> node, const Line& s) const {
    return ir::with_origin(std::move(node), origin(s.begin, s.head_end));
  }

  script::Scope scope_;
  std::vector<Var> params_;
  std::vector<std::pair<Var, Buffer>> buffer_map_;
  Attributes attrs_;
  bool complete_ = true;
  std::set<const Line*> declared_;
  std::vector<OpenBlock*> blocks_;
  std::unordered_map<const Node*, Range> domains_;
  std::unordered_map<const Node*, std::string> env_threads_;  // the axes of variables of T.env_thread
  int macro_depth_ = 0;
};

}  // namespace lathe::tir
