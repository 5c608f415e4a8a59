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

// A block whose axes grow to multiples, and what grows with them.
class EinsumPadding {
 public:
  EinsumPadding(const Program& program, const Path& path) : program_(program), path_(path) {}

  Status check_block(const std::vector<int64_t>& padding) {
    if (!scope_) return problem(codes::bad_argument, "it is the root block");
    if (padding.size() != block_.iter_vars.size())
      return problem(codes::bad_argument,
                     fmt::format("{} multiples for {} axes", padding.size(), block_.iter_vars.size()));
    for (const int64_t multiple : padding)
      if (multiple < 1) return problem(codes::bad_argument, fmt::format("multiple {} is not positive", multiple));
    if (!store_ || store_->predicate || !is_arithmetic(store_->value))
      return problem(codes::bad_argument, "its body is not one store of sums, products, minima or maxima of elements");
    if (!is_int(realized_.predicate, 1)) return problem(codes::region, "it runs under a condition");
    return support::success();
  }

  // Each axis is one loop of a nest that holds nothing else.
  Status find_axes() {
    for (size_t i = 0; i < block_.iter_vars.size(); ++i) {
      const IterVarNode& iter = *block_.iter_vars[i];
      const auto loop = std::find_if(loops_.begin(), loops_.end(), [&](const For* l) {
        return realized_.iter_values[i] == Expr(l->loop_var) && is_int(l->min, 0) && same(l->extent, iter.dom.extent) &&
               is_int(iter.dom.min, 0);
      });
      if (loop == loops_.end() || !axis_of_.emplace(*loop, i).second)
        return problem(codes::not_nested, fmt::format("axis '{}' is not one loop of its own", iter.var->name));
    }
    for (size_t l = 0; l < loops_.size(); ++l) {
      const Node* inside = l + 1 < loops_.size() ? static_cast<const Node*>(loops_[l + 1]) : path_.back().get();
      if (loops_[l]->body.get() != inside || !axis_of_.count(loops_[l]))
        return problem(codes::not_nested, fmt::format("{} holds more than its nest", name_of(*loops_[l])));
      if (loops_[l]->kind != ForKind::serial)
        return problem(codes::loop_kind, fmt::format("{} is {}", name_of(*loops_[l]), kind_name(loops_[l]->kind)));
    }
    return support::success();
  }

  Status check_init() const {
    if (block_.init && (!is_reduction(block_) || !block_.init.is<BufferStore>()))
      return problem(codes::dependence, "its init is not one store of a reduction");
    const std::vector<Buffer> read = buffers_read(block_.body);
    if (!block_.init && (has_reduce_iters(block_) || std::find(read.begin(), read.end(), store_->buffer) != read.end()))
      return problem(codes::dependence, fmt::format("it reads '{}' without an init", store_->buffer->name));
    return support::success();
  }

  // The axes' extents as multiples of `padding`.
  Status grow_axes(const std::vector<int64_t>& padding) {
    arith::Analyzer analyzer;
    for (size_t i = 0; i < block_.iter_vars.size(); ++i) {
      const IterVarNode& iter = *block_.iter_vars[i];
      const Expr& extent = iter.dom.extent;
      if (is_int(extent, 0))  // nothing is written, and the copy out would read it
        return problem(codes::region, fmt::format("axis '{}' is empty", iter.var->name));
      extents_.push_back(analyzer.simplify(ceildiv(extent, int64(padding[i])) * padding[i]));
      grows_.push_back(!analyzer.can_prove_equal(extents_[i], extent));
      if (grows_[i]) TRY(check_beyond(iter));
    }
    return support::success();
  }

  // Every buffer is indexed by axes, each at most once, over all of its extent. Those that grow are the operands.
  Status find_operands() {
    Status added = add_operand(store_->buffer, store_->indices);
    post_order(store_->value, [&](const NodeRef& n) {
      if (const auto* load = n.as<BufferLoad>(); load && added.ok()) added = add_operand(load->buffer, load->indices);
    });
    TRY(added);
    for (const Operand& operand : operands_)
      for (const Access& access : accesses(path_.back()))
        if (access.buffer == operand.buffer && !access.certain)
          return problem(codes::region, fmt::format("it touches '{}' under a condition", operand.buffer->name));
    return support::success();
  }

  Result<Edit> run() const {
    if (operands_.empty()) return edited(program_, program_.function, program_.next);
    Id next = program_.next;
    const Stmt around(loops_.empty() ? path_.back() : Stmt(loops_[0]));
    const Path where(path_.begin(), std::find(path_.begin(), path_.end(), around));
    std::vector<Stmt> before, after;
    for (const Operand& operand : operands_) (writes(operand) ? after : before).push_back(copied(operand, where, next));
    before.push_back(grown_nest());
    before.insert(before.end(), after.begin(), after.end());
    Stmt body = replace(program_.function->body, around, seq(std::move(before)));
    for (const Operand& operand : operands_)
      body = with_allocation(body, *path_to(body, scope_->block->id).back().as<BlockRealize>(), operand.padded);
    const Function result = with_body(program_.function, body);
    if (auto parallel = refuse_parallel_above(program_, result, where, "pad a block")) return *std::move(parallel);
    return edited(program_, result, next);
  }

 private:
  Diagnostic problem(const support::Code& code, const std::string& why) const {
    return refuse(code, fmt::format("cannot pad {}: {}", name_of(block_), why));
  }

