// decompose_padding: a block that writes values, or a constant where there are none, becomes one that writes the
// constant everywhere and one that writes the values.
#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/blocks/padding.h"
#include "schedule/primitives/compute/inline.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(decompose_padding_drops_fill, "schedule_test", "decompose_padding: nothing writes the constant");

std::optional<Padding> padding_of(const Expr& e) {
  if (const auto* choice = e.as<Select>()) return Padding{choice->condition, choice->true_value, choice->false_value};
  const auto* call = e.as<Call>();
  if (!call || call->op != &intrinsic::if_then_else) return std::nullopt;
  return Padding{call->args[0], call->args[1], call->args[2]};
}

std::optional<Padding> constant_padding_of(const Expr& e) {
  const std::optional<Padding> found = padding_of(e);
  return found && (as_int(found->outside) || as_float(found->outside)) ? found : std::nullopt;
}

Result<Edit> decompose_padding(const Program& program, Id block_id, Id loop_id) {
  const Path path = TRY(block_path(program, block_id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot decompose the padding of {}: {}", name_of(block), why));
  };
  const BufferStore* store = TRY(single_store(block, "decompose the padding of"));
  const auto padding = constant_padding_of(store->value);
  if (!padding) return problem(codes::bad_argument, "its value is no choice between a value and a constant");
  std::vector<const For*> inside;
  for (const For* loop : loops_above(path))
    if (!inside.empty() || loop->id == loop_id) inside.push_back(loop);
  if (inside.empty()) {
    const For* loop = find_loop(*program.function, loop_id);
    return problem(codes::not_nested,
                   fmt::format("{} is not around it", loop ? name_of(*loop) : std::string("the loop")));
  }
  if (const auto why = undecided_above(path, inside[0])) return problem(codes::not_nested, "it is " + *why);
  bool reads = false, holds_loads = false;
  post_order(store->value, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    reads = reads || (load && load->buffer == store->buffer);
  });
  post_order(padding->inside, [&](const NodeRef& n) { holds_loads = holds_loads || n.is<BufferLoad>(); });
  if (reads) return problem(codes::dependence, fmt::format("it reads '{}', which it writes", store->buffer->name));
  if (holds_loads) return problem(codes::dependence, "its condition reads a buffer");
  if (auto refused = refuse_touched_before(program, *inside[0], store->buffer, block, "decompose the padding of"))
    return *std::move(refused);
  for (const For* loop : inside)
    if (program.proves && !disjoint_across(*loop, store->buffer, program.proofs))
      return problem(codes::dependence,
                     fmt::format("could not show that different iterations of {} touch different elements of '{}'",
                                 name_of(*loop), store->buffer->name));

  Id next = program.next;
  VarMap loops, iters;
  std::vector<IterVar> variables;
  std::vector<Expr> values;
  for (const IterVar& iter : block.iter_vars) {
    const Var v = var(iter->var->name);
    iters[iter->var] = v;
    variables.push_back(with(*iter, [&](IterVarNode& copy) { copy.var = v; }));
  }
  for (const For* loop : inside) loops[loop->loop_var] = var(loop->loop_var->name + "_fill");
  for (const Expr& value : realized.iter_values) values.push_back(substitute(value, loops));
  std::vector<Expr> indices;
  for (const Expr& index : store->indices) indices.push_back(substitute(index, iters));
  const Id created = next++;
  const Ref<Block> fill = with_regions(
      make<Block>(variables, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
                  std::vector<BufferRegion>{}, block.name + "_fill", Stmt{},
                  Stmt(make<BufferStore>(store->buffer, padding->outside, indices, Expr())), Attributes(), created));
  const Stmt nest = copied_nest(inside, loops, realize(values, substitute(realized.predicate, loops), fill), next);

  // The values: where the condition holds, in terms of the loops.
  const Expr condition = substitute(padding->inside, bindings(realized));
  const Ref<Block> kept = with_regions(with(block, [&](Block& copy) {
    copy.body = make<BufferStore>(store->buffer, padding->value, store->indices, Expr());
  }));
  const Expr predicate = is_int(realized.predicate, 1) ? condition : logical_and(realized.predicate, condition);
  const Stmt loop(inside[0]);
  const Stmt rest = simplified(replace(loop, path.back(), realize(realized.iter_values, predicate, kept)), path);
  const bool dropped = support::flip(decompose_padding_drops_fill);
  return edit(program, loop, dropped ? rest : seq({nest, rest}), next, {dropped ? block_id : created});
}

}  // namespace lathe::schedule::primitives
