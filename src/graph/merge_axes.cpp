#include "graph/channels_first.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(merge_axes_order, "graph_test", "a permutation of merged axes has the first two exchanged");

namespace {

using Shape = std::vector<ir::Expr>;

// Axes of the input that follow each other in the result as they do there, as one: their extents' product.
struct MergedAxes {
  Shape shape;                // of the input
  std::vector<int64_t> axes;  // of these, in the result's order
};

// The permutation with fewer axes: those of extent 1 are left out, those that stay together are one. Nothing where that
// saves none. Behind an extent that is not known a known one stays by itself: loops over it are even.
std::optional<MergedAxes> merged_axes(const Shape& shape, const std::vector<int64_t>& axes) {
  struct Group {
    int64_t first, last;
    ir::Expr extent;
  };
  std::vector<Group> groups;  // in the result's order
  for (const int64_t axis : axes) {
    const ir::Expr& extent = shape[static_cast<size_t>(axis)];
    if (ir::is_int(extent, 1)) continue;
    // Between them the input may have axes of extent 1.
    bool follows =
        !groups.empty() && groups.back().last < axis && (ir::as_int(groups.back().extent) || !ir::as_int(extent));
    for (int64_t a = follows ? groups.back().last + 1 : axis; a < axis; ++a)
      follows = follows && ir::is_int(shape[static_cast<size_t>(a)], 1);
    if (follows) {
      groups.back().last = axis;
      groups.back().extent = relax::simplified(groups.back().extent * extent);
    } else {
      groups.push_back({axis, axis, extent});
    }
  }
  if (groups.size() == axes.size()) return std::nullopt;
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return groups[a].first < groups[b].first; });
  MergedAxes merged;
  merged.axes.resize(groups.size());
  for (size_t at = 0; at < order.size(); ++at) {
    merged.shape.push_back(groups[order[at]].extent);
    merged.axes[order[at]] = static_cast<int64_t>(at);
  }
  if (merged.axes.size() > 1 && support::flip(merge_axes_order)) std::swap(merged.axes[0], merged.axes[1]);
  return merged;
}

// A reduction over fewer axes: those that follow each other and are reduced, of which not all extents are known, are
// one (where all are known, schedule rules join them), and so are those that stay behind a reduced one: vectors run
// along these.
struct MergedReduction {
  Shape shape;  // of the input
  ops::ReduceAttributes how;
};

// A known extent behind one that is not stays by itself: loops over it are even.
bool become_one_row(const Shape& extents) { return relax::constant_shape(extents) || !ir::as_int(extents.back()); }

std::optional<MergedReduction> merged_reduction(const Shape& shape, const ops::ReduceAttributes& how) {
  std::vector<bool> is_reduced(shape.size(), !how.axis);
  for (const int64_t axis : how.axis.value_or(std::vector<int64_t>()))
    is_reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)] = true;
  MergedReduction merged;
  merged.how.axis.emplace();
  bool any = false, behind = false;
  for (size_t d = 0; d < shape.size();) {
    size_t end = d + 1;
    while (end < shape.size() && is_reduced[end] == is_reduced[d]) ++end;
    const Shape run(shape.begin() + static_cast<ptrdiff_t>(d), shape.begin() + static_cast<ptrdiff_t>(end));
    const bool merges = run.size() > 1 && (is_reduced[d] ? !relax::constant_shape(run) : behind && become_one_row(run));
    any = any || merges;
    const Shape left = merges ? Shape{relax::simplified(ir::product(run))} : run;
    for (size_t k = 0; is_reduced[d] && k < left.size(); ++k)
      merged.how.axis->push_back(static_cast<int64_t>(merged.shape.size() + k));
    merged.shape.insert(merged.shape.end(), left.begin(), left.end());
    behind = behind || is_reduced[d];
    d = end;
  }
  return any ? std::optional(std::move(merged)) : std::nullopt;
}

bool is_reduction(const Operator* op) {
  return op == &ops::sum || op == &ops::prod || op == &ops::max || op == &ops::min || op == &ops::mean;
}

bool is_fusable(const Operator* op, FusionKind most) {
  return op && !op->is_view && op->fusion <= most && std::holds_alternative<TeExpression>(op->meaning);
}

