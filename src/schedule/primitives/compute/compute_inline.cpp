#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/compute/inline.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

namespace {

// The value must be the same at the consumers as it was at the producer: nothing that it reads may be overwritten after
// the producer ran.
std::optional<Diagnostic> refuse_overwritten(const PrimFunc& function, const BlockRealize& realize) {
  const Block& block = *realize.block;
  const std::vector<Access> all = accesses(function.body);
  const Access* producer = nullptr;
  for (const Access& access : all)
    if (access.block == &block) producer = &access;
  for (const Buffer& read : buffers_read(block.body)) {
    for (const Access& write : all) {
      if (!write.writes || write.buffer != read) continue;
      bool safe = write.order < producer->order;
      for (size_t i = 0; safe && i < std::min(write.loops.size(), producer->loops.size()); ++i) {
        if (write.loops[i] != producer->loops[i]) break;
        safe = disjoint_across(*write.loops[i], read);
      }
      if (!safe)
        return refuse(codes::not_inlinable,
                      fmt::format("cannot inline {}: '{}', which it reads, is written again{}", name_of(block),
                                  read->name, write.block ? " by " + name_of(*write.block) : ""));
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Edit> compute_inline(const Program& program, Id id) {
  const Path path = TRY(block_path(program, id));
  const auto& realize = *path.back().as<BlockRealize>();
  const Block& block = *realize.block;
  const BufferStore* store = TRY(single_store(block, "inline"));
  const std::vector<Var> vars = TRY(index_variables(block, store->indices, "inline"));
  const Buffer buffer = store->buffer;
  const auto problem = [&](std::string why) {
    return refuse(codes::not_inlinable, fmt::format("cannot inline {}: {}", name_of(block), why));
  };
  if (!allocating_block(*program.function, buffer))
    return problem(fmt::format("'{}' is an output of the function", buffer->name));
  for (const Access& access : accesses(program.function->body)) {
    if (access.buffer != buffer) continue;
    if (access.writes && access.block != &block)
      return problem(fmt::format("'{}' is also written by {}", buffer->name,
                                 access.block ? name_of(*access.block) : "a statement outside blocks"));
    if (access.opaque) return problem(fmt::format("the address of '{}' is taken", buffer->name));
    if (!access.writes && access.block == &block) return problem("it reads what it writes");
    for (const Range& range : access.region)
      if (!is_int(range.extent, 1)) return problem(fmt::format("'{}' is read as a vector or region", buffer->name));
  }
  if (auto overwritten = refuse_overwritten(*program.function, realize)) return *std::move(overwritten);

  const Function after = with_loads_replaced(program.function, path.back(), buffer, [&](const BufferLoad& load) {
    VarMap values;
    for (size_t d = 0; d < vars.size(); ++d)
      if (vars[d]) values[vars[d]] = load.indices[support::flip("inline_swaps_indices") ? vars.size() - 1 - d : d];
    for (const IterVar& iter : block.iter_vars)
      if (!values.count(iter->var)) values[iter->var] = iter->dom.min;
    return substitute(store->value, values);
  });
  return edited(program, after, program.next);
}

}  // namespace lathe::schedule::primitives
