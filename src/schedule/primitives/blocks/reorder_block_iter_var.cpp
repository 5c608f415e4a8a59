#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(reorder_block_iter_var_keeps_values, "schedule_test",
            "reorder_block_iter_var: the values keep their order");

Result<Edit> reorder_block_iter_var(const Program& program, Id id, const std::vector<int64_t>& order) {
  const Path path = TRY(block_path(program, id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool complete = sorted.size() == block.iter_vars.size();
  for (size_t i = 0; i < sorted.size(); ++i) complete = complete && sorted[i] == static_cast<int64_t>(i);
  if (!complete)
    return refuse(codes::bad_argument, fmt::format("cannot reorder the variables of {}: [{}] is no order of its {}",
                                                   name_of(block), fmt::join(order, ", "), block.iter_vars.size()));
  std::vector<IterVar> variables;
  std::vector<Expr> values;
  for (const int64_t from : order) {
    variables.push_back(block.iter_vars[static_cast<size_t>(from)]);
    values.push_back(realized.iter_values[static_cast<size_t>(from)]);
  }
  if (support::flip(reorder_block_iter_var_keeps_values)) values = realized.iter_values;
  const Ref<Block> changed = with(block, [&](Block& copy) { copy.iter_vars = variables; });
  return edit(program, path.back(), realize(std::move(values), realized.predicate, changed), program.next);
}

}  // namespace lathe::schedule::primitives