// Which permutations and reductions of a function no neighbour is fused with.
class Alone {
 public:
  explicit Alone(const Function& function) : uses_(count_uses(function)) {
    for (const Binding& binding : all_bindings(function)) {
      const auto* bound = binding.as<VarBinding>();
      const auto* call = bound ? bound->value.as<Call>() : nullptr;
      if (!call) continue;
      const Operator* op = callee_operator(*call);
      computed_by_[bound->var.get()] = op;
      bool anchored = op && (op->fusion == FusionKind::reduction || op->fusion == FusionKind::product);
      bool is_image = op == &ops::conv;
      for (const Expr& arg : call->args) {
        if (!arg) continue;
        user_[arg.get()] = op;
        const bool follows = is_fusable(op, FusionKind::broadcast) && used_once(arg.get());
        anchored = anchored || (follows && anchored_.count(arg.get()));
        is_image = is_image || (follows && images_.count(arg.get()));
      }
      if (anchored) anchored_.insert(bound->var.get());
      if (is_image) images_.insert(bound->var.get());
    }
  }

  bool operator()(const Var& var, const Call& call) const {
    const ir::Node* input = call.args[0].get();
    const auto producer = computed_by_.find(input);
    const bool joins_producer = producer != computed_by_.end() && used_once(input) && !anchored_.count(input) &&
                                is_fusable(producer->second, FusionKind::injective);
    const auto user = user_.find(var.get());
    const bool joins_user =
        user != user_.end() && used_once(var.get()) && is_fusable(user->second, FusionKind::reduction);
    const bool joins_image = callee_operator(call) == &ops::permute_dims && used_once(input) && images_.count(input) &&
                             puts_channels_first(call);
    return !joins_producer && !joins_user && !joins_image;
  }

 private:
  bool used_once(const ir::Node* value) const {
    const auto it = uses_.find(value);
    return it != uses_.end() && it->second == 1;
  }

  std::unordered_map<const ir::Node*, int> uses_;
  std::unordered_map<const ir::Node*, const Operator*> computed_by_, user_;
  // What a product or reduction computes, with the elementwise operators that join it: a permutation does not.
  std::unordered_set<const ir::Node*> anchored_;
  // Of these what a convolution computes.
  std::unordered_set<const ir::Node*> images_;
};

// Over fewer axes, between two views; nothing where there are none to merge.
Result<Expr> permuted(Emitter& emitter, const Call& permute, const Shape& shape, const Shape& result) {
  const auto merged = merged_axes(shape, permuted_axes(permute));
  if (!merged) return Expr();
  Expr turned = permute.args[0];
  if (!std::is_sorted(merged->axes.begin(), merged->axes.end())) {
    turned = TRY(emitter.call(ops::reshape, {turned, make<ShapeExpr>(merged->shape)}));
    turned = TRY(emitter.call(ops::permute_dims, {turned}, make<ops::PermuteDimsAttributes>(merged->axes)));
  }
  return make_call(ops::reshape, {turned, make<ShapeExpr>(result)});
}

Result<Expr> reduced(Emitter& emitter, const Call& reduce, const Shape& shape, const Shape& result) {
  const auto merged = merged_reduction(shape, *static_cast<const ops::ReduceAttributes*>(reduce.attributes.get()));
  if (!merged) return Expr();
  const Expr rows = TRY(emitter.call(ops::reshape, {reduce.args[0], make<ShapeExpr>(merged->shape)}));
  const Expr all =
      TRY(emitter.call(*callee_operator(reduce), {rows}, make<ops::ReduceAttributes>(merged->how.axis, false)));
  return make_call(ops::reshape, {all, make<ShapeExpr>(result)});
}

}  // namespace

Result<IRModule> merge_axes(IRModule module, const PassContext&) {
  TRY(change_functions(module, [&](const std::string&, const Function& function) -> Result<Function> {
    if (function->attrs.get_or("primitive", false)) return function;  // a kernel already, in which there are no views
    const Alone alone(function);
    return rewrite_bindings(function, [&](Emitter& emitter, const Var& var, const Expr& value) -> Result<Expr> {
      const auto* call = value.as<Call>();
      const Operator* op = call ? callee_operator(*call) : nullptr;
      if (op != &ops::permute_dims && !is_reduction(op)) return Expr();
      const auto *info = as_tensor(call->args[0]), *result = as_tensor(value);
      if (!info || !info->shape || !result || !result->shape || !alone(var, *call)) return Expr();
      return op == &ops::permute_dims ? permuted(emitter, *call, *info->shape, *result->shape)
                                      : reduced(emitter, *call, *info->shape, *result->shape);
    });
  }));
  return module;
}

}  // namespace lathe::graph
