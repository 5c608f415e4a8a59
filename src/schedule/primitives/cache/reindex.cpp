// reindex, reindex_cache_read, reindex_cache_write: what a block reads, or writes, goes through a buffer indexed by the
// block's own variables, or by a map of them.
#include "arith/affine.h"
#include "ir/visit.h"
#include "schedule/index_map.h"
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(reindex_reverses_variables, "schedule_test", "reindex: the copy takes the block's variables backwards");

namespace {

// The indices of the block's accesses to the buffer, all the same; nothing where they differ or some are conditional.
std::optional<std::vector<Expr>> common_indices(const Block& block, const Buffer& buffer) {
  std::optional<std::vector<Expr>> found;
  for (const Access& access : accesses(block.init ? seq({block.init, block.body}) : block.body)) {
    if (access.buffer != buffer) continue;
    if (!access.certain || access.opaque || !access.loops.empty() || access.block) return std::nullopt;
    std::vector<Expr> indices;
    for (const Range& range : access.region) {
      if (!is_int(range.extent, 1)) return std::nullopt;
      indices.push_back(range.min);
    }
    if (!found) found = indices;
    for (size_t d = 0; d < indices.size(); ++d)
      if (!same((*found)[d], indices[d])) return std::nullopt;
  }
  return found;
}

class Reindexed : public Rewriter {
 public:
  Reindexed(const Buffer& from, const Buffer& to, const std::vector<Expr>& indices)
      : from_(from), to_(to), indices_(indices) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (const auto* n = node.as<BufferLoad>(); n && n->buffer == from_) return load(to_, indices_);
    if (const auto* store = node.as<BufferStore>(); store && store->buffer == from_) {
      const Expr value = (*this)(store->value);
      return make<BufferStore>(to_, value, indices_, store->predicate);
    }
    return descend(std::move(node));
  }

 private:
  const Buffer &from_, &to_;
  const std::vector<Expr>& indices_;
};

// The map as one of the variables that are used; a reason where it needs others.
Result<IndexMap> restricted(const IndexMap& map, const Block& block, const std::vector<IterVar>& used) {
  const auto problem = [&](std::string why) {
    return refuse(codes::bad_argument, fmt::format("index map '{}' {}", map.text(), why));
  };
  if (map.from.size() != block.iter_vars.size())
    return problem(
        fmt::format("takes {} variables where {} has {}", map.from.size(), name_of(block), block.iter_vars.size()));
  IndexMap result{{}, map.to};
  for (size_t i = 0; i < map.from.size(); ++i) {
    if (std::find(used.begin(), used.end(), block.iter_vars[i]) != used.end()) {
      result.from.push_back(map.from[i]);
      continue;
    }
    for (const Expr& e : map.to)
      if (uses_var(e, map.from[i]))
        return problem(fmt::format("uses the axis '{}', on which the buffer's indices do not depend",
                                   block.iter_vars[i]->var->name));
  }
  return result;
}

struct Through {
  std::string scope = "global", suffix;
  const IndexMap* map = nullptr;  // of all variables of the block; null: those that the buffer's indices use
};

