// blockize: a nest around one block becomes a block of its own, so that it can be moved, replaced and read as one.
#include "arith/affine.h"
#include "ir/conditions.h"
#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(blockize_drops_predicate, "schedule_test", "blockize: the inner block runs where its predicate forbids it");

namespace {

struct Parts {
  std::vector<const For*> inner;  // from the given loop down
  const BlockRealize* realized = nullptr;
};

// Which kinds of the block's variables a loop drives.
struct Drives {
  bool spatial = false, reduce = false, other = false;  // reduce: all that are not spatial
  IterType type = IterType::spatial;                    // of the variable that the loop gives a block around
};

Drives drives(const For& loop, const Parts& parts) {
  Drives found;
  const Block& block = *parts.realized->block;
  for (size_t i = 0; i < block.iter_vars.size(); ++i)
    if (uses_var(parts.realized->iter_values[i], loop.loop_var)) {
      (block.iter_vars[i]->type == IterType::spatial ? found.spatial : found.reduce) = true;
      if (block.iter_vars[i]->type != IterType::spatial) found.type = block.iter_vars[i]->type;
    }
  found.other = uses_var(parts.realized->predicate, loop.loop_var);
  for (const For* inner : parts.inner)
    found.other = found.other || uses_var(inner->min, loop.loop_var) || uses_var(inner->extent, loop.loop_var);
  return found;
}

Expr all_of(const std::vector<Expr>& conditions) {
  Expr result = boolean(true);
  for (const Expr& condition : conditions) result = is_int(result, 1) ? condition : logical_and(result, condition);
  return result;
}

// Why the init may not run for all of the inner instances before the first of their updates.
std::optional<std::string> refuse_init(const Program& program, const Path& path, const Parts& parts) {
  const Block& block = *parts.realized->block;
  std::vector<const For*> loops = loops_above(path);
  loops.insert(loops.end(), parts.inner.begin(), parts.inner.end());
  if (!is_reduction(block)) return "it is no reduction";
  if (runs_init(*parts.realized, loops) != true) return "its loops do not start where its reduce axes do";
  // Each value of the reduce variables once, so that the first is met once.
  arith::Analyzer analyzer;
  arith::Domain domain;
  std::vector<Expr> values;
  for (const For* loop : loops)
    if (drives(*loop, parts).reduce) domain.emplace_back(loop->loop_var, Range{loop->min, loop->extent});
  for (size_t i = 0; i < block.iter_vars.size(); ++i)
    if (block.iter_vars[i]->type != IterType::spatial) values.push_back(parts.realized->iter_values[i]);
  const auto map = arith::detect_affine(values, domain, Expr(), analyzer);
  if (!map.ok() || !map->injective) return "could not show that it meets each value of its reduce axes once";
  for (const For* loop : parts.inner) {
    const Drives driven = drives(*loop, parts);
    if (driven.spatial && driven.reduce) return fmt::format("{} drives both spatial and reduce axes", name_of(*loop));
    for (const Buffer& buffer : buffers_written(block.body))
      if (!driven.reduce && !disjoint_across(*loop, buffer, program.proofs))
        return fmt::format("different iterations of {} may share elements of '{}'", name_of(*loop), buffer->name);
  }
  return std::nullopt;
}

// The init of the inner instances of one outer instance: over the inner loops that drive spatial variables.
Stmt init_nest(const Parts& parts, const VarMap& outer, const std::vector<Expr>& conditions, Id& next) {
  const Block& block = *parts.realized->block;
  VarMap loops = outer, variables;
  std::vector<std::pair<const For*, Var>> kept;
  for (const For* loop : parts.inner) {
    if (drives(*loop, parts).reduce) {
      loops[loop->loop_var] = substitute(loop->min, outer);
      continue;
    }
    const Var v = var(loop->loop_var->name + "_init");
    loops[loop->loop_var] = v;
    kept.emplace_back(loop, v);
  }
  std::vector<IterVar> iters;
  std::vector<Expr> values, here;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVar& iter = block.iter_vars[i];
    if (iter->type != IterType::spatial) {
      variables[iter->var] = iter->dom.min;
      continue;
    }
    const Var v = var(iter->var->name);
    variables[iter->var] = v;
    iters.push_back(with(*iter, [&](IterVarNode& copy) { copy.var = v; }));
    values.push_back(substitute(parts.realized->iter_values[i], loops));
  }
  for (const Expr& condition : conditions) here.push_back(substitute(condition, loops));
  const Ref<Block> init = make<Block>(iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                      std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, block.name + "_init",
                                      Stmt{}, substitute(block.init, variables), Attributes(), next++);
  Stmt nest = realize(std::move(values), all_of(here), with_regions(init));
  for (size_t i = kept.size(); i-- > 0;) {
    const auto& [loop, v] = kept[i];
    nest = make<For>(v, substitute(loop->min, loops), substitute(loop->extent, loops), ForKind::serial, nest, IterVar(),
                     Attributes(), next++);
  }
  return nest;
}

}  // namespace

