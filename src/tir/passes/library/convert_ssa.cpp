#include "support/mutation.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(convert_ssa_body, "tir_test", "a definition gets a new variable, and its uses keep the old one");

namespace {

class SingleDefinitions : public TirRewriter {
 public:
  explicit SingleDefinitions(const PrimFunc& function) {
    for (const Var& param : function.params) seen_.insert(param.get());
    for (const auto& [handle, buffer] : function.buffer_map) {
      seen_.insert(buffer->data.get());
      alive_.insert(buffer->data.get());
    }
    for (const Var& symbol : shape_scalars(Function(&function))) seen_.insert(symbol.get());
  }

 protected:
  Stmt visit_stmt(Stmt s) override {
    if (const auto* loop = s.as<For>())
      return children(renamed(*loop, loop->loop_var, [](For& copy, const Var& fresh, const VarMap& map) {
        copy.loop_var = fresh;
        copy.body = substitute(copy.body, map);
      }));
    if (const auto* let = s.as<LetStmt>())
      return children(renamed(*let, let->var, [](LetStmt& copy, const Var& fresh, const VarMap& map) {
        copy.var = fresh;
        copy.body = substitute(copy.body, map);
      }));
    if (const auto* allocate = s.as<Allocate>())
      return in_scope(renamed(*allocate, allocate->buffer_var, [](Allocate& copy, const Var& fresh, const VarMap& map) {
        copy.buffer_var = fresh;
        copy.body = substitute(copy.body, map);
      }));
    if (const auto* constant = s.as<AllocateConst>())
      return in_scope(
          renamed(*constant, constant->buffer_var, [](AllocateConst& copy, const Var& fresh, const VarMap& map) {
            copy.buffer_var = fresh;
            copy.body = substitute(copy.body, map);
          }));
    if (const auto* declare = s.as<DeclBuffer>()) {
      // Over memory that is there, it is a view; else it is memory of its own.
      if (!declare->buffer->data || alive_.count(declare->buffer->data.get())) return children(std::move(s));
      const VarMap map = again({declare->buffer->data});
      return in_scope(detail::narrow<DeclBuffer>(substitute(NodeRef(s), map)));
    }
    if (const auto* block = s.as<Block>()) {
      const VarMap map = again(defined_by(*block));
      const Ref<Block> single = detail::narrow<Block>(substitute(NodeRef(s), map));
      const std::unordered_set<const VarNode*> outside = alive_;
      for (const Buffer& buffer : single->alloc_buffers) alive_.insert(buffer->data.get());
      for (const MatchBufferRegion& match : single->match_buffers) alive_.insert(match->buffer->data.get());
      Stmt result = children(Stmt(single));
      alive_ = outside;
      return result;
    }
    return children(std::move(s));
  }

  Expr visit_expr(Expr e) override {
    const auto* let = e.as<Let>();
    if (!let) return children(std::move(e));
    return children(Expr(renamed(*let, let->var, [](Let& copy, const Var& fresh, const VarMap& map) {
      copy.var = fresh;
      copy.body = substitute(copy.body, map);
    })));
  }

 private:
  // New variables for those of `defined` that something before defines too.
  VarMap again(const std::vector<Var>& defined) {
    VarMap map;
    for (const Var& v : defined) {
      if (seen_.insert(v.get()).second) continue;
      const Var fresh = make<VarNode>(v->name, v->dtype, v->is_size);
      seen_.insert(fresh.get());
      fresh_.push_back(fresh);
      map.emplace(v, fresh);
    }
    return map;
  }

  template <class T, class Change>
  Ref<T> renamed(const T& node, const Var& defined, Change change) {
    const VarMap map = again({defined});
    if (map.empty()) return Ref<T>(&node);
    const Var fresh = ir::cast<VarNode>(map.begin()->second);
    return with(node, [&](T& copy) { change(copy, fresh, support::flip(convert_ssa_body) ? VarMap{} : map); });
  }

  static std::vector<Var> defined_by(const Block& block) {
    std::vector<Var> defined;
    for (const IterVar& iter : block.iter_vars) defined.push_back(iter->var);
    for (const Buffer& buffer : block.alloc_buffers) defined.push_back(buffer->data);
    for (const MatchBufferRegion& match : block.match_buffers) {
      defined.push_back(match->buffer->data);
      for (const Expr& stride : match->buffer->strides)
        if (const auto* symbol = stride.as<VarNode>()) defined.emplace_back(symbol);
      if (match->buffer->elem_offset)
        if (const auto* symbol = match->buffer->elem_offset.as<VarNode>()) defined.emplace_back(symbol);
    }
    return defined;
  }

  static const Var& memory_of(const Allocate& s) { return s.buffer_var; }
  static const Var& memory_of(const AllocateConst& s) { return s.buffer_var; }
  static const Var& memory_of(const DeclBuffer& s) { return s.buffer->data; }
  // The statement's body rewritten while the memory that it defines is there.
  template <class T>
  Stmt in_scope(const Ref<T>& s) {
    const Var memory = memory_of(*s);
    alive_.insert(memory.get());
    Stmt result = children(Stmt(s));
    alive_.erase(memory.get());
    return result;
  }

  std::unordered_set<const VarNode*> seen_, alive_;
  std::vector<Var> fresh_;  // kept alive: `seen_` goes by address
};

}  // namespace

Result<IRModule> convert_ssa(IRModule module, const PassContext&) {
  return on_each_function(std::move(module), [](const Function& f) {
    Stmt body = SingleDefinitions(*f)(f->body);
    return body.same_as(f->body) ? f : with(*f, [&](PrimFunc& copy) { copy.body = std::move(body); });
  });
}

}  // namespace lathe::tir
