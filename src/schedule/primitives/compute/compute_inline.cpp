#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(inline_swaps_indices, "schedule_test", "compute_inline: indices in reverse order");

namespace {

// The value must be the same at the consumers as it was at the producer: nothing that it reads may be overwritten after
// the producer ran.
std::optional<Diagnostic> refuse_overwritten(const Program& program, const BlockRealize& realize) {
  if (!program.proves) return std::nullopt;
  const Block& block = *realize.block;
  const std::vector<Access> all = accesses(program.function->body);
  const Access* producer = nullptr;
  for (const Access& access : all)
    if (access.block == &block) producer = &access;
  for (const Buffer& read : buffers_read(block.body)) {
    for (const Access& write : all) {
      if (!write.writes || write.buffer != read) continue;
      bool safe = write.order < producer->order;
      for (size_t i = 0; safe && i < std::min(write.loops.size(), producer->loops.size()); ++i) {
        if (write.loops[i] != producer->loops[i]) break;
        safe = disjoint_across(*write.loops[i], read, program.proofs);
      }
      if (!safe)
        return refuse(codes::not_inlinable,
                      fmt::format("cannot inline {}: '{}', which it reads, is written again{}", name_of(block),
                                  read->name, write.block ? " by " + name_of(*write.block) : ""));
    }
  }
  return std::nullopt;
}

// Where other blocks write the buffer too: the blocks whose loads of it give what this block wrote just before. Every
// other load must be of elements that this block does not write. A reason where neither can be shown.
Result<std::vector<const Block*>> readers_of_part(const PrimFunc& function, const BlockRealize& realize,
                                                  const Buffer& buffer) {
  const Block& block = *realize.block;
  const auto problem = [&](std::string why) {
    return refuse(codes::not_inlinable, fmt::format("cannot inline {}: {}", name_of(block), why));
  };
  if (!is_int(realize.predicate, 1)) return problem("it runs under a condition, and other blocks write its buffer too");
  const std::vector<Access> all = accesses(function.body);
  const Access* store = nullptr;
  for (const Access& access : all)
    if (access.block == &block && access.writes) store = &access;
  const auto region_of_access = [&](const Access& access, const std::vector<const For*>& fixed) {
    return touched(all, [&](const Access& a) { return a.order == access.order; }, fixed);
  };
  const auto everything = region_of_access(*store, {});
  std::vector<const Block*> readers, others;
  for (const Access& read : all) {
    if (read.buffer != buffer || read.writes) continue;
    const std::string reader = read.block ? name_of(*read.block) : "a statement";
    const auto its_own = region_of_access(read, {});
    if (everything && its_own && apart(*everything, *its_own)) {
      others.push_back(read.block);
      continue;
    }
    // In one iteration of the loops around both: the block wrote all of it before, and nobody else any of it. A loop of
    // one iteration is that iteration, by its variable or by its number.
    std::vector<const For*> shared;
    for (size_t i = 0; i < std::min(store->loops.size(), read.loops.size()); ++i) {
      if (store->loops[i] != read.loops[i]) break;
      if (!is_int(store->loops[i]->extent, 1)) shared.push_back(store->loops[i]);
    }
    const auto written = region_of_access(*store, shared), wanted = region_of_access(read, shared);
    if (!read.block || read.order < store->order || !written || !wanted || !written->exact || !holds(*written, *wanted))
      return problem(fmt::format("it does not write all that {} reads of '{}'", reader, buffer->name));
    for (const Access& write : all) {
      if (write.buffer != buffer || !write.writes || write.block == &block) continue;
      const auto theirs = region_of_access(write, shared), all_of_theirs = region_of_access(write, {});
      const bool never = all_of_theirs && its_own && apart(*all_of_theirs, *its_own);
      if (!never && (!theirs || !apart(*theirs, *wanted)))
        return problem(fmt::format("'{}' is also written by {}", buffer->name,
                                   write.block ? name_of(*write.block) : "a statement outside blocks"));
    }
    readers.push_back(read.block);
  }
  for (const Block* reader : readers)
    if (std::find(others.begin(), others.end(), reader) != others.end())
      return problem(fmt::format("{} also reads what other blocks write of '{}'", name_of(*reader), buffer->name));
  return readers;
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
  if (has_view(*program.function, buffer)) return problem(fmt::format("'{}' is read through a view", buffer->name));
  // What it reads must be known where its value goes.
  if (in_init(path)) return problem("it is in an init");
  const BlockRealize* scope = scope_of(path);
  const auto outside = [&](const Access& access) {
    return access.block && scope && path_to(scope->block->body, access.block->id).empty();
  };
  bool has_other_writers = false;
  for (const Access& access : accesses(program.function->body)) {
    if (access.buffer != buffer) continue;
    has_other_writers = has_other_writers || (access.writes && access.block != &block);
    if (access.opaque) return problem(fmt::format("the address of '{}' is taken", buffer->name));
    if (!access.writes && access.block == &block) return problem("it reads what it writes");
    if (outside(access))
      return problem(fmt::format("{}, which touches '{}', is not inside {}", name_of(*access.block), buffer->name,
                                 name_of(*scope->block)));
    for (const Range& range : access.region)
      if (!is_int(range.extent, 1)) return problem(fmt::format("'{}' is read as a vector or region", buffer->name));
  }
  if (auto overwritten = refuse_overwritten(program, realize)) return *std::move(overwritten);

  std::vector<const Block*> readers;
  if (has_other_writers) readers = TRY(readers_of_part(*program.function, realize, buffer));
  const auto value_at = [&](const BufferLoad& load) {
    VarMap values;
    for (size_t d = 0; d < vars.size(); ++d)
      if (vars[d]) values[vars[d]] = load.indices[support::flip(inline_swaps_indices) ? vars.size() - 1 - d : d];
    for (const IterVar& iter : block.iter_vars)
      if (!values.count(iter->var)) values[iter->var] = iter->dom.min;
    return substitute(store->value, values);
  };
  const Function after =
      with_loads_replaced(program.function, path.back(), buffer, value_at, has_other_writers ? &readers : nullptr);
  return edited(program, after, program.next);
}

}  // namespace lathe::schedule::primitives
