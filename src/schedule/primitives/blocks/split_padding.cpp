// split_padding: a block that writes one value inside a box and another around it becomes one over the box alone, and
// blocks that write the other on each side of it.
#include "ir/conditions.h"
#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/analysis/linear.h"
#include "schedule/primitives/blocks/padding.h"
#include "schedule/primitives/compute/inline.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(split_padding_drops_side, "schedule_test", "split_padding: nothing writes what comes after the box");

namespace {

// Where one axis of the box begins and ends.
struct Side {
  int64_t begin = 0, end = 0;
};

// The constant `at` for which the comparison says that the axis is at least (`from_below`) or below it; nothing where
// it says something else.
struct Bound {
  Var axis;
  int64_t at = 0;
  bool from_below = false;
};
std::optional<Bound> bound_of(const Expr& comparison) {
  Expr margin;  // at least zero where the comparison holds
  if (const auto* n = comparison.as<LT>()) margin = n->b - n->a - 1;
  if (const auto* n = comparison.as<LE>()) margin = n->b - n->a;
  if (const auto* n = comparison.as<GT>()) margin = n->a - n->b - 1;
  if (const auto* n = comparison.as<GE>()) margin = n->a - n->b;
  if (!margin || !margin->dtype.is_int()) return std::nullopt;
  const Linear sum = linear(margin);
  if (sum.terms.size() != 1 || !sum.terms[0].atom.is<VarNode>()) return std::nullopt;
  const Var axis = cast<VarNode>(sum.terms[0].atom);
  if (sum.terms[0].coefficient == 1) return Bound{axis, -sum.constant, true};
  if (sum.terms[0].coefficient == -1) return Bound{axis, sum.constant + 1, false};
  return std::nullopt;
}

}  // namespace

