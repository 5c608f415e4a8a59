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
  Expr begin, end;
  Expr extent() const { return arith::Analyzer().simplify(end - begin); }
};

// For which `at` the comparison says that the axis is at least (`from_below`) or below it; nothing where it says
// something else, or that moves with another axis or is read.
struct Bound {
  Var axis;
  Expr at;
  bool from_below = false;
};
std::optional<Bound> bound_of(const Expr& comparison, const std::vector<IterVar>& axes) {
  Expr margin;  // at least zero where the comparison holds
  if (const auto* n = comparison.as<LT>()) margin = n->b - n->a - 1;
  if (const auto* n = comparison.as<LE>()) margin = n->b - n->a;
  if (const auto* n = comparison.as<GT>()) margin = n->a - n->b - 1;
  if (const auto* n = comparison.as<GE>()) margin = n->a - n->b;
  if (!margin || !margin->dtype.is_int()) return std::nullopt;
  bool reads = false;
  post_order(margin, [&](const NodeRef& n) { reads = reads || n.is<BufferLoad>() || n.is<Call>(); });
  if (reads) return std::nullopt;
  Linear rest = linear(margin);
  const Linear own = rest.extract([&](const Expr& atom) {
    return std::any_of(axes.begin(), axes.end(), [&](const IterVar& axis) { return uses_var(atom, axis->var); });
  });
  if (own.terms.size() != 1 || !own.terms[0].atom.is<VarNode>()) return std::nullopt;
  const Var axis = cast<VarNode>(own.terms[0].atom);
  if (own.terms[0].coefficient == 1) return Bound{axis, int64(0) - rest.expr(), true};
  if (own.terms[0].coefficient == -1) return Bound{axis, rest.expr() + 1, false};
  return std::nullopt;
}

// A block that is split, with its own loops, one for each of its axes in their order.
struct BorderedBlock {
  const BlockRealize& realized;
  const Block& block;
  const BufferStore& store;
  const Padding& padding;
  std::vector<const For*> nest;
};

support::Diagnostic refuse_split(const Block& block, const support::Code& code, const std::string& why) {
  return refuse(code, fmt::format("cannot split the padding of {}: {}", name_of(block), why));
}

// The loops around the end of the path that are nothing else's, outermost first, no more than the block has axes.
std::vector<const For*> own_loops(const Path& path, const Block& block) {
  std::vector<const For*> nest;
  for (size_t i = path.size() - 1; i-- > 0 && nest.size() < block.iter_vars.size();) {
    const auto* loop = path[i].as<For>();
    if (!loop || loop->body != path[i + 1]) break;
    nest.insert(nest.begin(), loop);
  }
  return nest;
}

// Where the condition holds; a reason where that is no box that all of its own loops walk in full.
Result<std::vector<Side>> box_of(const BorderedBlock& padded) {
  const std::vector<IterVar>& axes = padded.block.iter_vars;
  const auto problem = [&](const std::string& why) { return refuse_split(padded.block, codes::bad_argument, why); };
  std::vector<Side> box;
  for (size_t i = 0; i < axes.size(); ++i) {
    const For* loop = i < padded.nest.size() ? padded.nest[i] : nullptr;
    if (!loop || !is_int(loop->min, 0) || loop->kind != ForKind::serial ||
        !(padded.realized.iter_values[i] == Expr(loop->loop_var)))
      return problem(fmt::format("axis '{}' is no serial loop of its own", axes[i]->var->name));
    box.push_back({int64(0), loop->extent});
  }
  arith::Analyzer known;
  for (const Expr& condition : conjuncts(padded.padding.inside)) {
    const auto bound = bound_of(condition, axes);
    size_t axis = 0;
    while (bound && axis < box.size() && axes[axis]->var != bound->axis) ++axis;
    if (!bound || axis == box.size()) return problem("its condition is not an axis between two bounds");
    Side& side = box[axis];
    if (bound->from_below)
      side.begin = known.simplify(max(side.begin, bound->at));
    else
      side.end = known.simplify(min(side.end, bound->at));
  }
  for (const Side& side : box) {
    const auto extent = as_int(side.extent());
    if (extent ? *extent <= 0 : !known.can_prove(side.begin <= side.end))
      return problem(extent ? "there is nothing inside" : "there may be less than nothing inside");
  }
  return box;
}