  bool writes(const Operand& operand) const { return operand.buffer == store_->buffer; }

  // What is computed beyond the end of an axis must lie beyond the end, or add nothing to a sum.
  Status check_beyond(const IterVarNode& iter) const {
    const Var& axis = iter.var;
    if (iter.type == IterType::spatial) {
      if (std::none_of(store_->indices.begin(), store_->indices.end(), [&](const Expr& e) { return e == Expr(axis); }))
        return problem(codes::dependence, fmt::format("its axis '{}' does not index what it writes", axis->name));
      return support::success();
    }
    const auto* sum = store_->value.as<Add>();
    const auto is_own = [&](const Expr& e) {
      const auto* load = e.as<BufferLoad>();
      return load && load->buffer == store_->buffer;
    };
    if (!sum || is_own(sum->a) == is_own(sum->b) || !vanishes(is_own(sum->a) ? sum->b : sum->a, axis))
      return problem(codes::dependence, fmt::format("zeros along its axis '{}' could change the result", axis->name));
    return support::success();
  }

  Status add_operand(const Buffer& buffer, const std::vector<Expr>& indices) {
    for (const Operand& known : operands_) {
      if (known.buffer != buffer) continue;
      for (size_t d = 0; d < indices.size(); ++d)
        if (!same(known.indices[d], indices[d]))
          return problem(codes::region, fmt::format("it touches '{}' at different indices", buffer->name));
      return support::success();
    }
    std::vector<Expr> shape = buffer->shape;
    bool changes = false;
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto axis = std::find_if(block_.iter_vars.begin(), block_.iter_vars.end(),
                                     [&](const IterVar& iter) { return indices[d] == Expr(iter->var); });
      const bool is_axis = axis != block_.iter_vars.end();
      const bool twice = std::any_of(indices.begin(), indices.begin() + static_cast<ptrdiff_t>(d),
                                     [&](const Expr& earlier) { return earlier == indices[d]; });
      if (is_axis ? twice || !same(buffer->shape[d], (*axis)->dom.extent) : !as_int(indices[d]))
        return problem(codes::region,
                       fmt::format("index {} of '{}' is not an axis that runs over all of it", d, buffer->name));
      const auto i = static_cast<size_t>(axis - block_.iter_vars.begin());
      if (!is_axis || !grows_[i]) continue;
      shape[d] = extents_[i];
      changes = true;
    }
    if (changes) operands_.push_back({buffer, with_shape(buffer, std::move(shape)), indices});
    return support::success();
  }

  static Buffer with_shape(const Buffer& buffer, std::vector<Expr> shape) {
    return with(*buffer, [&](BufferNode& copy) {
      copy.name += "_pad";
      copy.shape = std::move(shape);
      copy.scope = "global";
      copy.data = buffer->data ? var(copy.name, buffer->data->dtype) : Var();
      copy.strides.clear();
      copy.elem_offset = Expr();
      copy.axis_separators.clear();
    });
  }

  // A nest that copies the operand, zeros beyond its end, to what is padded; or what is written back from there.
  Stmt copied(const Operand& operand, const Path& where, Id& next) const {
    const Buffer& shaped = writes(operand) ? operand.buffer : operand.padded;
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
    const Expr value =
        writes(operand) ? load(operand.padded, indices) : if_then_else(inside, load(operand.buffer, indices), zero);
    const Ref<Block> made = block_with_regions(iters, operand.padded->name, Stmt{},
                                               make<BufferStore>(shaped, value, indices, Expr()), next++);
    return nest_over(made, domains, domains, where, false, next);
  }

  // The block over all of its axes as they are now, on the padded operands.
  Stmt grown_nest() const {
    Padded pad(operands_);
    const Ref<Block> grown = with_regions(with(block_, [&](Block& copy) {
      for (size_t i = 0; i < copy.iter_vars.size(); ++i)
        copy.iter_vars[i] = with(*copy.iter_vars[i], [&](IterVarNode& iter) { iter.dom.extent = extents_[i]; });
      copy.body = pad(block_.body);
      if (block_.init) copy.init = pad(block_.init);
    }));
    Stmt nest = realize(realized_.iter_values, realized_.predicate, grown);
    for (size_t l = loops_.size(); l-- > 0;)
      nest = with(*loops_[l], [&](For& copy) {
        copy.extent = extents_[axis_of_.at(loops_[l])];
        copy.body = nest;
      });
    return nest;
  }

  const Program& program_;
  const Path& path_;
  const BlockRealize& realized_ = *path_.back().as<BlockRealize>();
  const Block& block_ = *realized_.block;
  const BufferStore* store_ = block_.body.as<BufferStore>();
  const BlockRealize* scope_ = scope_of(path_);
  const std::vector<const For*> loops_ = loops_above(path_);
  std::unordered_map<const For*, size_t> axis_of_;
  std::vector<Expr> extents_;  // of the axes, grown
  std::vector<bool> grows_;    // whether an axis does
  std::vector<Operand> operands_;
};

}  // namespace

Result<Edit> pad_einsum(const Program& program, Id id, const std::vector<int64_t>& padding) {
  const Path path = TRY(block_path(program, id));
  EinsumPadding einsum(program, path);
  TRY(einsum.check_block(padding));
  TRY(einsum.find_axes());
  TRY(einsum.check_init());
  TRY(einsum.grow_axes(padding));
  TRY(einsum.find_operands());
  return einsum.run();
}

}  // namespace lathe::schedule::primitives