Result<Edit> split_padding(const Program& program, Id block_id) {
  const Path path = TRY(block_path(program, block_id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot split the padding of {}: {}", name_of(block), why));
  };
  const BufferStore* store = TRY(single_store(block, "split the padding of"));
  const auto padding = padding_of(store->value);
  if (!padding) return problem(codes::bad_argument, "its value is no choice between two values");
  for (const Buffer& buffer : buffers_read(block.body))
    if (buffer == store->buffer)
      return problem(codes::dependence, fmt::format("it reads '{}', which it writes", buffer->name));
  if (!is_int(realized.predicate, 1)) return problem(codes::bad_argument, "it runs under a condition");

  // Its own loops, outermost first, each the axis of the block in its place.
  std::vector<const For*> nest;
  for (size_t i = path.size() - 1; i-- > 0;) {
    const auto* loop = path[i].as<For>();
    if (!loop || loop->body != path[i + 1]) break;
    nest.insert(nest.begin(), loop);
  }
  if (nest.size() > block.iter_vars.size())
    nest.erase(nest.begin(), nest.end() - static_cast<ptrdiff_t>(block.iter_vars.size()));
  std::vector<Side> box;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const auto extent = i < nest.size() ? as_int(nest[i]->extent) : std::nullopt;
    if (!extent || !is_int(nest[i]->min, 0) || nest[i]->kind != ForKind::serial ||
        !(realized.iter_values[i] == Expr(nest[i]->loop_var)))
      return problem(codes::bad_argument, fmt::format("axis '{}' is no serial loop of its own of known extent",
                                                      block.iter_vars[i]->var->name));
    box.push_back({0, *extent});
  }
  for (const Expr& condition : conjuncts(padding->inside)) {
    const auto bound = bound_of(condition);
    size_t axis = 0;
    while (bound && axis < box.size() && block.iter_vars[axis]->var != bound->axis) ++axis;
    if (!bound || axis == box.size())
      return problem(codes::bad_argument, "its condition is not an axis between two constants");
    Side& side = box[axis];
    if (bound->from_below)
      side.begin = std::max(side.begin, bound->at);
    else
      side.end = std::min(side.end, bound->at);
  }
  for (const Side& side : box)
    if (side.begin >= side.end) return problem(codes::bad_argument, "there is nothing inside");
  for (const For* loop : nest)
    if (program.proves && !disjoint_across(*loop, store->buffer, program.proofs))
      return problem(codes::dependence,
                     fmt::format("could not show that different iterations of {} touch different elements of '{}'",
                                 name_of(*loop), store->buffer->name));

  // A copy of the nest over `region`, whose axes begin at zero, that writes what is outside.
  Id next = program.next;
  std::vector<Id> created;
  const auto over = [&](const std::vector<Side>& region) {
    arith::Analyzer analyzer;
    VarMap iters;
    std::vector<IterVar> variables;
    std::vector<Expr> values, indices;
    std::vector<Var> loops;
    for (size_t i = 0; i < region.size(); ++i) {
      const int64_t extent = region[i].end - region[i].begin;
      const Var v = var(block.iter_vars[i]->var->name);
      iters[block.iter_vars[i]->var] = Expr(v) + region[i].begin;
      analyzer.bind(v, Range(int64(0), int64(extent)));
      variables.push_back(with(*block.iter_vars[i], [&](IterVarNode& copy) {
        copy.var = v;
        copy.dom = Range(int64(0), int64(extent));
      }));
      loops.push_back(var(nest[i]->loop_var->name));
      values.emplace_back(loops.back());
    }
    for (const Expr& index : store->indices) indices.push_back(analyzer.simplify(substitute(index, iters)));
    const Expr value = analyzer.simplify(substitute(padding->outside, iters));
    const Id id = next++;
    created.push_back(id);
    const Stmt body(make<BufferStore>(store->buffer, value, std::move(indices), Expr()));
    Stmt result =
        realize(std::move(values), boolean(true),
                with_regions(make<Block>(std::move(variables), std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                         std::vector<BufferRegion>{}, std::vector<BufferRegion>{},
                                         fmt::format("{}_border_{}", block.name, created.size() - 1), Stmt{}, body,
                                         Attributes(), id)));
    for (size_t i = region.size(); i-- > 0;)
      result = loop_over(loops[i], int64(region[i].end - region[i].begin), result, next++);
    return result;
  };
  // Before and after the box along each axis: inside it along the axes before, all along those behind.
  std::vector<Stmt> parts;
  std::vector<Side> region;
  for (size_t i = 0; i < box.size(); ++i) region.push_back({0, as_int(nest[i]->extent).value_or(0)});
  for (size_t i = 0; i < box.size(); ++i) {
    for (const Side& side : {Side{0, box[i].begin}, Side{box[i].end, region[i].end}}) {
      if (side.begin >= side.end) continue;
      if (side.begin > 0 && support::flip(split_padding_drops_side)) continue;
      std::vector<Side> part = region;
      part[i] = side;
      parts.push_back(over(part));
    }
    region[i] = box[i];
  }

  // The box itself: the block and its loops, whose axes now begin at zero.
  VarMap moved;
  for (size_t i = 0; i < box.size(); ++i) moved[block.iter_vars[i]->var] = Expr(block.iter_vars[i]->var) + box[i].begin;
  arith::Analyzer analyzer;
  const auto shifted = [&](const Expr& e) { return analyzer.simplify(substitute(e, moved)); };
  const Ref<Block> kept = with_regions(with(block, [&](Block& copy) {
    for (size_t i = 0; i < box.size(); ++i) {
      const Range domain(int64(0), int64(box[i].end - box[i].begin));
      copy.iter_vars[i] = with(*block.iter_vars[i], [&](IterVarNode& axis) { axis.dom = domain; });
      analyzer.bind(block.iter_vars[i]->var, domain);
    }
    std::vector<Expr> indices;
    for (const Expr& index : store->indices) indices.push_back(shifted(index));
    copy.body = make<BufferStore>(store->buffer, shifted(padding->value), std::move(indices), Expr());
  }));
  Stmt inside = realize(realized.iter_values, realized.predicate, kept);
  for (size_t i = nest.size(); i-- > 0;)
    inside = with(*nest[i], [&](For& copy) {
      copy.extent = int64(box[i].end - box[i].begin);
      copy.body = inside;
    });
  parts.push_back(inside);
  const Stmt whole = nest.empty() ? path.back() : Stmt(nest[0]);
  return edit(program, whole, seq(std::move(parts)), next, std::move(created));
}

}  // namespace lathe::schedule::primitives
