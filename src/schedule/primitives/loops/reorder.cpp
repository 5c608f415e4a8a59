#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/rewrite.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(reorder_loses_extent, "schedule_test", "reorder: the innermost loop keeps the outermost's extent");

namespace {

// Whether `e` is smallest where every loop is at its start, whatever the order of the loops: a sum of digits of loops
// with positive weights.
bool ascending(const Expr& e) {
  if (e.is<VarNode>() || as_int(e)) return true;
  if (const auto* quotient = e.as<FloorDiv>()) return ascending(quotient->a);
  if (const auto* remainder = e.as<FloorMod>()) return remainder->a.is<VarNode>() || remainder->a.is<FloorDiv>();
  const Linear sum = linear(e);
  if (sum.terms.size() == 1 && sum.terms[0].coefficient == 1 && sum.constant == 0) return e.is<Mul>();
  return std::all_of(sum.terms.begin(), sum.terms.end(),
                     [](const Linear::Term& term) { return term.coefficient > 0 && ascending(term.atom); });
}

// The first instance of a reduction must stay the one that runs its init.
std::optional<Diagnostic> refuse_init(const For& outermost) {
  for (const Ref<BlockRealize>& realize : outer_blocks(outermost.body)) {
    if (!realize->block->init) continue;
    for (size_t i = 0; i < realize->iter_values.size(); ++i)
      if (realize->block->iter_vars[i]->type != IterType::spatial && !ascending(realize->iter_values[i]))
        return refuse(codes::dependence,
                      fmt::format("cannot reorder the loops of {}: could not show that its init still comes first",
                                  name_of(*realize->block)));
  }
  return std::nullopt;
}

// Iterations that depend on one another may still come in the same order as before: in a nest of serial loops.
std::optional<Diagnostic> refuse_reversed(const Program& program, const std::vector<const For*>& chain,
                                          const std::vector<const For*>& order, const Carried& carried) {
  Diagnostic problem = refuse(
      codes::dependence, fmt::format("cannot reorder the nest of {}: {}", name_of(*chain.front()), carried.reason));
  const bool serial = std::all_of(chain.begin(), chain.end(), [](const For* loop) {
    return loop->kind == ForKind::serial || loop->kind == ForKind::unrolled;
  });
  if (!carried.buffer || !serial) {
    carried.conflict.explain(problem);
    return problem;
  }
  const Conflict conflict = reordered_by(chain, *program.function, [&](const VarMap& first, const VarMap& second) {
    return comes_before(order, second, first);
  });
  if (!conflict) return std::nullopt;
  if (conflict.outcome == arith::PointSearch::found)
    problem.message = fmt::format(
        "cannot reorder the nest of {}: two of its instances would touch an element of '{}' in "
        "the other order",
        name_of(*chain.front()), conflict.first.access.buffer->name);
  else
    problem.message = fmt::format("cannot reorder the nest of {}: {}", name_of(*chain.front()),
                                  conflict.reason(name_of(*chain.front()), carried.buffer));
  conflict.explain(problem);
  return problem;
}

}  // namespace

Result<Edit> reorder(const Program& program, const std::vector<Id>& ids) {
  // The chain from the outermost to the innermost of the loops, each the only statement of the one above.
  std::vector<Path> paths;
  for (const Id id : ids) {
    for (const Path& earlier : paths)
      if (earlier.back().as<For>()->id == id)
        return refuse(codes::bad_argument,
                      fmt::format("cannot reorder: {} is given twice", name_of(*earlier.back().as<For>())));
    paths.push_back(TRY(serial_loop(program, id, "reorder")));
  }
  const auto shorter = [](const Path& a, const Path& b) { return a.size() < b.size(); };
  const Path& top = *std::min_element(paths.begin(), paths.end(), shorter);
  const Path& bottom = *std::max_element(paths.begin(), paths.end(), shorter);
  std::vector<const For*> chain;
  for (size_t i = top.size() - 1; i < bottom.size(); ++i) {
    const For* loop = bottom[i].as<For>();
    if (!loop || bottom[top.size() - 1] != top.back())
      return refuse(codes::not_nested,
                    fmt::format("cannot reorder {} and {}: they are not one nest in which each loop is the only "
                                "statement of the one above",
                                name_of(*top.back().as<For>()), name_of(*bottom.back().as<For>())));
    chain.push_back(loop);
  }
  std::vector<const For*> wanted;
  for (const Path& path : paths) {
    const For* loop = path.back().as<For>();
    if (std::find(chain.begin(), chain.end(), loop) == chain.end())
      return refuse(codes::not_nested, fmt::format("cannot reorder {} and {}: neither is inside the other",
                                                   name_of(*loop), name_of(*chain.back())));
    wanted.push_back(loop);
  }
  // The given loops fill, in their new order, the places they had.
  std::vector<const For*> order;
  size_t taken = 0;
  for (const For* loop : chain)
    order.push_back(std::find(wanted.begin(), wanted.end(), loop) == wanted.end() ? loop : wanted[taken++]);
  if (order == chain) return edited(program, program.function, program.next);

  for (size_t i = 0; i < order.size(); ++i)
    for (size_t j = i; j < order.size(); ++j)
      if (uses_var(order[i]->extent, order[j]->loop_var) || uses_var(order[i]->min, order[j]->loop_var))
        return refuse(codes::not_nested, fmt::format("cannot reorder: the extent of {} depends on {}, which would be "
                                                     "inside it",
                                                     name_of(*order[i]), name_of(*order[j])));
  bool reduces = false;
  std::vector<Carried> carried;
  for (size_t i = 0; program.proves && i < chain.size(); ++i) {
    if (chain[i] == order[i] && std::equal(chain.begin(), chain.begin() + static_cast<ptrdiff_t>(i), order.begin()))
      continue;
    for (Carried& found : carried_by(*chain[i], *program.function, program.proofs)) {
      reduces = true;
      if (!found.is_reduction()) carried.push_back(std::move(found));
    }
  }
  if (!carried.empty())
    if (auto problem = refuse_reversed(program, chain, order, carried[0])) return *std::move(problem);
  if (reduces)
    if (auto problem = refuse_init(*chain.front())) return *std::move(problem);

  Stmt body = chain.back()->body;
  if (support::flip(reorder_loses_extent))
    body = with(*order.back(), [&](For& copy) {
      copy.body = body;
      copy.extent = order.front()->extent;
    });
  else
    body = with(*order.back(), [&](For& copy) { copy.body = body; });
  for (size_t i = order.size() - 1; i-- > 0;) body = with(*order[i], [&](For& copy) { copy.body = body; });
  return edit(program, top.back(), body, program.next);
}

}  // namespace lathe::schedule::primitives
