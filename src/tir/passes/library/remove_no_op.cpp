#include "tir/passes/library/remove_no_op.h"

#include "support/mutation.h"
#include "tir/analysis/effects.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(remove_no_op_else, "tir_test", "a branch goes where only its first case does nothing");

namespace {

class NoOpRemoval : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    Stmt rewritten = children(std::move(s));
    return does_nothing(rewritten) ? nop() : shortened(std::move(rewritten));
  }

 private:
  static bool empty(const Stmt& s) { return !s || is_nop(s); }

  static bool does_nothing(const Stmt& s) {
    if (const auto* loop = s.as<For>())
      return is_int(loop->extent, 0) ||
             (is_nop(loop->body) && only_gives_a_value(loop->min) && only_gives_a_value(loop->extent));
    if (const auto* branch = s.as<IfThenElse>()) {
      const bool rest = empty(branch->else_case) || support::flip(remove_no_op_else);
      return is_nop(branch->then_case) && rest && only_gives_a_value(branch->condition);
    }
    if (const auto* let = s.as<LetStmt>()) return is_nop(let->body) && only_gives_a_value(let->value);
    if (const auto* evaluate = s.as<Evaluate>()) return only_gives_a_value(evaluate->value);
    if (const auto* check = s.as<AssertStmt>()) return is_int(check->condition, 1);
    if (const auto* allocate = s.as<Allocate>()) return is_nop(allocate->body);
    if (const auto* constant = s.as<AllocateConst>()) return is_nop(constant->body);
    if (const auto* declare = s.as<DeclBuffer>()) return is_nop(declare->body);
    if (const auto* attribute = s.as<AttrStmt>()) return is_nop(attribute->body);
    if (const auto* realize = s.as<BlockRealize>())
      return is_int(realize->predicate, 0) || (is_nop(realize->block->body) && empty(realize->block->init));
    const auto* store = s.as<BufferStore>();
    const auto* load = store ? store->value.as<BufferLoad>() : nullptr;
    if (!load || load->buffer != store->buffer || load->predicate || load->indices.size() != store->indices.size())
      return false;
    for (size_t d = 0; d < load->indices.size(); ++d)
      if (!structural_equal(load->indices[d], store->indices[d]) || !only_gives_a_value(load->indices[d])) return false;
    return true;
  }

  // What remains where a part of the statement does nothing.
  static Stmt shortened(Stmt s) {
    if (const auto* sequence = s.as<SeqStmt>()) {
      std::vector<Stmt> kept;
      for (const Stmt& each : sequence->seq)
        if (!is_nop(each)) kept.push_back(each);
      return kept.size() == sequence->seq.size() ? s : seq(std::move(kept));
    }
    if (const auto* let = s.as<LetStmt>(); let && only_gives_a_value(let->value) && !uses_var(let->body, let->var))
      return let->body;
    const auto* branch = s.as<IfThenElse>();
    if (!branch || !branch->else_case) return s;
    if (is_nop(branch->else_case)) return make<IfThenElse>(branch->condition, branch->then_case, Stmt());
    if (is_nop(branch->then_case)) return make<IfThenElse>(logical_not(branch->condition), branch->else_case, Stmt());
    return s;
  }
};

}  // namespace

Stmt without_no_ops(Stmt s) { return NoOpRemoval()(std::move(s)); }

Result<IRModule> remove_no_op(IRModule module, const PassContext&) {
  return on_each_body(std::move(module), [](const Stmt& body) { return without_no_ops(body); });
}

}  // namespace lathe::tir
