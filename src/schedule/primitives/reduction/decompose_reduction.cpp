#include "ir/conditions.h"
#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(decompose_drops_init, "schedule_test", "decompose_reduction: no block sets the initial value");

namespace {

// A reduction, and the loops around it: from the one before which its init goes down to the block, and those above.
class Decomposition {
 public:
  Decomposition(const Program& program, Path path, std::vector<const For*> above, std::vector<const For*> inside)
      : program_(program),
        path_(std::move(path)),
        realized_(*path_.back().as<BlockRealize>()),
        block_(*realized_.block),
        above_(std::move(above)),
        inside_(std::move(inside)) {}

  Diagnostic problem(const std::string& why) const {
    return refuse(codes::dependence, fmt::format("cannot decompose {}: {}", name_of(block_), why));
  }

  // Whether the init may run before the loop, once for each element.
  Status check() const {
    if (const auto why = undecided_above(path_, inside_[0])) return problem(fmt::format("it is {}", *why));
    for (size_t i = 0; i < block_.iter_vars.size(); ++i) {
      if (block_.iter_vars[i]->type == IterType::spatial) continue;
      for (const For* loop : above_)
        if (program_.proves && !is_int(loop->extent, 1) && uses_var(realized_.iter_values[i], loop->loop_var))
          return problem(fmt::format("{}, which its reduce axis '{}' needs, is outside {}", name_of(*loop),
                                     block_.iter_vars[i]->var->name, name_of(*inside_[0])));
    }
    TRY(check_order());
    if (!program_.proves) return support::success();
    if (!updates_own_element(block_) && !accumulates_by_intrin(block_))
      return problem("it reads other elements than the one that it writes");
    if (const Conflict conflict = instances_that_meet(*program_.function, path_, inside_[0])) {
      Diagnostic refused = problem("instances with other spatial variables may share an element");
      conflict.explain(refused);
      return refused;
    }
    return support::success();
  }

  // The init in loops of its own, the first id for the block.
  Result<Stmt> init_nest(Id& next) const {
    VarMap loop_vars;
    const std::vector<const For*> needed = TRY(loops_of_init(loop_vars));
    std::vector<IterVar> iters;
    std::vector<Expr> values;
    VarMap iter_vars;
    for (size_t i = 0; i < block_.iter_vars.size(); ++i) {
      const IterVar& iter = block_.iter_vars[i];
      if (iter->type != IterType::spatial) continue;
      const Var fresh = var(iter->var->name);
      iter_vars[iter->var] = fresh;
      iters.push_back(with(*iter, [&](IterVarNode& copy) { copy.var = fresh; }));
      values.push_back(substitute(realized_.iter_values[i], loop_vars));
    }
    const Id id = next++;
    const Ref<Block> init =
        block_with_regions(iters, block_.name + "_init", Stmt{}, substitute(block_.init, iter_vars), id);
    return copied_nest(needed, loop_vars, realize(values, predicate_of_init(loop_vars), init), next);
  }

  // The loop with the reduction that adds to what is there.
  Stmt rest() const {
    const Ref<Block> update = with(block_, [&](Block& copy) {
      copy.name += "_update";
      copy.init = Stmt();
      // An intrinsic's block keeps the regions that it has: without an init it reads what it adds to.
      if (accumulates_by_intrin(block_)) copy.reads.insert(copy.reads.end(), copy.writes.begin(), copy.writes.end());
    });
    const Stmt changed = with(realized_, [&](BlockRealize& copy) { copy.block = with_regions(update); });
    return replace(Stmt(inside_[0]), path_.back(), changed);
  }

 private:
  // The init goes past what else the loop does; the rest of the block stays where it is.
  Status check_order() const {
    for (const Buffer& buffer : buffers_written(block_.init))
      if (auto refused = refuse_touched_before(program_, *inside_[0], buffer, block_, "decompose"))
        return *std::move(refused);
    for (const Buffer& buffer : buffers_read(block_.init))
      if (const std::vector<Buffer> written = buffers_written(Stmt(inside_[0]));
          program_.proves && std::find(written.begin(), written.end(), buffer) != written.end())
        return problem(fmt::format("{} writes '{}', which its init reads", name_of(*inside_[0]), buffer->name));
    return support::success();
  }

  // Those that its spatial variables need, which get new variables.
  Result<std::vector<const For*>> loops_of_init(VarMap& loop_vars) const {
    std::vector<const For*> needed;
    for (const For* loop : inside_) {
      bool used = false;
      for (size_t i = 0; i < block_.iter_vars.size(); ++i)
        used = used ||
               (block_.iter_vars[i]->type == IterType::spatial && uses_var(realized_.iter_values[i], loop->loop_var));
      if (!used && program_.proves && is_int(loop->extent, 0))
        return problem(fmt::format("{} never runs, and neither does its init", name_of(*loop)));
      if (!used) continue;
      needed.push_back(loop);
      loop_vars[loop->loop_var] = var(loop->loop_var->name + "_init");
    }
    return needed;
  }

  // The conjuncts of the block's that speak of the init's loops only.
  Expr predicate_of_init(const VarMap& loop_vars) const {
    Expr predicate = boolean(true);
    for (const Expr& part : conjuncts(realized_.predicate)) {
      const bool other = std::any_of(inside_.begin(), inside_.end(), [&](const For* loop) {
        return !loop_vars.count(loop->loop_var) && uses_var(part, loop->loop_var);
      });
      if (other) continue;
      const Expr mine = substitute(part, loop_vars);
      predicate = is_int(predicate, 1) ? mine : logical_and(predicate, mine);
    }
    return predicate;
  }

  const Program& program_;
  const Path path_;
  const BlockRealize& realized_;
  const Block& block_;
  const std::vector<const For*> above_, inside_;
};

}  // namespace

Result<Edit> decompose_reduction(const Program& program, Id block_id, Id loop_id) {
  const Path path = TRY(block_path(program, block_id));
  const auto& realized = *path.back().as<BlockRealize>();
  std::vector<const For*> above, inside;
  for (const For* loop : loops_above(path)) (inside.empty() && loop->id != loop_id ? above : inside).push_back(loop);
  const Decomposition decomposition(program, path, above, inside);
  if (!realized.block->init) return decomposition.problem("it has no init");
  if (program.proves && runs_init(realized, loops_above(path)) != true)
    return decomposition.problem("its loops do not start where its reduce axes do, so its init does not run there");
  if (inside.empty()) {
    const For* loop = find_loop(*program.function, loop_id);
    return decomposition.problem(fmt::format("{} is not around it", loop ? name_of(*loop) : std::string("the loop")));
  }
  TRY(decomposition.check());
  Id next = program.next;
  const Id init_id = next;
  const Stmt nest = TRY(decomposition.init_nest(next)), rest = decomposition.rest();
  const bool dropped = support::flip(decompose_drops_init);
  return edit(program, Stmt(inside[0]), dropped ? rest : seq({nest, rest}), next,
              dropped ? std::vector<Id>{block_id} : std::vector<Id>{init_id});
}

}  // namespace lathe::schedule::primitives
