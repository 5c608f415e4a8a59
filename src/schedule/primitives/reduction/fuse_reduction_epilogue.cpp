#include "ir/structural.h"
#include "ir/visit.h"
#include "schedule/analysis/dependence.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "schedule/primitives/reduction/combination.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(fuse_epilogue_drops_start, "schedule_test", "fuse_reduction_epilogue: what the epilogue adds is lost");

namespace {

bool reads(const Expr& value, const Buffer& buffer) {
  bool found = false;
  post_order(value, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    found = found || (load && load->buffer == buffer);
  });
  return found;
}

// What is combined with a reduction's result before anything else is done with it.
class Combined {
 public:
  // `like` combines values as the reduction does.
  Combined(const Buffer& result, const Expr& like) : result_(result), class_(&like->node_class()) {}

  // The other side, where each load of the result in `value` is combined with the same.
  std::optional<Expr> in(const Expr& value) const {
    std::optional<Expr> found;
    bool alike = true;
    pre_order(value, [&](const NodeRef& n) {
      const std::optional<Expr> other = other_side(n);
      if (!other) {
        alike = alike && !is_result(n);
        return true;
      }
      alike = alike && (!found || structural_equal(*found, *other));
      found = other;
      return false;
    });
    return alike ? found : std::nullopt;
  }

  // The value without it.
  Expr without(const Expr& value) const { return Without(*this)(value); }

  bool is_result(const NodeRef& n) const {
    const auto* load = n.as<BufferLoad>();
    return load && load->buffer == result_;
  }

 private:
  class Without : public Rewriter {
   public:
    explicit Without(const Combined& combined) : combined_(combined) {}

   protected:
    NodeRef visit(NodeRef node) override {
      if (!combined_.other_side(node)) return descend(std::move(node));
      const auto [first, second] = *sides_of(node);
      return combined_.is_result(first) ? first : second;
    }

   private:
    const Combined& combined_;
  };

  std::optional<Expr> other_side(const NodeRef& n) const {
    if (&n->node_class() != class_) return std::nullopt;
    const auto [first, second] = *sides_of(n);
    if (is_result(first) == is_result(second)) return std::nullopt;
    const Expr& other = is_result(first) ? second : first;
    return reads(other, result_) ? std::nullopt : std::optional(other);
  }

  const Buffer& result_;
  const NodeClass* class_;
};

// A reduction and the block behind it.
class Fusing {
 public:
  Fusing(const Program& program, Path reduction, Path epilogue)
      : program_(program), to_reduction_(std::move(reduction)), to_epilogue_(std::move(epilogue)) {}

  Status find_reduction() {
    if (in_init(to_reduction_) || in_init(to_epilogue_) || scope_of(to_reduction_) != scope_of(to_epilogue_))
      return problem("they are in different scopes");
    const auto found = combination(*reduction_);
    const auto* init = reduction_->init ? reduction_->init.as<BufferStore>() : nullptr;
    if (!found || !init || !sides_of(found->store->value) || (program_.proves && !is_reduction(*reduction_)))
      return problem(fmt::format("{} is no sum, product, minimum or maximum with a start", name_of(*reduction_)));
    if (program_.proves && runs_init(*to_reduction_.back().as<BlockRealize>(), loops_above(to_reduction_)) != true)
      return problem(fmt::format("could not tell whether the init of {} runs", name_of(*reduction_)));
    found_ = *found;
    return support::success();
  }

  // The result goes from one block to the other, and nowhere else.
  Status check_result() const {
    if (!allocating_block(*program_.function, result()) || has_view(*program_.function, result()))
      return problem(fmt::format("'{}' is seen by others", result()->name));
    for (const Access& access : all_)
      if (access.buffer == result() &&
          (access.opaque || (access.block != reduction_ && (access.block != epilogue_ || access.writes))))
        return problem(fmt::format("'{}' has other readers or writers", result()->name));
    return support::success();
  }

  // What the epilogue combines the result with first, and what it does behind that.
  Status find_start() {
    store_ = TRY(single_store(*epilogue_, "fuse"));
    if (const auto why = undecided_above(to_epilogue_)) return problem("the latter is " + *why);
    if (!is_int(to_epilogue_.back().as<BlockRealize>()->predicate, 1) || is_conditional(*epilogue_))
      return problem("the latter is computed under a condition");
    vars_ = TRY(variables_over_all(*epilogue_, store_->value, result(), "fuse"));
    const Combined combined(result(), found_.store->value);
    const std::optional<Expr> other = combined.in(store_->value);
    if (!other) return problem("the latter does not go on with what the former combines");
    start_ = *other;
    rest_ = combined.without(store_->value);
    if (reads(start_, store_->buffer))
      return problem(fmt::format("the latter reads what it writes, '{}'", store_->buffer->name));
    if (auto moved = refuse_moved(all_, *epilogue_, *reduction_, result(), "fuse", false); moved && program_.proves)
      return *std::move(moved);
    return support::success();
  }

