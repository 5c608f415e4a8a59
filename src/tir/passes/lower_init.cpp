#include "support/mutation.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(lower_init_always, "tir_test", "a block's init runs in every instance, not only in the first");

namespace {

class InitLowering : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    if (!s.is<Block>()) return children(std::move(s));
    std::vector<Buffer> outside = std::exchange(updated_, {});
    Stmt rewritten = children(std::move(s));
    const auto* block = rewritten.as<Block>();
    if (block->init)
      for (const BufferRegion& write : block->writes) updated_.push_back(write->buffer);
    if (!updated_.empty())
      rewritten = with(*block, [&](Block& copy) {
        if (copy.init) copy.body = seq({guarded_init(copy), copy.body});
        copy.init = {};
        declare_reads(copy);
      });
    updated_.insert(updated_.end(), outside.begin(), outside.end());
    return rewritten;
  }

 private:
  static Stmt guarded_init(const Block& block) {
    Expr first = boolean(true);
    for (const IterVar& iter : block.iter_vars)
      if (iter->type == IterType::reduce) first = logical_and(first, eq(iter->var, iter->dom.min));
    if (is_int(first, 1) || support::flip(lower_init_always)) return block.init;
    return make<IfThenElse>(first, block.init);
  }

  // What an update reads of its own element was implied by the init; now it is a read like any other, of the block and
  // of the blocks around it.
  void declare_reads(Block& block) const {
    for (const BufferRegion& write : block.writes) {
      const auto same_buffer = [&](const Buffer& buffer) { return buffer == write->buffer; };
      const bool updated = std::any_of(updated_.begin(), updated_.end(), same_buffer);
      const bool known = std::any_of(block.reads.begin(), block.reads.end(),
                                     [&](const BufferRegion& read) { return same_buffer(read->buffer); });
      if (updated && !known) block.reads.push_back(write);
    }
  }

  std::vector<Buffer> updated_;  // written by the blocks whose init went, inside the present block
};

}  // namespace

Result<IRModule> lower_init(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context,
                      [](const Stmt& body, const PassContext&) { return InitLowering()(body); });
}

}  // namespace lathe::tir
