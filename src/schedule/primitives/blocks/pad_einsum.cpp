// pad_einsum: a sum of products over axes whose extents become multiples: its operands are padded with zeros, and what
// belongs to the result is copied back.
#include "ir/visit.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(pad_einsum_pads_with_one, "schedule_test", "pad_einsum: operands are padded with ones");

namespace {

// Whether a value made of zeros can be computed at all, and is made of loads and constants only.
bool is_arithmetic(const Expr& e) {
  if (e.is<BufferLoad>() || as_int(e) || as_float(e)) return true;
  const auto both = [](const auto* n) { return is_arithmetic(n->a) && is_arithmetic(n->b); };
  if (const auto* n = e.as<Add>()) return both(n);
  if (const auto* n = e.as<Sub>()) return both(n);
  if (const auto* n = e.as<Mul>()) return both(n);
  if (const auto* n = e.as<Min>()) return both(n);
  if (const auto* n = e.as<Max>()) return both(n);
  if (const auto* n = e.as<Cast>()) return is_arithmetic(n->value);
  return false;
}

// Whether the value is zero where all operands at `axis` are: a product in which one factor is an operand indexed by
// it. A float factor that is not indexed by it may be infinite, and then the product is not zero.
bool vanishes(const Expr& e, const Var& axis) {
  if (const auto* load = e.as<BufferLoad>())
    return std::any_of(load->indices.begin(), load->indices.end(),
                       [&](const Expr& index) { return uses_var(index, axis); });
  if (const auto* n = e.as<Add>()) return vanishes(n->a, axis) && vanishes(n->b, axis);
  if (const auto* n = e.as<Sub>()) return vanishes(n->a, axis) && vanishes(n->b, axis);
  if (const auto* n = e.as<Cast>()) return vanishes(n->value, axis);
  if (const auto* n = e.as<Mul>()) {
    const bool a = vanishes(n->a, axis), b = vanishes(n->b, axis);
    if (a && b) return true;
    const Expr& other = a ? n->b : n->a;
    const auto number = as_float(other);
    const bool finite = !e->dtype.is_floating() || as_int(other) || (number && std::isfinite(*number));
    return (a || b) && finite;
  }
  return false;
}

struct Operand {
  Buffer buffer, padded;
  std::vector<Expr> indices;  // variables of the block, or constants
};

class Padded : public Rewriter {
 public:
  explicit Padded(const std::vector<Operand>& operands) : operands_(operands) {}

 protected:
  NodeRef visit(NodeRef node) override {
    for (const Operand& operand : operands_)
      if (node.get() == static_cast<const Node*>(operand.buffer.get())) return operand.padded;
    if (node->node_class().has_identity) return node;
    return descend(std::move(node));
  }

 private:
  const std::vector<Operand>& operands_;
};

}  // namespace

