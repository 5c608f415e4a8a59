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

size_t common_loops(const Access& a, const Access& b) {
  size_t common = 0;
  while (common < a.loops.size() && common < b.loops.size() && a.loops[common] == b.loops[common]) ++common;
  return common;
}

// What the consumer reads besides must be there, and what it writes must be untouched, where the producer runs.
std::optional<Diagnostic> refuse_moved(const std::vector<Access>& all, const Block& consumer, const Block& producer,
                                       const Buffer& between) {
  const Access *at_producer = nullptr, *at_consumer = nullptr;
  for (const Access& access : all) {
    if (access.block == &producer && access.writes) at_producer = &access;
    if (access.block == &consumer && access.writes) at_consumer = &access;
  }
  const Buffer output = at_consumer->buffer;
  for (const Access& mine : all) {
    if (mine.block != &consumer || mine.buffer == between) continue;
    for (const Access& other : all) {
      if (other.block == &consumer || other.buffer != mine.buffer) continue;
      const bool hazard = mine.writes || mine.buffer == output;
      if (hazard ? other.order < at_consumer->order
                 : other.writes && (other.order > at_producer->order ||
                                    common_loops(other, *at_producer) > common_loops(*at_producer, *at_consumer)))
        return refuse(codes::not_inlinable,
                      fmt::format("cannot inline {} into {}: '{}' is touched{} before {} runs", name_of(consumer),
                                  name_of(producer), mine.buffer->name,
                                  other.block ? " by " + name_of(*other.block) : "", name_of(consumer)));
    }
  }
  return std::nullopt;
}

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

  // Its index must determine the block's variables, over all of the buffer.
  std::vector<Var> vars;
  std::optional<Diagnostic> refused;
  bool first = true;
  post_order(store->value, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    if (!load || load->buffer != buffer || refused) return;
    auto found = index_variables(block, load->indices, "inline");
    if (!found)
      refused = found.diagnostics()[0];
    else if (!first && *found != vars)
      refused = problem(fmt::format("it reads different elements of '{}'", buffer->name));
    else
      vars = *found;
    first = false;
  });
  if (refused) return *std::move(refused);
  for (size_t d = 0; d < vars.size(); ++d) {
    if (!vars[d]) {
      if (!is_int(buffer->shape[d], 1)) return problem(fmt::format("it reads only a part of '{}'", buffer->name));
      continue;
    }
    for (const IterVar& iter : block.iter_vars)
      if (iter->var == vars[d] && !(is_int(iter->dom.min, 0) && same(iter->dom.extent, buffer->shape[d])))
        return problem(fmt::format("it reads only a part of '{}'", buffer->name));
  }
  if (auto moved = refuse_moved(all, block, *producer, buffer); moved && program.proves) return *std::move(moved);
  if (auto shared = refuse_shared(program, path, to_producer, store->buffer); shared && program.proves)
    return *std::move(shared);

  VarMap values;
  for (size_t d = 0; d < vars.size(); ++d)
    if (vars[d]) values[vars[d]] = written->indices[d];
  for (const IterVar& iter : block.iter_vars)
    if (!values.count(iter->var)) values[iter->var] = iter->dom.min;
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
