#include "support/mutation.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {
namespace {

class InitLowering : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    Stmt rewritten = children(std::move(s));
    const auto* block = rewritten.as<Block>();
    if (!block || !block->init) return rewritten;
    Expr first = boolean(true);
    for (const IterVar& iter : block->iter_vars)
      if (iter->type == IterType::reduce) first = logical_and(first, eq(iter->var, iter->dom.min));
    Stmt guarded = is_int(first, 1) ? block->init : Stmt(make<IfThenElse>(first, block->init));
    if (support::flip("lower_init_always")) guarded = block->init;
    return with(*block, [&](Block& copy) {
      copy.body = seq({guarded, copy.body});
      copy.init = {};
      // What the update reads of its own element was implied by the init; now it is a read like any other.
      for (const BufferRegion& write : copy.writes) {
        const bool known = std::any_of(copy.reads.begin(), copy.reads.end(),
                                       [&](const BufferRegion& read) { return read->buffer == write->buffer; });
        if (!known) copy.reads.push_back(write);
      }
    });
  }
};

}  // namespace

Result<IRModule> lower_init(IRModule module, const PassContext&) {
  return on_each_body(std::move(module), [](const Stmt& body) { return InitLowering()(body); });
}

}  // namespace lathe::tir