Result<Edit> pad_einsum(const Program& program, Id id, const std::vector<int64_t>& padding) {
  const Path path = TRY(block_path(program, id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot pad {}: {}", name_of(block), why));
  };
  const BlockRealize* scope = scope_of(path);
  if (!scope) return problem(codes::bad_argument, "it is the root block");
  if (padding.size() != block.iter_vars.size())
    return problem(codes::bad_argument,
                   fmt::format("{} multiples for {} axes", padding.size(), block.iter_vars.size()));
  for (const int64_t multiple : padding)
    if (multiple < 1) return problem(codes::bad_argument, fmt::format("multiple {} is not positive", multiple));
  const auto* store = block.body.as<BufferStore>();
  if (!store || store->predicate || !is_arithmetic(store->value))
    return problem(codes::bad_argument, "its body is not one store of sums, products, minima or maxima of elements");
  if (!is_int(realized.predicate, 1)) return problem(codes::region, "it runs under a condition");

  // Each axis is one loop of a nest that holds nothing else.
  const std::vector<const For*> loops = loops_above(path);
  std::unordered_map<const For*, size_t> axis_of;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const auto loop = std::find_if(loops.begin(), loops.end(), [&](const For* l) {
      return realized.iter_values[i] == Expr(l->loop_var) && is_int(l->min, 0) &&
             same(l->extent, block.iter_vars[i]->dom.extent) && is_int(block.iter_vars[i]->dom.min, 0);
    });
    if (loop == loops.end() || !axis_of.emplace(*loop, i).second)
      return problem(codes::not_nested,
                     fmt::format("axis '{}' is not one loop of its own", block.iter_vars[i]->var->name));
  }
  for (size_t l = 0; l < loops.size(); ++l) {
    const Node* inside = l + 1 < loops.size() ? static_cast<const Node*>(loops[l + 1]) : path.back().get();
    if (loops[l]->body.get() != inside || !axis_of.count(loops[l]))
      return problem(codes::not_nested, fmt::format("{} holds more than its nest", name_of(*loops[l])));
    if (loops[l]->kind != ForKind::serial)
      return problem(codes::loop_kind, fmt::format("{} is {}", name_of(*loops[l]), kind_name(loops[l]->kind)));
  }
  if (block.init && (!is_reduction(block) || !block.init.is<BufferStore>()))
    return problem(codes::dependence, "its init is not one store of a reduction");
  const std::vector<Buffer> read = buffers_read(block.body);
  if (!block.init && (has_reduce_iters(block) || std::find(read.begin(), read.end(), store->buffer) != read.end()))
    return problem(codes::dependence, fmt::format("it reads '{}' without an init", store->buffer->name));

  arith::Analyzer analyzer;
  std::vector<Expr> extents;
  std::vector<bool> grows;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const Expr& extent = block.iter_vars[i]->dom.extent;
    if (is_int(extent, 0))  // nothing is written, and the copy out would read it
      return problem(codes::region, fmt::format("axis '{}' is empty", block.iter_vars[i]->var->name));
    extents.push_back(analyzer.simplify(ceildiv(extent, int64(padding[i])) * padding[i]));
    grows.push_back(!analyzer.can_prove_equal(extents[i], extent));
    if (!grows[i]) continue;
    const Var& axis = block.iter_vars[i]->var;
    if (block.iter_vars[i]->type == IterType::spatial) {
      // What is computed beyond the end must lie beyond the end.
      if (std::none_of(store->indices.begin(), store->indices.end(), [&](const Expr& e) { return e == Expr(axis); }))
        return problem(codes::dependence, fmt::format("its axis '{}' does not index what it writes", axis->name));
      continue;
    }
    const auto* sum = store->value.as<Add>();
    const auto is_own = [&](const Expr& e) {
      const auto* load = e.as<BufferLoad>();
      return load && load->buffer == store->buffer;
    };
    if (!sum || is_own(sum->a) == is_own(sum->b) ||
        !vanishes(is_own(sum->a) ? sum->b : sum->a, block.iter_vars[i]->var))
      return problem(codes::dependence,
                     fmt::format("zeros along its axis '{}' could change the result", block.iter_vars[i]->var->name));
  }

  // Every buffer is indexed by axes, each at most once, over all of its extent.
  std::vector<Operand> operands;
  std::optional<Diagnostic> refused;
  const auto add = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    for (const Operand& known : operands) {
      if (known.buffer != buffer) continue;
      for (size_t d = 0; d < indices.size(); ++d)
        if (!refused && !same(known.indices[d], indices[d]))
          refused = problem(codes::region, fmt::format("it touches '{}' at different indices", buffer->name));
      return;
    }
    Operand operand{buffer, Buffer(), indices};
    std::vector<Expr> shape = buffer->shape;
    bool changes = false;
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto axis = std::find_if(block.iter_vars.begin(), block.iter_vars.end(),
                                     [&](const IterVar& iter) { return indices[d] == Expr(iter->var); });
      const auto i = static_cast<size_t>(axis - block.iter_vars.begin());
      const bool twice = std::any_of(indices.begin(), indices.begin() + static_cast<ptrdiff_t>(d),
                                     [&](const Expr& earlier) { return earlier == indices[d]; });
      if (axis == block.iter_vars.end() ? !as_int(indices[d]) : twice || !same(buffer->shape[d], (*axis)->dom.extent)) {
        refused = problem(codes::region,
                          fmt::format("index {} of '{}' is not an axis that runs over all of it", d, buffer->name));
        return;
      }
      if (axis == block.iter_vars.end() || !grows[i]) continue;
      shape[d] = extents[i];
      changes = true;
    }
    if (!changes) return;
    operand.padded = with(*buffer, [&](BufferNode& copy) {
      copy.name += "_pad";
      copy.shape = shape;
      copy.scope = "global";
      copy.data = buffer->data ? var(copy.name, buffer->data->dtype) : Var();
      copy.strides.clear();
      copy.elem_offset = Expr();
      copy.axis_separators.clear();
    });
    operands.push_back(std::move(operand));
  };
  add(store->buffer, store->indices);
  post_order(store->value, [&](const NodeRef& n) {
    if (const auto* load = n.as<BufferLoad>(); load && !refused) add(load->buffer, load->indices);
  });
  if (refused) return *std::move(refused);
  if (operands.empty()) return edited(program, program.function, program.next);
  for (const Operand& operand : operands)
    for (const Access& access : accesses(path.back()))
      if (access.buffer == operand.buffer && !access.certain)
        return problem(codes::region, fmt::format("it touches '{}' under a condition", operand.buffer->name));
  Id next = program.next;
  const Stmt around(loops.empty() ? path.back() : Stmt(loops[0]));
  size_t at = 0;
  while (path[at] != around) ++at;
  const Path where(path.begin(), path.begin() + static_cast<ptrdiff_t>(at));
  std::vector<Stmt> before, after;
  for (const Operand& operand : operands) {
    const bool writes = operand.buffer == store->buffer;
    const Buffer& shaped = writes ? operand.buffer : operand.padded;
    std::vector<IterVar> iters;
    std::vector<Expr> indices;
    std::vector<Interval> domains;
    Expr inside = boolean(true);
    for (size_t d = 0; d < shaped->shape.size(); ++d) {
      // A constant index: that element only.
      const Expr extent = as_int(operand.indices[d]) ? int64(1) : shaped->shape[d];
      const Var v = var(fmt::format("v{}", d));
      iters.push_back(make<IterVarNode>(Range{int64(0), extent}, v, IterType::spatial));
      indices.push_back(as_int(operand.indices[d]) ? operand.indices[d] : Expr(v));
      domains.push_back({int64(0), Linear(linear(extent - 1)).expr()});
      if (same(operand.buffer->shape[d], operand.padded->shape[d])) continue;
      const Expr here = v < operand.buffer->shape[d];
      inside = is_int(inside, 1) ? here : logical_and(inside, here);
    }
    const Expr zero = constant(operand.buffer->dtype, support::flip(pad_einsum_pads_with_one) ? 1 : 0);
    const Stmt copy = writes
                          ? make<BufferStore>(operand.buffer, load(operand.padded, indices), indices, Expr())
                          : make<BufferStore>(operand.padded, if_then_else(inside, load(operand.buffer, indices), zero),
                                              indices, Expr());
    const Ref<Block> made = with_regions(make<Block>(iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                                     std::vector<BufferRegion>{}, std::vector<BufferRegion>{},
                                                     operand.padded->name, Stmt{}, copy, Attributes(), next++));
    (writes ? after : before).push_back(nest_over(made, domains, domains, where, false, next));
  }
  Padded pad(operands);
  const Ref<Block> grown = with_regions(with(block, [&](Block& copy) {
    for (size_t i = 0; i < copy.iter_vars.size(); ++i)
      copy.iter_vars[i] = with(*copy.iter_vars[i], [&](IterVarNode& iter) { iter.dom.extent = extents[i]; });
    copy.body = pad(block.body);
    if (block.init) copy.init = pad(block.init);
  }));
  Stmt nest = realize(realized.iter_values, realized.predicate, grown);
  for (size_t l = loops.size(); l-- > 0;)
    nest = with(*loops[l], [&](For& copy) {
      copy.extent = extents[axis_of.at(loops[l])];
      copy.body = nest;
    });
  before.push_back(nest);
  before.insert(before.end(), after.begin(), after.end());
  Stmt body = replace(program.function->body, around, seq(std::move(before)));
  for (const Operand& operand : operands)
    body = with_allocation(body, *path_to(body, scope->block->id).back().as<BlockRealize>(), operand.padded);
  const Function result = with_body(program.function, body);
  if (auto parallel = refuse_parallel_above(program, result, where, "pad a block")) return *std::move(parallel);
  return edited(program, result, next);
}

}  // namespace lathe::schedule::primitives