// A copy of the nest over `region`, whose axes begin at zero, that writes what is outside.
Stmt border(const BorderedBlock& padded, const std::vector<Side>& region, Id& next, std::vector<Id>& created) {
  const Block& block = padded.block;
  arith::Analyzer analyzer;
  VarMap iters;
  std::vector<IterVar> variables;
  std::vector<Expr> values, indices;
  std::vector<Var> loops;
  for (size_t i = 0; i < region.size(); ++i) {
    const Expr extent = region[i].extent();
    const Var v = var(block.iter_vars[i]->var->name);
    iters[block.iter_vars[i]->var] = Expr(v) + region[i].begin;
    analyzer.bind(v, Range(int64(0), extent));
    variables.push_back(with(*block.iter_vars[i], [&](IterVarNode& copy) {
      copy.var = v;
      copy.dom = Range(int64(0), extent);
    }));
    loops.push_back(var(padded.nest[i]->loop_var->name));
    values.emplace_back(loops.back());
  }
  for (const Expr& index : padded.store.indices) indices.push_back(analyzer.simplify(substitute(index, iters)));
  const Expr value = analyzer.simplify(substitute(padded.padding.outside, iters));
  const Id id = next++;
  created.push_back(id);
  const Stmt body(make<BufferStore>(padded.store.buffer, value, std::move(indices), Expr()));
  const std::string name = fmt::format("{}_border_{}", block.name, created.size() - 1);
  Stmt result =
      realize(std::move(values), boolean(true), block_with_regions(std::move(variables), name, Stmt{}, body, id));
  for (size_t i = region.size(); i-- > 0;) result = loop_over(loops[i], region[i].extent(), result, next++);
  return result;
}

// Before and after the box along each axis: inside it along the axes before, all along those behind.
std::vector<Stmt> borders(const BorderedBlock& padded, const std::vector<Side>& box, Id& next,
                          std::vector<Id>& created) {
  std::vector<Stmt> parts;
  std::vector<Side> region;
  for (const For* loop : padded.nest) region.push_back({int64(0), loop->extent});
  for (size_t i = 0; i < box.size(); ++i) {
    for (const Side& side : {Side{int64(0), box[i].begin}, Side{box[i].end, region[i].end}}) {
      if (is_int(side.extent(), 0)) continue;
      if (!is_int(side.begin, 0) && support::flip(split_padding_drops_side)) continue;
      std::vector<Side> part = region;
      part[i] = side;
      parts.push_back(border(padded, part, next, created));
    }
    region[i] = box[i];
  }
  return parts;
}

// The block and its loops over the box, whose axes now begin at zero.
Stmt inside_of(const BorderedBlock& padded, const std::vector<Side>& box) {
  const std::vector<IterVar>& axes = padded.block.iter_vars;
  VarMap moved;
  for (size_t i = 0; i < box.size(); ++i) moved[axes[i]->var] = Expr(axes[i]->var) + box[i].begin;
  arith::Analyzer analyzer;
  const auto shifted = [&](const Expr& e) { return analyzer.simplify(substitute(e, moved)); };
  const Ref<Block> kept = with_regions(with(padded.block, [&](Block& copy) {
    for (size_t i = 0; i < box.size(); ++i) {
      const Range domain(int64(0), box[i].extent());
      copy.iter_vars[i] = with(*axes[i], [&](IterVarNode& axis) { axis.dom = domain; });
      analyzer.bind(axes[i]->var, domain);
    }
    std::vector<Expr> indices;
    for (const Expr& index : padded.store.indices) indices.push_back(shifted(index));
    copy.body = make<BufferStore>(padded.store.buffer, shifted(padded.padding.value), std::move(indices), Expr());
  }));
  Stmt inside = realize(padded.realized.iter_values, padded.realized.predicate, kept);
  for (size_t i = padded.nest.size(); i-- > 0;)
    inside = with(*padded.nest[i], [&](For& copy) {
      copy.extent = box[i].extent();
      copy.body = inside;
    });
  return inside;
}

}  // namespace

Result<Edit> split_padding(const Program& program, Id block_id) {
  const Path path = TRY(block_path(program, block_id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  const BufferStore* store = TRY(single_store(block, "split the padding of"));
  const auto padding = padding_of(store->value);
  if (!padding) return refuse_split(block, codes::bad_argument, "its value is no choice between two values");
  for (const Buffer& buffer : buffers_read(block.body))
    if (buffer == store->buffer)
      return refuse_split(block, codes::dependence, fmt::format("it reads '{}', which it writes", buffer->name));
  if (!is_int(realized.predicate, 1)) return refuse_split(block, codes::bad_argument, "it runs under a condition");

  const BorderedBlock padded{realized, block, *store, *padding, own_loops(path, block)};
  const std::vector<Side> box = TRY(box_of(padded));
  for (const For* loop : padded.nest)
    if (program.proves && !disjoint_across(*loop, store->buffer, program.proofs))
      return refuse_split(block, codes::dependence,
                          fmt::format("could not show that different iterations of {} touch different elements of '{}'",
                                      name_of(*loop), store->buffer->name));
  Id next = program.next;
  std::vector<Id> created;
  std::vector<Stmt> parts = borders(padded, box, next, created);
  parts.push_back(inside_of(padded, box));
  const Stmt whole = padded.nest.empty() ? path.back() : Stmt(padded.nest[0]);
  return edit(program, whole, seq(std::move(parts)), next, std::move(created));
}

}  // namespace lathe::schedule::primitives