Result<Edit> blockize(const Program& program, Id id, bool preserve_unit_iters) {
  const Path path = path_to(program.function->body, id);
  if (path.empty()) return refuse(codes::gone, "blockize: the loop is not in the function");
  const auto* whole = path.back().as<BlockRealize>();
  const std::string name = whole ? name_of(*whole->block) : name_of(*path.back().as<For>());
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot make a block of {}: {}", name, why));
  };
  Parts parts;
  Stmt at = path.back();
  for (; at.is<For>(); at = at.as<For>()->body) parts.inner.push_back(at.as<For>());
  parts.realized = at.as<BlockRealize>();
  if (!parts.realized) return problem(codes::not_nested, "it is no nest around one block");
  const Block& block = *parts.realized->block;

  // Each loop outside that the inside depends on gives the new block a variable.
  VarMap outer;
  std::vector<IterVar> iters;
  std::vector<Expr> values;
  bool reduces = false;
  const std::vector<const For*> above = loops_above(path);
  for (const For* around : above) {
    const Drives driven = drives(*around, parts);
    if (!driven.spatial && !driven.reduce && !driven.other) continue;
    if (driven.spatial && driven.reduce)
      return problem(codes::dependence,
                     fmt::format("{} drives both spatial and reduce axes of {}", name_of(*around), name_of(block)));
    for (const For* other : above)
      if (uses_var(around->min, other->loop_var) || uses_var(around->extent, other->loop_var))
        return problem(codes::not_nested,
                       fmt::format("the extent of {} depends on {}", name_of(*around), name_of(*other)));
    if (!preserve_unit_iters && is_int(around->extent, 1)) {
      outer[around->loop_var] = around->min;
      continue;
    }
    const Var v = var("v" + around->loop_var->name);
    outer[around->loop_var] = v;
    iters.push_back(make<IterVarNode>(Range{around->min, around->extent}, v, driven.type));
    values.push_back(around->loop_var);
    reduces = reduces || driven.reduce;
  }
  std::vector<Expr> outside, inside;
  for (const Expr& condition : conjuncts(parts.realized->predicate)) {
    const bool moves = std::any_of(parts.inner.begin(), parts.inner.end(),
                                   [&](const For* inner) { return uses_var(condition, inner->loop_var); });
    (moves ? inside : outside).push_back(condition);
  }
  if (support::flip(blockize_drops_predicate)) inside.clear();

  Id next = program.next;
  const Id created = next++;
  Stmt init;
  Ref<Block> update(&block);
  if (block.init && reduces) {
    if (const auto why = refuse_init(program, path, parts))
      return problem(codes::dependence, fmt::format("the init of {} cannot be taken out: {}", name_of(block), *why));
    init = init_nest(parts, outer, inside, next);
    update = with_regions(with(block, [](Block& copy) { copy.init = Stmt(); }));
  }
  std::vector<Expr> inner_values;
  for (const Expr& value : parts.realized->iter_values) inner_values.push_back(substitute(value, outer));
  const Stmt changed = realize(std::move(inner_values), substitute(all_of(inside), outer), update);
  Stmt body = changed;
  for (size_t i = parts.inner.size(); i-- > 0;)
    body = with(*parts.inner[i], [&](For& copy) {
      copy.min = substitute(copy.min, outer);
      copy.extent = substitute(copy.extent, outer);
      copy.body = body;
    });
  const Ref<Block> made =
      make<Block>(iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
                  std::vector<BufferRegion>{}, block.name + "_o", init, body, Attributes(), created);
  return edit(program, path.back(), realize(values, all_of(outside), with_regions(made)), next, {created});
}

}  // namespace lathe::schedule::primitives
