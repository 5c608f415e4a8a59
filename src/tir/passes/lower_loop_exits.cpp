#include "support/mutation.h"
#include "tir/analysis/loop_exits.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(lower_loop_exits_rest, "tir_test", "what follows an exit runs nevertheless");

namespace {

// What an iteration notes when it is left.
constexpr int64_t runs = 0, is_done = 1, ends_the_loop = 2;

class ExitLowering : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    const Stmt rewritten = children(std::move(s));  // the loops inside first: their exits are gone then
    if (const auto* loop = rewritten.as<For>(); loop && has_loop_exits(loop->body)) return lowered(*loop);
    if (const auto* loop = rewritten.as<While>(); loop && has_loop_exits(loop->body)) return lowered(*loop);
    return rewritten;
  }

 private:
  static Stmt set(const Buffer& cell, Expr value) {
    return make<BufferStore>(cell, std::move(value), std::vector<Expr>{int64(0)});
  }
  static Expr get(const Buffer& cell) { return load(cell, {int64(0)}); }
  static Expr state(int64_t value) { return constant(DType::int32(), value); }
  static Buffer cell(const std::string& name, DType dtype) { return buffer(name, {int64(1)}, dtype, "local"); }

  // A loop without T.break_loop stays what it is; another becomes a while loop, which asks.
  static Stmt lowered(const For& loop) {
    const Buffer left = cell("left", DType::int32());
    const Stmt body = guarded(loop.body, left);
    const Stmt iteration = seq({set(left, state(runs)), body});
    if (!has_loop_exits(loop.body, intrinsic::break_loop))
      return with(loop, [&](For& copy) { copy.body = make<DeclBuffer>(left, iteration); });
    const DType dtype = loop.loop_var->dtype;
    const Buffer place = cell(loop.loop_var->name + "_at", dtype);
    const Var end = make<VarNode>(loop.loop_var->name + "_end", dtype);
    const Stmt step =
        make<LetStmt>(loop.loop_var, get(place), seq({iteration, set(place, add(loop.loop_var, constant(dtype, 1)))}));
    const Stmt whole = make<While>(logical_and(lt(get(place), end), ne(get(left), state(ends_the_loop))), step);
    const Stmt started = seq({set(place, loop.min), set(left, state(runs)), whole});
    return make<LetStmt>(end, add(loop.min, loop.extent),
                         Stmt(make<DeclBuffer>(place, Stmt(make<DeclBuffer>(left, started)))));
  }

  static Stmt lowered(const While& loop) {
    const Buffer left = cell("left", DType::int32());
    const Stmt iteration = seq({set(left, state(runs)), guarded(loop.body, left)});
    // The condition may have no value where the loop has been left.
    const Expr goes_on = call(DType::boolean(), intrinsic::if_then_else,
                              {ne(get(left), state(ends_the_loop)), loop.condition, boolean(false)});
    return make<DeclBuffer>(left, seq({set(left, state(runs)), Stmt(make<While>(goes_on, iteration))}));
  }

  // `s` with its exits noted in `left`, and what follows one run only where none was met.
  static Stmt guarded(const Stmt& s, const Buffer& left) {
    if (is_loop_exit(s, intrinsic::break_loop)) return set(left, state(ends_the_loop));
    if (is_loop_exit(s, intrinsic::continue_loop)) return set(left, state(is_done));
    if (!has_loop_exits(s)) return s;
    if (const auto* list = s.as<SeqStmt>()) return in_order(list->seq, 0, left);
    const auto inside = [&](const auto& n) {
      return Stmt(with(n, [&](auto& copy) { copy.body = guarded(n.body, left); }));
    };
    if (const auto* n = s.as<IfThenElse>())
      return with(*n, [&](IfThenElse& copy) {
        copy.then_case = guarded(n->then_case, left);
        if (n->else_case) copy.else_case = guarded(n->else_case, left);
      });
    if (const auto* n = s.as<LetStmt>()) return inside(*n);
    if (const auto* n = s.as<AttrStmt>()) return inside(*n);
    if (const auto* n = s.as<DeclBuffer>()) return inside(*n);
    if (const auto* n = s.as<Allocate>()) return inside(*n);
    if (const auto* n = s.as<AllocateConst>()) return inside(*n);
    support::unreachable("an exit of a loop inside a statement that holds none");
  }

  static Stmt in_order(const std::vector<Stmt>& list, size_t first, const Buffer& left) {
    std::vector<Stmt> result;
    for (size_t k = first; k < list.size(); ++k) {
      result.push_back(guarded(list[k], left));
      if (!has_loop_exits(list[k]) || k + 1 == list.size() || support::flip(lower_loop_exits_rest)) continue;
      result.push_back(make<IfThenElse>(eq(get(left), state(runs)), in_order(list, k + 1, left), Stmt()));
      break;
    }
    return seq(std::move(result));
  }
};

}  // namespace

Result<IRModule> lower_loop_exits(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context, [](const Stmt& body, const PassContext&) {
    return leaves_loops(body) ? ExitLowering()(body) : body;
  });
}

}  // namespace lathe::tir
