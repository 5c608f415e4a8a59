#include "support/mutation.h"
#include "tir/intrinsics/context.h"
#include "tir/passes/passes.h"
#include "tir/passes/views.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(lower_match_buffer_corner, "tir_test", "a view is taken to begin where its source does");

namespace {

// Each view as one that begins at the first element of its source.
Ref<Block> from_the_start(const Block& block) {
  return with(block, [](Block& copy) {
    for (MatchBufferRegion& match : copy.match_buffers)
      match = with(*match, [](MatchBufferRegionNode& view) {
        view.source = with(*view.source, [](BufferRegionNode& source) {
          for (Range& range : source.region) range.min = constant(range.min->dtype, 0);
        });
      });
  });
}

class ViewRemoval : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    const auto* block = s.as<Block>();
    if (!block || block->match_buffers.empty()) return children(std::move(s));
    Ref<Block> plain = without_views(support::flip(lower_match_buffer_corner) ? *from_the_start(*block) : *block);
    // The description of an intrinsic is told by its views: without them, the block is what its body does.
    if (tensor_intrin_of(*plain)) plain = with(*plain, [](Block& copy) { copy.annotations.erase(tensor_intrin_key); });
    return children(Stmt(plain));
  }
};

}  // namespace

Result<IRModule> lower_match_buffer(IRModule module, const PassContext&) {
  return on_each_body(std::move(module), [](const Stmt& body) { return ViewRemoval()(body); });
}

}  // namespace lathe::tir
