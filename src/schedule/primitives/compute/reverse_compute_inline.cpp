#include <set>

#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(reverse_inline_drops_value, "schedule_test", "reverse_compute_inline: the consumer's function is lost");

namespace {

// The consumer leaves the loops that it does not share with the producer: no two of their iterations may write one
// element, nor may another block touch it in a later one.
std::optional<Diagnostic> refuse_shared(const Program& program, const Path& consumer, const Path& producer,
                                        const Buffer& output) {
  const Block& block = *consumer.back().as<BlockRealize>()->block;
  Diagnostic problem = refuse(codes::not_inlinable, fmt::format("cannot inline {} into its producer: several instances "
                                                                "write one element of '{}'",
                                                                name_of(block), output->name));
  if (const Conflict conflict = instances_that_meet(*program.function, consumer)) {
    conflict.explain(problem);
    return problem;
  }
  const std::vector<const For*> kept = loops_above(producer);
  for (const For* loop : loops_above(consumer)) {
    if (std::find(kept.begin(), kept.end(), loop) != kept.end()) continue;
    if (!touched_by_others(Stmt(loop), output, block) || disjoint_across(*loop, output, program.proofs)) continue;
    problem.message = fmt::format("cannot inline {} into its producer: '{}' is touched by other blocks in {}",
                                  name_of(block), output->name, name_of(*loop));
    return problem;
  }
  return std::nullopt;
}

// Whether the block's instances may meet: they write one element, or read what others of them write.
bool may_meet(const PrimFunc& function, const Path& path, const BufferStore& store) {
  const std::vector<Buffer> read = buffers_read(path.back());
  return std::find(read.begin(), read.end(), store.buffer) != read.end() || instances_that_meet(function, path);
}

// Whether the loops at `to` run the instances with these values of the block's variables, in terms of those of the
// block there, just as the loops at `from` run them.
bool same_order(const Path& from, const Path& to, const VarMap& values) {
  const std::vector<const For*> loops = loops_above(from), others = loops_above(to);
  if (loops.size() != others.size()) return false;
  VarMap renamed;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (!same(substitute(loops[i]->min, renamed), others[i]->min) ||
        !same(substitute(loops[i]->extent, renamed), others[i]->extent))
      return false;
    renamed[loops[i]->loop_var] = others[i]->loop_var;
  }
  const auto &realize = *from.back().as<BlockRealize>(), &other = *to.back().as<BlockRealize>();
  const VarMap bound = bindings(other);
  for (size_t i = 0; i < realize.iter_values.size(); ++i)
    if (!same(substitute(realize.iter_values[i], renamed),
              substitute(values.at(realize.block->iter_vars[i]->var), bound)))
      return false;
  return true;
}

}  // namespace

Result<Edit> reverse_compute_inline(const Program& program, Id id) {
  const Path path = TRY(block_path(program, id));
  const Block& block = *path.back().as<BlockRealize>()->block;
  const BufferStore* store = TRY(single_store(block, "inline"));
  const auto problem = [&](std::string why) {
    return refuse(codes::not_inlinable, fmt::format("cannot inline {} into its producer: {}", name_of(block), why));
  };
  if (const auto why = undecided_above(path)) return problem("it is " + *why);
  const std::vector<Access> all = accesses(program.function->body);
  // The producer: the only block that writes one of the intermediates that this block reads.
  const Block* producer = nullptr;
  Buffer buffer;
  std::string why = "it reads no intermediate value";
  for (const Buffer& candidate : buffers_read(block.body)) {
    if (!allocating_block(*program.function, candidate)) continue;
    if (has_view(*program.function, candidate)) {
      why = fmt::format("'{}' is touched through a view", candidate->name);
      continue;
    }
    const Block* writer = nullptr;
    bool alone = true;
    std::set<const Block*> readers;
    for (const Access& access : all) {
      if (access.buffer != candidate) continue;
      if (access.opaque) alone = false;
      if (access.writes) {
        alone = alone && (!writer || writer == access.block) && access.block;
        writer = access.block;
      } else {
        readers.insert(access.block);
      }
    }
    readers.erase(writer);
    if (!alone || !writer || writer == &block || readers.size() != 1) {
      why = fmt::format("'{}' has several writers or readers", candidate->name);
      continue;
    }
    producer = writer;
    buffer = candidate;
    break;
  }
  if (!producer) return problem(why);
  const BufferStore* written = TRY(single_store(*producer, "inline into"));
  const Path to_producer = path_to(program.function->body, producer->id);
  if (scope_of(path) != scope_of(to_producer) || in_init(path) || in_init(to_producer))
    return problem(fmt::format("{} is in another scope", name_of(*producer)));

  const std::vector<Var> vars = TRY(variables_over_all(block, store->value, buffer, "inline"));
  if (auto moved = refuse_moved(all, block, *producer, buffer, "inline", true); moved && program.proves)
    return *std::move(moved);
  if (auto shared = refuse_shared(program, path, to_producer, store->buffer); shared && program.proves)
    return *std::move(shared);

  const VarMap values = values_of(block, vars, written->indices);
  if (program.proves && may_meet(*program.function, path, *store) && !same_order(path, to_producer, values))
    return problem("its instances may meet in an element, and would come in another order");
  const Expr value = substitute(rewrite_post_order(store->value,
                                                   [&](NodeRef n) -> NodeRef {
                                                     const auto* load = n.as<BufferLoad>();
                                                     if (!load || load->buffer != buffer) return n;
                                                     return written->value;
                                                   }),
                                values);
  std::vector<Expr> indices;
  for (const Expr& index : store->indices) indices.push_back(substitute(index, values));
  Ref<Block> merged = with(*producer, [&](Block& copy) {
    const bool drop = support::flip(reverse_inline_drops_value);
    copy.body = make<BufferStore>(store->buffer, drop ? written->value : value, indices, Expr());
  });
  merged = with_regions(merged);
  const Path target = path_to(program.function->body, producer->id);
  const Stmt realize = with(*target.back().as<BlockRealize>(), [&](BlockRealize& copy) { copy.block = merged; });
  const Function replaced = with_body(program.function, replace(program.function->body, target.back(), realize));
  const Stmt consumer = path_to(replaced->body, id).back();
  const Function after =
      with_loads_replaced(replaced, consumer, buffer, [](const BufferLoad& load) { return Expr(&load); });
  if (auto refused = refuse_parallel_above(program, after, to_producer, "inline a block")) return *std::move(refused);
  return edited(program, after, program.next);
}

}  // namespace lathe::schedule::primitives
