#include "ir/conditions.h"
#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(decompose_drops_init, "schedule_test", "decompose_reduction: no block sets the initial value");

Result<Edit> decompose_reduction(const Program& program, Id block_id, Id loop_id) {
  const Path path = TRY(block_path(program, block_id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Ref<Block> block = realized.block;
  const auto problem = [&](std::string why) {
    return refuse(codes::dependence, fmt::format("cannot decompose {}: {}", name_of(*block), why));
  };
  if (!block->init) return problem("it has no init");
  if (program.proves && runs_init(realized, loops_above(path)) != true)
    return problem("its loops do not start where its reduce axes do, so its init does not run there");
  // The loops from the given one down to the block, and those above it that belong to the same scope.
  std::vector<const For*> above, inside;
  for (const For* loop : loops_above(path)) (inside.empty() && loop->id != loop_id ? above : inside).push_back(loop);
  if (inside.empty()) {
    const For* loop = find_loop(*program.function, loop_id);
    return problem(fmt::format("{} is not around it", loop ? name_of(*loop) : std::string("the loop")));
  }
  if (const auto why = undecided_above(path, inside[0])) return problem(fmt::format("it is {}", *why));
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    if (block->iter_vars[i]->type == IterType::spatial) continue;
    for (const For* loop : above)
      if (program.proves && !is_int(loop->extent, 1) && uses_var(realized.iter_values[i], loop->loop_var))
        return problem(fmt::format("{}, which its reduce axis '{}' needs, is outside {}", name_of(*loop),
                                   block->iter_vars[i]->var->name, name_of(*inside[0])));
  }
  // The init goes past what else the loop does; the rest of the block stays where it is.
  for (const Buffer& buffer : buffers_written(block->init))
    if (auto refused = refuse_touched_before(program, *inside[0], buffer, *block, "decompose"))
      return *std::move(refused);
  for (const Buffer& buffer : buffers_read(block->init))
    if (const std::vector<Buffer> written = buffers_written(Stmt(inside[0]));
        program.proves && std::find(written.begin(), written.end(), buffer) != written.end())
      return problem(fmt::format("{} writes '{}', which its init reads", name_of(*inside[0]), buffer->name));

  if (program.proves) {
    if (!updates_own_element(*block) && !accumulates_by_intrin(*block))
      return problem("it reads other elements than the one that it writes");
    if (const Conflict conflict = instances_that_meet(*program.function, path, inside[0])) {
      Diagnostic refused = problem("instances with other spatial variables may share an element");
      conflict.explain(refused);
      return refused;
    }
  }

  // The init's own loops: copies of those that its spatial variables (or its predicate's spatial part) need.
  Id next = program.next;
  VarMap loop_vars, iter_vars;
  std::vector<const For*> needed;
  for (const For* loop : inside) {
    bool used = false;
    for (size_t i = 0; i < block->iter_vars.size(); ++i)
      used =
          used || (block->iter_vars[i]->type == IterType::spatial && uses_var(realized.iter_values[i], loop->loop_var));
    if (!used && program.proves && is_int(loop->extent, 0))
      return problem(fmt::format("{} never runs, and neither does its init", name_of(*loop)));
    if (!used) continue;
    needed.push_back(loop);
    loop_vars[loop->loop_var] = var(loop->loop_var->name + "_init");
  }
  std::vector<IterVar> init_iters;
  std::vector<Expr> values;
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    const IterVar& iter = block->iter_vars[i];
    if (iter->type != IterType::spatial) continue;
    const Var fresh = var(iter->var->name);
    iter_vars[iter->var] = fresh;
    init_iters.push_back(with(*iter, [&](IterVarNode& copy) { copy.var = fresh; }));
    values.push_back(substitute(realized.iter_values[i], loop_vars));
  }
  // Of a predicate, the conjuncts that speak of the init's loops only.
  Expr predicate = boolean(true);
  for (const Expr& part : conjuncts(realized.predicate)) {
    const bool other = std::any_of(inside.begin(), inside.end(), [&](const For* loop) {
      return !loop_vars.count(loop->loop_var) && uses_var(part, loop->loop_var);
    });
    if (other) continue;
    const Expr mine = substitute(part, loop_vars);
    predicate = is_int(predicate, 1) ? mine : logical_and(predicate, mine);
  }
  const Id init_id = next++;
  Ref<Block> init = make<Block>(init_iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, block->name + "_init", Stmt{},
                                substitute(block->init, iter_vars), Attributes(), init_id);
  const Stmt nest = copied_nest(needed, loop_vars, realize(values, predicate, with_regions(init)), next);

  Ref<Block> update = with(*block, [&](Block& copy) {
    copy.name += "_update";
    copy.init = Stmt();
    // An intrinsic's block keeps the regions that it has: without an init it reads what it adds to.
    if (accumulates_by_intrin(*block)) copy.reads.insert(copy.reads.end(), copy.writes.begin(), copy.writes.end());
  });
  const Stmt changed = with(realized, [&](BlockRealize& copy) { copy.block = with_regions(update); });
  const Stmt loop(inside[0]);
  const Stmt rest = replace(loop, path.back(), changed);
  const bool dropped = support::flip(decompose_drops_init);
  return edit(program, loop, dropped ? rest : seq({nest, rest}), next,
              dropped ? std::vector<Id>{block_id} : std::vector<Id>{init_id});
}

}  // namespace lathe::schedule::primitives
