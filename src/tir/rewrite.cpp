#include "tir/rewrite.h"

#include "support/parallel.h"

namespace lathe::tir {

support::Result<IRModule> on_each_function(IRModule module, support::function_ref<Function(const Function&)> change) {
  return support::catch_diagnostics([&]() -> support::Result<IRModule> {
    const std::vector<IRModule::Entry> entries = module.functions();
    for (const auto& [name, function] : entries)
      if (const auto* f = function.as<PrimFunc>()) module.set(name, change(Function(f)));
    return std::move(module);
  });
}

namespace {

Function with_body(const Function& f, Stmt body) {
  return body.same_as(f->body) ? f : with(*f, [&](PrimFunc& copy) { copy.body = std::move(body); });
}

}  // namespace

support::Result<IRModule> on_each_body(IRModule module, support::function_ref<Stmt(const Stmt&)> change) {
  return on_each_function(std::move(module), [&](const Function& f) { return with_body(f, change(f->body)); });
}

support::Result<IRModule> on_each_function(IRModule module, const PassContext& context, FunctionChange change) {
  struct Piece {
    std::string name;
    Function function;
    std::vector<ir::Remark> remarks;
  };
  std::vector<Piece> pieces;
  for (const auto& [name, function] : module.functions())
    if (const auto* f = function.as<PrimFunc>()) pieces.push_back({name, Function(f), {}});
  // What becomes of each takes its place on the thread that made it, which then frees what nobody else holds.
  for (const Piece& piece : pieces) module.set(piece.name, BaseFunc());
  const auto caller = std::this_thread::get_id();
  return support::catch_diagnostics([&]() -> support::Result<IRModule> {
    support::parallel_for(pieces.size(), context.threads, [&](size_t i) {
      PassContext own = context;
      own.threads = 1;
      if (own.on_remark) own.on_remark = [&](ir::Remark remark) { pieces[i].remarks.push_back(std::move(remark)); };
      if (std::this_thread::get_id() != caller) own.cancelled = {};
      pieces[i].function = change(pieces[i].name, pieces[i].function, own);
    });
    for (Piece& piece : pieces) {
      for (ir::Remark& remark : piece.remarks) context.on_remark(std::move(remark));
      module.set(piece.name, std::move(piece.function));
    }
    return std::move(module);
  });
}

support::Result<IRModule> on_each_body(IRModule module, const PassContext& context,
                                       support::function_ref<Stmt(const Stmt&, const PassContext&)> change) {
  return on_each_function(std::move(module), context,
                          [&](const std::string&, const Function& f, const PassContext& own) {
                            return with_body(f, change(f->body, own));
                          });
}

std::vector<Var> defined_vars(const Stmt& s) {
  std::vector<Var> defined;
  post_order(s, [&](const NodeRef& n) {
    if (const auto* loop = n.as<For>()) defined.push_back(loop->loop_var);
    if (const auto* let = n.as<LetStmt>()) defined.push_back(let->var);
    if (const auto* let = n.as<Let>()) defined.push_back(let->var);
    if (const auto* allocate = n.as<Allocate>()) defined.push_back(allocate->buffer_var);
    if (const auto* constant = n.as<AllocateConst>()) defined.push_back(constant->buffer_var);
    if (const auto* iter = n.as<IterVarNode>()) defined.push_back(iter->var);
    if (const auto* block = n.as<Block>()) {
      for (const Buffer& buffer : block->alloc_buffers) defined.push_back(buffer->data);
      for (const MatchBufferRegion& match : block->match_buffers) defined.push_back(match->buffer->data);
    }
  });
  return defined;
}

Stmt fresh_copy(const Stmt& s, const VarMap& map) {
  VarMap all = map;
  for (const Var& v : defined_vars(s)) all.emplace(v, make<VarNode>(v->name, v->dtype, v->is_size));
  return substitute(s, all);
}

NodeRef fold_constants(const NodeRef& root) {
  return rewrite_post_order(root, [](NodeRef n) -> NodeRef {
    if (const auto* e = n.as<Add>()) return add_index(e->a, e->b);
    if (const auto* e = n.as<Sub>()) return sub_index(e->a, e->b);
    if (const auto* e = n.as<Mul>()) return mul_index(e->a, e->b);
    if (const auto* e = n.as<Div>()) return div(e->a, e->b);
    if (const auto* e = n.as<Mod>()) return mod(e->a, e->b);
    if (const auto* e = n.as<FloorDiv>()) return floordiv(e->a, e->b);
    if (const auto* e = n.as<FloorMod>()) return floormod(e->a, e->b);
    if (const auto* e = n.as<Min>()) return min(e->a, e->b);
    if (const auto* e = n.as<Max>()) return max(e->a, e->b);
    if (const auto* e = n.as<EQ>()) return eq(e->a, e->b);
    if (const auto* e = n.as<NE>()) return ne(e->a, e->b);
    if (const auto* e = n.as<LT>()) return lt(e->a, e->b);
    if (const auto* e = n.as<LE>()) return le(e->a, e->b);
    if (const auto* e = n.as<GT>()) return gt(e->a, e->b);
    if (const auto* e = n.as<GE>()) return ge(e->a, e->b);
    if (const auto* e = n.as<And>()) return logical_and(e->a, e->b);
    if (const auto* e = n.as<Or>()) return logical_or(e->a, e->b);
    if (const auto* e = n.as<Not>()) return logical_not(e->a);
    if (const auto* e = n.as<Select>()) {
      if (const auto holds = as_int(e->condition)) return *holds ? e->true_value : e->false_value;
    }
    if (const auto* e = n.as<Call>(); e && e->op == &intrinsic::if_then_else)
      if (const auto holds = as_int(e->args[0])) return e->args[*holds ? 1 : 2];
    if (const auto* s = n.as<IfThenElse>())
      if (const auto holds = as_int(s->condition)) return *holds ? s->then_case : s->else_case ? s->else_case : nop();
    if (const auto* s = n.as<SeqStmt>()) return seq(s->seq);
    return n;
  });
}

Expr widen(const Expr& e, int64_t lanes) {
  if (e->dtype.lanes == lanes) return e;
  support::require(e->dtype.is_scalar(), "a vector of one length where another is needed");
  return make<Broadcast>(e, lanes);
}

namespace {

// The vector as base and stride; nothing where it is not one.
struct Progression {
  Expr base, stride;
};
std::optional<Progression> progression(const Expr& e) {
  if (const auto* ramp = e.as<Ramp>()) return Progression{ramp->base, ramp->stride};
  if (const auto* broadcast = e.as<Broadcast>())
    return Progression{broadcast->value, constant(broadcast->value->dtype, int64_t{0})};
  if (e->dtype.is_scalar()) return Progression{e, constant(e->dtype, int64_t{0})};
  return std::nullopt;
}

Expr from_progression(Expr base, Expr stride, int64_t lanes) {
  if (is_int(stride, 0)) return make<Broadcast>(std::move(base), lanes);
  return make<Ramp>(std::move(base), std::move(stride), lanes);
}

// Only integers: a ramp of floats does not exist.
bool both_progress(const Expr& a, const Expr& b, std::optional<Progression>& x, std::optional<Progression>& y) {
  if (!a->dtype.is_integer() || (a->dtype.is_scalar() && b->dtype.is_scalar())) return false;
  if (!a.is<Ramp>() && !b.is<Ramp>()) return false;
  x = progression(a);
  y = progression(b);
  return x && y;
}

}  // namespace

Expr add_index(const Expr& a, const Expr& b) {
  std::optional<Progression> x, y;
  if (!both_progress(a, b, x, y)) return add(a, b);
  return from_progression(add(x->base, y->base), add(x->stride, y->stride), std::max(a->dtype.lanes, b->dtype.lanes));
}

Expr sub_index(const Expr& a, const Expr& b) {
  std::optional<Progression> x, y;
  if (!both_progress(a, b, x, y)) return sub(a, b);
  return from_progression(sub(x->base, y->base), sub(x->stride, y->stride), std::max(a->dtype.lanes, b->dtype.lanes));
}

Expr mul_index(const Expr& a, const Expr& b) {
  std::optional<Progression> x, y;
  if (!both_progress(a, b, x, y)) return mul(a, b);
  const int64_t lanes = std::max(a->dtype.lanes, b->dtype.lanes);
  if (is_int(y->stride, 0)) return from_progression(mul(x->base, y->base), mul(x->stride, y->base), lanes);
  if (is_int(x->stride, 0)) return from_progression(mul(x->base, y->base), mul(y->stride, x->base), lanes);
  return mul(a, b);
}

}  // namespace lathe::tir
