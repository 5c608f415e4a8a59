#include "schedule/primitives/rewrite.h"
#include "tir/analysis/regions.h"

namespace lathe::schedule::primitives {

Result<Edit> annotate(const Program& program, Id id, const std::string& key, const ir::Value& value) {
  const Path path = path_to(program.function->body, id);
  if (path.empty()) return refuse(codes::gone, "the loop or block is not in the function");
  // These say how a block is to be understood, not how it is to be compiled.
  if (key == tensor_intrin_key || key == hidden_access_key || key == explicit_read_region_key ||
      key == explicit_write_region_key)
    return refuse(codes::bad_argument, fmt::format("the annotation '{}' is only set by the primitive it is of", key));
  const auto change = [&](Attributes& annotations) -> bool {
    if (value.empty()) {
      if (!annotations.contains(key)) return false;
      annotations.erase(key);
    } else {
      annotations.set(key, value);
    }
    return true;
  };
  bool found = true;
  Stmt changed;
  std::string name;
  if (const auto* loop = path.back().as<For>()) {
    name = name_of(*loop);
    changed = with(*loop, [&](For& copy) { found = change(copy.annotations); });
  } else {
    const auto& realize = *path.back().as<BlockRealize>();
    name = name_of(*realize.block);
    changed = with(realize, [&](BlockRealize& copy) {
      copy.block = with(*realize.block, [&](Block& block) { found = change(block.annotations); });
    });
  }
  if (!found) return refuse(codes::bad_argument, fmt::format("{} has no annotation '{}'", name, key));
  return edit(program, path.back(), changed, program.next);
}

}  // namespace lathe::schedule::primitives
