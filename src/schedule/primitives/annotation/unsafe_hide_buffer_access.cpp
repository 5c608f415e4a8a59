// unsafe_hide_buffer_access: a block stops declaring what it reads or writes of a buffer. From then on what it declares
// is believed, not checked, and no proof counts what it leaves out.
#include "schedule/primitives/rewrite.h"
#include "tir/analysis/regions.h"

namespace lathe::schedule::primitives {

Result<Edit> unsafe_hide_buffer_access(const Program& program, Id id, bool writes,
                                       const std::vector<int64_t>& buffers) {
  const Path path = TRY(block_path(program, id));
  const auto& realize = *path.back().as<BlockRealize>();
  const std::vector<BufferRegion>& declared = writes ? realize.block->writes : realize.block->reads;
  std::vector<BufferRegion> kept;
  for (const int64_t number : buffers)
    if (number < 0 || number >= static_cast<int64_t>(declared.size()))
      return refuse(codes::bad_argument,
                    fmt::format("{} declares that it {} {} buffers, there is no number {}", name_of(*realize.block),
                                writes ? "writes" : "reads", declared.size(), number));
  for (size_t i = 0; i < declared.size(); ++i)
    if (std::find(buffers.begin(), buffers.end(), static_cast<int64_t>(i)) == buffers.end())
      kept.push_back(declared[i]);
  const Stmt changed = with(realize, [&](BlockRealize& copy) {
    copy.block = with(*realize.block, [&](Block& block) {
      (writes ? block.writes : block.reads) = std::move(kept);
      block.annotations.set(hidden_access_key, true);
    });
  });
  return edit(program, path.back(), changed, program.next);
}

}  // namespace lathe::schedule::primitives