Result<Edit> through(const Program& program, Id id, BufferIndex which, const Through& how) {
  const Path path = TRY(block_path(program, id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  const Buffer buffer = TRY(buffer_of(path, which));
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot reindex '{}' of {}: {}", buffer->name, name_of(block), why));
  };
  const BlockRealize* scope = scope_of(path);
  if (!scope) return problem(codes::bad_argument, "it is the root block");
  if (in_init(path)) return problem(codes::bad_argument, "the block is in an init");
  const auto indices = common_indices(block, buffer);
  if (!indices) return problem(codes::region, "it is touched under a condition, in loops, or at different indices");

  // The variables that the indices are made of, in the block's order.
  std::vector<IterVar> used;
  for (const IterVar& iter : block.iter_vars)
    if (std::any_of(indices->begin(), indices->end(), [&](const Expr& e) { return uses_var(e, iter->var); }))
      used.push_back(iter);
  VarMap fresh;
  std::vector<IterVar> iters;
  std::vector<Expr> own, theirs, shape, at;
  std::vector<Interval> domains;
  arith::Analyzer analyzer;
  for (const IterVar& iter : used) {
    if (!is_int(iter->dom.min, 0))
      return problem(codes::region, fmt::format("its axis '{}' does not start at 0", iter->var->name));
    const Var v = var(iter->var->name);
    fresh[iter->var] = v;
    iters.push_back(make<IterVarNode>(iter->dom, v, IterType::spatial));
    analyzer.bind(v, iter->dom);
    own.push_back(iter->var);
    theirs.push_back(v);
    shape.push_back(iter->dom.extent);
    domains.push_back({int64(0), Linear(linear(iter->dom.extent - 1)).expr()});
  }
  if (how.map) {
    const IndexMap used_map = TRY(restricted(*how.map, block, used));
    own = used_map(own);
    shape = TRY(image_of(used_map, shape, std::vector<Expr>(own.size(), int64(0)))).extents;
    theirs = used_map(theirs);
  }
  for (const Expr& index : *indices) at.push_back(substitute(index, fresh));
  // The copy touches what the block's instances do, elements of the buffer. Where an axis that the indices do not use
  // may be empty, none of them may run, and the copy still does.
  const bool some_run = std::all_of(block.iter_vars.begin(), block.iter_vars.end(), [&](const IterVar& iter) {
    return fresh.count(iter->var) || analyzer.can_prove(iter->dom.extent > 0);
  });
  for (size_t d = 0; d < at.size() && !some_run; ++d)
    if (!analyzer.can_prove(at[d] >= 0) || !analyzer.can_prove(at[d] < buffer->shape[d]))
      return problem(codes::region, fmt::format("could not show that its index {} is always inside the buffer", d));

  // The statement of the scope that holds the block: all of the loops are in it.
  size_t top = path.size() - 1;
  while (top > 0 && !path[top - 1].is<Block>()) --top;
  if (path[top].is<SeqStmt>()) ++top;
  const Stmt around = path[top];
  // The copy runs before (or after) all of the loops, and finds its elements by what memory holds there.
  std::vector<Buffer> finding;
  for (const Expr& index : *indices)
    for (const Buffer& found : buffers_read(make<Evaluate>(index))) finding.push_back(found);
  for (const Access& access : accesses(around)) {
    if (access.writes && std::find(finding.begin(), finding.end(), access.buffer) != finding.end())
      return problem(codes::dependence,
                     fmt::format("its indices read '{}', which is written in the same loops", access.buffer->name));
    if (access.buffer != buffer) continue;
    if (access.opaque) return problem(codes::region, "its address is taken");
    if (access.block != &block && (which.writes || access.writes))
      return problem(codes::region, fmt::format("{} touches it in the same loops",
                                                access.block ? name_of(*access.block) : "a statement outside blocks"));
  }
  if (const auto why = undecided_above(path)) return problem(codes::region, "it is " + *why);
  if (!runs_whole_domain(realized, loops_above(path)))
    return problem(codes::region, "could not show that every instance of the block runs, once");
  if (which.writes) {
    for (const IterVar& iter : used)
      if (iter->type != IterType::spatial)
        return problem(codes::region,
                       fmt::format("its index uses the axis '{}', which is not spatial", iter->var->name));
    for (const IterVar& iter : block.iter_vars)
      if (iter->type == IterType::spatial && !is_int(iter->dom.extent, 1) && !fresh.count(iter->var))
        return problem(codes::region, fmt::format("several instances along '{}' write one element", iter->var->name));
    const auto map = arith::detect_affine(
        at,
        [&] {
          arith::Domain domain;
          for (const IterVar& iter : iters) domain.emplace_back(iter->var, iter->dom);
          return domain;
        }(),
        Expr(), analyzer);
    if (!map.ok() || !map->injective)
      return problem(codes::region, "could not show that different instances write different elements");
    const std::vector<Buffer> read = buffers_read(block.body);
    if (std::find(read.begin(), read.end(), buffer) != read.end() &&
        (!block.init || !is_reduction(block) || runs_init(realized, loops_above(path)) != true))
      return problem(codes::region, "the block reads it before it writes it");
  }

  const Buffer reindexed = with(*buffer, [&](BufferNode& copy) {
    copy.name += how.suffix;
    copy.shape = shape;
    copy.scope = how.scope;
    copy.data = buffer->data ? var(copy.name, buffer->data->dtype) : Var();
    copy.strides.clear();
    copy.elem_offset = Expr();
    copy.axis_separators.clear();
  });
  if (support::flip(reindex_reverses_variables)) {
    std::vector<Expr> backwards(at.rbegin(), at.rend());
    for (size_t d = 0; d < at.size(); ++d)
      if (same(buffer->shape[d], buffer->shape[at.size() - 1 - d])) at[d] = backwards[d];
  }
  Id next = program.next;
  const Id created = next++;
  const Stmt store = which.writes ? make<BufferStore>(buffer, load(reindexed, theirs), at, Expr())
                                  : make<BufferStore>(reindexed, load(buffer, at), theirs, Expr());
  const Ref<Block> copy = with_regions(make<Block>(iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                                   std::vector<BufferRegion>{}, std::vector<BufferRegion>{},
                                                   buffer->name + "_reindex", Stmt{}, store, Attributes(), created));
  const Path where(path.begin(), path.begin() + static_cast<ptrdiff_t>(top));
  const Stmt nest = nest_over(copy, domains, domains, where, false, next);

  Reindexed rewrite(buffer, reindexed, own);
  const Ref<Block> changed = with_regions(with(block, [&](Block& b) {
    b.body = rewrite(block.body);
    if (block.init) b.init = rewrite(block.init);
  }));
  const Stmt run = realize(realized.iter_values, realized.predicate, changed);
  const Stmt inside = replace(around, path.back(), run);
  Stmt body = replace(program.function->body, around, which.writes ? seq({inside, nest}) : seq({nest, inside}));
  body = with_allocation(body, *path_to(body, scope->block->id).back().as<BlockRealize>(), reindexed);
  const Function after = with_body(program.function, body);
  if (auto refused = refuse_parallel_above(program, after, path, "reindex a buffer")) return *std::move(refused);
  return edited(program, after, next, {created});
}

}  // namespace

Result<Edit> reindex(const Program& program, Id block, BufferIndex buffer) {
  return through(program, block, buffer, {.suffix = "_reindex"});
}

Result<Edit> reindex_cache(const Program& program, Id block, BufferIndex buffer, const std::string& scope,
                           const IndexMap& map) {
  return through(program, block, buffer, {.scope = scope, .suffix = "_" + scope, .map = &map});
}

}  // namespace lathe::schedule::primitives
