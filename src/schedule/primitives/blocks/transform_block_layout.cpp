// transform_block_layout: the instances of a block numbered by other variables, in loops of their own.
#include "arith/affine.h"
#include "ir/visit.h"
#include "schedule/index_map.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(transform_block_layout_loses_extent, "schedule_test",
            "transform_block_layout: the last loop is one iteration short");

namespace {

// The instances come in another order: two that touch one element must keep theirs, updates of one result apart.
std::optional<Diagnostic> refuse_other_order(const Program& program, const std::vector<const For*>& loops,
                                             const BlockRealize& realized, const IndexMap& map) {
  if (!program.proves) return std::nullopt;
  std::optional<Carried> obstacle;
  for (const For* loop : loops)
    for (Carried& carried : carried_by(*loop, *program.function, program.proofs))
      if (!carried.is_reduction() && !obstacle) obstacle = std::move(carried);
  if (!obstacle) return std::nullopt;
  Conflict conflict;
  const std::vector<Expr> order = map(realized.iter_values);
  if (obstacle->buffer) {
    conflict = reordered_by(loops, *program.function, [&](const VarMap& first, const VarMap& second) {
      Expr before = boolean(false);
      for (size_t d = order.size(); d-- > 0;) {
        const Expr x = substitute(order[d], second), y = substitute(order[d], first);
        before = logical_or(x < y, logical_and(eq(x, y), before));
      }
      return before;
    });
    if (!conflict) return std::nullopt;
  }
  Diagnostic problem = refuse(codes::dependence, fmt::format("cannot transform the instances of {}: {}",
                                                             name_of(*realized.block), obstacle->reason));
  conflict.explain(problem);
  return problem;
}

}  // namespace

Result<Edit> transform_block_layout(const Program& program, Id id, const IndexMap& map) {
  const Path path = TRY(block_path(program, id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot transform the instances of {}: {}", name_of(block), why));
  };
  const std::vector<const For*> loops = loops_above(path);
  if (loops.empty()) return problem(codes::not_nested, "it is in no loops");
  const Stmt top(loops[0]);
  for (size_t i = 0; i < loops.size(); ++i) {
    const Node* inside = i + 1 < loops.size() ? static_cast<const Node*>(loops[i + 1]) : path.back().get();
    if (loops[i]->body.get() != inside)
      return problem(codes::not_nested, fmt::format("it is not the only statement in {}", name_of(*loops[i])));
    if (loops[i]->kind != ForKind::serial)
      return problem(codes::loop_kind, fmt::format("{} is {}", name_of(*loops[i]), kind_name(loops[i]->kind)));
  }
  if (!block.match_buffers.empty()) return problem(codes::bad_argument, "it has views of buffers");
  std::vector<Expr> extents;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVar& iter = block.iter_vars[i];
    if (!is_int(iter->dom.min, 0))
      return problem(codes::region, fmt::format("its axis '{}' does not start at 0", iter->var->name));
    extents.push_back(iter->dom.extent);
  }
  if (const auto why = undecided_above(path)) return problem(codes::region, "it is " + *why);
  if (!runs_whole_domain(realized, loops))
    return problem(codes::region, "could not show that its loops run every instance, once");
  if (auto refused = refuse_other_order(program, loops, realized, map)) return *std::move(refused);

  std::vector<Var> variables;
  std::vector<Expr> outputs;
  for (size_t d = 0; d < map.to.size(); ++d) {
    variables.push_back(var(fmt::format("v{}", d)));
    outputs.push_back(variables.back());
  }
  const auto image = image_of(map, extents, outputs);
  if (!image.ok()) return problem(codes::bad_argument, image.diagnostics()[0].message);
  if (!image->whole) return problem(codes::bad_argument, fmt::format("index map '{}' leaves gaps", map.text()));
  std::vector<IterVar> iters;
  for (size_t d = 0; d < map.to.size(); ++d) {
    bool spatial = false, reduce = false;
    for (size_t i = 0; i < block.iter_vars.size(); ++i)
      if (uses_var(map.to[d], map.from[i])) (block.iter_vars[i]->type == IterType::spatial ? spatial : reduce) = true;
    if (spatial && reduce)
      return problem(codes::bad_argument,
                     fmt::format("result {} of index map '{}' mixes spatial and reduce axes", d, map.text()));
    iters.push_back(make<IterVarNode>(Range{int64(0), image->extents[d]}, variables[d],
                                      reduce ? IterType::reduce : IterType::spatial));
  }
  // Its init must still be in the first instance: the map takes the start of every axis to the start of every result.
  arith::Analyzer analyzer;
  if (block.init)
    for (const Expr& e : map(std::vector<Expr>(extents.size(), int64(0))))
      if (!is_int(analyzer.simplify(e), 0)) return problem(codes::dependence, "its init would no longer come first");

  VarMap old;
  for (const IterVar& iter : iters) analyzer.bind(iter->var, iter->dom);
  for (size_t i = 0; i < block.iter_vars.size(); ++i)
    old[block.iter_vars[i]->var] = analyzer.simplify(image->preimages[i]);
  Id next = program.next;
  // Digits of what the map joins are its variables again: (v0 * 8 + v1) // 8.
  const auto in_new_variables = [&](const Stmt& body) {
    return rewrite_post_order(substitute(body, old), [&](NodeRef n) -> NodeRef {
      if (const auto* quotient = n.as<FloorDiv>()) return analyzer.simplify(Expr(quotient));
      if (const auto* rest = n.as<FloorMod>()) return analyzer.simplify(Expr(rest));
      return n;
    });
  };
  const Ref<Block> changed = with_regions(with(block, [&](Block& copy) {
    copy.iter_vars = iters;
    copy.body = in_new_variables(block.body);
    if (block.init) copy.init = in_new_variables(block.init);
  }));
  std::vector<Var> new_loops;
  std::vector<Expr> values;
  for (size_t d = 0; d < iters.size(); ++d) {
    new_loops.push_back(var(fmt::format("ax{}", d)));
    values.push_back(new_loops.back());
  }
  Stmt nest = realize(values, boolean(true), changed);
  for (size_t d = iters.size(); d-- > 0;) {
    const bool last = d + 1 == iters.size() && support::flip(transform_block_layout_loses_extent);
    nest = loop_over(new_loops[d], last ? iters[d]->dom.extent - 1 : iters[d]->dom.extent, nest, next++);
  }
  return edit(program, top, nest, next);
}

}  // namespace lathe::schedule::primitives