  Result<Edit> run() const {
    const auto* init = reduction_->init.as<BufferStore>();
    const Expr start = substitute(start_, values_of(*epilogue_, vars_, init->indices));
    const bool dropped = support::flip(fuse_epilogue_drops_start);
    const Expr value = dropped ? init->value : starts_from_nothing(*init) ? start : found_.combine(init->value, start);
    const Ref<Block> reduction = with_regions(with(
        *reduction_, [&](Block& copy) { copy.init = make<BufferStore>(init->buffer, value, init->indices, Expr()); }));
    const Ref<Block> epilogue = with_regions(with(*epilogue_, [&](Block& copy) {
      copy.body = make<BufferStore>(store_->buffer, rest_, store_->indices, Expr());
    }));
    const Stmt body =
        replace_all(program_.function->body, {{to_reduction_.back(), with_block(to_reduction_.back(), reduction)},
                                              {to_epilogue_.back(), with_block(to_epilogue_.back(), epilogue)}});
    const Function fused = with_body(program_.function, body);
    return edited(program_, is_copy() ? without_copy(fused) : fused, program_.next);
  }

 private:
  const Buffer& result() const { return found_.store->buffer; }

  Diagnostic problem(std::string_view why) const {
    return refuse(codes::not_inlinable,
                  fmt::format("cannot fuse {} with {}: {}", name_of(*reduction_), name_of(*epilogue_), why));
  }

  // Whether a sum starts from zero, a product from one.
  bool starts_from_nothing(const BufferStore& init) const {
    const Expr& combined = found_.store->value;
    return (combined.is<Add>() || combined.is<Mul>()) && structural_equal(init.value, found_.identity);
  }

  static Stmt with_block(const Stmt& realize, const Ref<Block>& block) {
    return with(*realize.as<BlockRealize>(), [&](BlockRealize& copy) { copy.block = block; });
  }

  // Whether the epilogue does nothing else, element for element, with memory that others touch behind both blocks only.
  bool is_copy() const {
    const auto* load = rest_.as<BufferLoad>();
    const Buffer& output = store_->buffer;
    const bool alike = load && output->dtype == load->buffer->dtype && output->scope == load->buffer->scope &&
                       structural_equal(make<BufferLoad>(output, load->indices, Expr()),
                                        make<BufferLoad>(output, store_->indices, Expr()));
    if (!alike || has_view(*program_.function, output)) return false;
    size_t order = 0;
    for (const Access& access : all_)
      if (access.block == epilogue_) order = std::max(order, access.order);
    const std::vector<const For*> loops = loops_above(to_epilogue_);
    return std::all_of(all_.begin(), all_.end(), [&](const Access& access) {
      if (access.buffer != output || access.block == epilogue_) return true;
      const bool shares = !loops.empty() && !access.loops.empty() && access.loops[0] == loops[0];
      return access.order > order && !shares && !access.opaque;
    });
  }

  // The reduction writes what the epilogue did, which goes.
  Function without_copy(const Function& fused) const {
    const Stmt reduction = path_to(fused->body, reduction_->id).back();
    const Function renamed =
        with_body(fused, replace(fused->body, reduction, with_buffer(reduction, result(), store_->buffer)));
    return with_loads_replaced(renamed, path_to(renamed->body, epilogue_->id).back(), result(),
                               [](const BufferLoad& load) { return Expr(&load); });
  }

  const Program& program_;
  const Path to_reduction_, to_epilogue_;
  const Block* reduction_ = to_reduction_.back().as<BlockRealize>()->block.get();
  const Block* epilogue_ = to_epilogue_.back().as<BlockRealize>()->block.get();
  const std::vector<Access> all_ = accesses(program_.function->body);
  Combination found_;
  const BufferStore* store_ = nullptr;  // the epilogue's
  std::vector<Var> vars_;               // of the epilogue, that the result is read at
  Expr start_, rest_;
};

}  // namespace

Result<Edit> fuse_reduction_epilogue(const Program& program, Id reduction, Id epilogue) {
  Fusing fusing(program, TRY(block_path(program, reduction)), TRY(block_path(program, epilogue)));
  TRY(fusing.find_reduction());
  TRY(fusing.check_result());
  TRY(fusing.find_start());
  return fusing.run();
}

}  // namespace lathe::schedule::primitives
