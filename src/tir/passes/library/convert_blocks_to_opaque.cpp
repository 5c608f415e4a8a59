#include "support/mutation.h"
#include "tir/codes.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(convert_blocks_to_opaque_value, "tir_test", "a block's last variable is taken to be at its first value");

namespace {

class VariableRemoval : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    const auto* realize = s.as<BlockRealize>();
    if (!realize || realize->block->iter_vars.empty()) return children(std::move(s));
    const Block& block = *realize->block;
    if (block.init)
      throw support::DiagnosticError(support::Diagnostic{
          .code = codes::illegal_after_stage,
          .message = fmt::format("block '{}' has an init, which depends on its variables", block.name),
          .help = "run LowerInitBlock before"});
    VarMap values;
    for (size_t k = 0; k < block.iter_vars.size(); ++k) {
      const IterVar& iter = block.iter_vars[k];
      const bool wrong = support::flip(convert_blocks_to_opaque_value) && k + 1 == block.iter_vars.size();
      values[iter->var] = cast(iter->var->dtype, wrong ? iter->dom.min : realize->iter_values[k]);
    }
    const auto bound = [&](const std::vector<BufferRegion>& regions) {
      std::vector<BufferRegion> result;
      for (const BufferRegion& region : regions)
        result.push_back(with(*region, [&](BufferRegionNode& copy) {
          for (Range& range : copy.region) range = {substitute(range.min, values), substitute(range.extent, values)};
        }));
      return result;
    };
    return with(*realize, [&](BlockRealize& copy) {
      copy.iter_values.clear();
      copy.block = with(block, [&](Block& opaque) {
        opaque.iter_vars.clear();
        opaque.reads = bound(block.reads);
        opaque.writes = bound(block.writes);
        for (MatchBufferRegion& match : opaque.match_buffers)
          match = make<MatchBufferRegionNode>(match->buffer, bound({match->source})[0]);
        opaque.body = (*this)(substitute(block.body, values));
      });
    });
  }
};

}  // namespace

Result<IRModule> convert_blocks_to_opaque(IRModule module, const PassContext&) {
  return on_each_body(std::move(module), [](const Stmt& body) { return VariableRemoval()(body); });
}

}  // namespace lathe::tir
