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

// What of a buffer a block touches, in variables of its own and in those of a copy of what it touches.
struct Touched {
  std::vector<IterVar> used;             // the block's variables that the indices are made of, in its order
  std::vector<IterVar> iters;            // of the copy: these, spatial
  VarMap copied;                         // from the one to the other
  std::vector<Expr> at;                  // the element, in the copy's variables
  std::vector<Expr> own, theirs, shape;  // where it lies in the reindexed buffer, and the extents of that
};

// The block that is reindexed, and what is said where it cannot be.
struct Reindexing {
  const Path& path;
  const BlockRealize& realized;
  const Block& block;
  const Buffer& buffer;
  bool writes;

  support::Diagnostic refused(const support::Code& code, const std::string& why) const {
    return refuse(code, fmt::format("cannot reindex '{}' of {}: {}", buffer->name, name_of(block), why));
  }
};

Result<Touched> touched(const Reindexing& of, const std::vector<Expr>& indices, const IndexMap* map) {
  Touched found;
  for (const IterVar& iter : of.block.iter_vars) {
    if (std::none_of(indices.begin(), indices.end(), [&](const Expr& e) { return uses_var(e, iter->var); })) continue;
    if (!is_int(iter->dom.min, 0))
      return of.refused(codes::region, fmt::format("its axis '{}' does not start at 0", iter->var->name));
    const Var v = var(iter->var->name);
    found.used.push_back(iter);
    found.copied[iter->var] = v;
    found.iters.push_back(make<IterVarNode>(iter->dom, v, IterType::spatial));
    found.own.push_back(iter->var);
    found.theirs.push_back(v);
    found.shape.push_back(iter->dom.extent);
  }
  if (map) {
    const IndexMap used_map = TRY(restricted(*map, of.block, found.used));
    found.own = used_map(found.own);
    found.shape = TRY(image_of(used_map, found.shape, std::vector<Expr>(found.own.size(), int64(0)))).extents;
    found.theirs = used_map(found.theirs);
  }
  for (const Expr& index : indices) found.at.push_back(substitute(index, found.copied));
  return found;
}

// The copy touches what the block's instances do, elements of the buffer. Where an axis that the indices do not use may
// be empty, none of them may run, and the copy still does.
Status copy_stays_inside(const Reindexing& of, const Touched& what, arith::Analyzer& analyzer) {
  const std::vector<IterVar>& axes = of.block.iter_vars;
  const bool some_run = std::all_of(axes.begin(), axes.end(), [&](const IterVar& iter) {
    return what.copied.count(iter->var) || analyzer.can_prove(iter->dom.extent > 0);
  });
  for (size_t d = 0; d < what.at.size() && !some_run; ++d)
    if (!analyzer.can_prove(what.at[d] >= 0) || !analyzer.can_prove(what.at[d] < of.buffer->shape[d]))
      return of.refused(codes::region, fmt::format("could not show that its index {} is always inside the buffer", d));
  return support::success();
}

// The copy runs before (or after) all of the loops in `around`, and finds its elements by what memory holds there.
Status may_run_outside(const Reindexing& of, const std::vector<Expr>& indices, const Stmt& around) {
  std::vector<Buffer> finding;
  for (const Expr& index : indices)
    for (const Buffer& found : buffers_read(make<Evaluate>(index))) finding.push_back(found);
  for (const Access& access : accesses(around)) {
    if (access.writes && std::find(finding.begin(), finding.end(), access.buffer) != finding.end())
      return of.refused(codes::dependence,
                        fmt::format("its indices read '{}', which is written in the same loops", access.buffer->name));
    if (access.buffer != of.buffer) continue;
    if (access.opaque) return of.refused(codes::region, "its address is taken");
    if (access.block != &of.block && (of.writes || access.writes))
      return of.refused(codes::region,
                        fmt::format("{} touches it in the same loops",
                                    access.block ? name_of(*access.block) : "a statement outside blocks"));
  }
  if (const auto why = undecided_above(of.path)) return of.refused(codes::region, "it is " + *why);
  if (!runs_whole_domain(of.realized, loops_above(of.path)))
    return of.refused(codes::region, "could not show that every instance of the block runs, once");
  return support::success();
}

// Each instance of a block that writes the buffer writes an element of its own, and reads none before.
Status writes_each_once(const Reindexing& of, const Touched& what, arith::Analyzer& analyzer) {
  for (const IterVar& iter : what.used)
    if (iter->type != IterType::spatial)
      return of.refused(codes::region,
                        fmt::format("its index uses the axis '{}', which is not spatial", iter->var->name));
  for (const IterVar& iter : of.block.iter_vars)
    if (iter->type == IterType::spatial && !is_int(iter->dom.extent, 1) && !what.copied.count(iter->var))
      return of.refused(codes::region, fmt::format("several instances along '{}' write one element", iter->var->name));
  arith::Domain domain;
  for (const IterVar& iter : what.iters) domain.emplace_back(iter->var, iter->dom);
  const auto map = arith::detect_affine(what.at, domain, Expr(), analyzer);
  if (!map.ok() || !map->injective)
    return of.refused(codes::region, "could not show that different instances write different elements");
  const std::vector<Buffer> read = buffers_read(of.block.body);
  if (std::find(read.begin(), read.end(), of.buffer) != read.end() &&
      (!of.block.init || !is_reduction(of.block) || runs_init(of.realized, loops_above(of.path)) != true))
    return of.refused(codes::region, "the block reads it before it writes it");
  return support::success();
}

Buffer reindexed_buffer(const Buffer& buffer, const std::vector<Expr>& shape, const Through& how) {
  return with(*buffer, [&](BufferNode& copy) {
    copy.name += how.suffix;
    copy.shape = shape;
    copy.scope = how.scope;
    copy.data = buffer->data ? var(copy.name, buffer->data->dtype) : Var();
    copy.strides.clear();
    copy.elem_offset = Expr();
    copy.axis_separators.clear();
  });
}

// The block that copies from the buffer, or where that is written, to it.
Ref<Block> copying_block(const Reindexing& of, const Touched& what, const Buffer& reindexed, Id id) {
  std::vector<Expr> at = what.at;
  if (support::flip(reindex_reverses_variables)) {
    const std::vector<Expr> backwards(at.rbegin(), at.rend());
    for (size_t d = 0; d < at.size(); ++d)
      if (same(of.buffer->shape[d], of.buffer->shape[at.size() - 1 - d])) at[d] = backwards[d];
  }
  const Stmt store = of.writes ? make<BufferStore>(of.buffer, load(reindexed, what.theirs), at, Expr())
                               : make<BufferStore>(reindexed, load(of.buffer, at), what.theirs, Expr());
  return block_with_regions(what.iters, of.buffer->name + "_reindex", Stmt{}, store, id);
}

Result<Edit> through(const Program& program, Id id, BufferIndex which, const Through& how) {
  const Path path = TRY(block_path(program, id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  const Buffer buffer = TRY(buffer_of(path, which));
  const Reindexing of{path, realized, block, buffer, which.writes};
  const BlockRealize* scope = scope_of(path);
  if (!scope) return of.refused(codes::bad_argument, "it is the root block");
  if (in_init(path)) return of.refused(codes::bad_argument, "the block is in an init");
  const auto indices = common_indices(block, buffer);
  if (!indices) return of.refused(codes::region, "it is touched under a condition, in loops, or at different indices");

  const Touched what = TRY(touched(of, *indices, how.map));
  arith::Analyzer analyzer;
  for (const IterVar& iter : what.iters) analyzer.bind(iter->var, iter->dom);
  TRY(copy_stays_inside(of, what, analyzer));
  // The statement of the scope that holds the block: all of the loops are in it.
  size_t top = path.size() - 1;
  while (top > 0 && !path[top - 1].is<Block>()) --top;
  if (path[top].is<SeqStmt>()) ++top;
  const Stmt around = path[top];
  TRY(may_run_outside(of, *indices, around));
  if (which.writes) TRY(writes_each_once(of, what, analyzer));

  const Buffer reindexed = reindexed_buffer(buffer, what.shape, how);
  Id next = program.next;
  const Id created = next++;
  const Ref<Block> copy = copying_block(of, what, reindexed, created);
  std::vector<Interval> domains;
  for (const IterVar& iter : what.used) domains.push_back({int64(0), Linear(linear(iter->dom.extent - 1)).expr()});
  const Path where(path.begin(), path.begin() + static_cast<ptrdiff_t>(top));
  const Stmt nest = nest_over(copy, domains, domains, where, false, next);

  Reindexed rewrite(buffer, reindexed, what.own);
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
