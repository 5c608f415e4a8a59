#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(merge_branches_off_centre, "graph_test", "a smaller kernel is added to the corner of the larger one");

namespace {

// A factor for each channel; empty: 1.
using Factors = std::vector<double>;

// What a sum adds, by its factors.
struct Term {
  Expr value;
  Factors factors;
};

// A term that is linear in `input`: a convolution, or `input` itself.
struct Branch {
  Expr input;
  const ops::ConvAttributes* how = nullptr;  // of a convolution
  const ir::TensorDataNode* kernel = nullptr;
  Factors factors;
  size_t term = 0;  // its place in the sum

  int64_t taps(size_t axis) const { return how ? kernel->shape[axis + 2] : 1; }
  int64_t count() const {
    return how ? kernel->elements() / std::max<int64_t>(kernel->shape[0] * kernel->shape[1], 1) : 1;
  }
  int64_t step(size_t axis) const { return at(&ops::ConvAttributes::strides, axis, 1); }
  int64_t apart(size_t axis) const { return at(&ops::ConvAttributes::dilation, axis, 1); }
  int64_t before(size_t axis) const { return at(&ops::ConvAttributes::padding, axis, 0); }
  double factor(int64_t channel) const { return factors.empty() ? 1 : factors[static_cast<size_t>(channel)]; }

 private:
  int64_t at(std::vector<int64_t> ops::ConvAttributes::* list, size_t axis, int64_t otherwise) const {
    return how && axis < (how->*list).size() ? (how->*list)[axis] : otherwise;
  }
};

const ir::TensorDataNode* constant_of(const Expr& e) {
  const auto* constant = e ? e.as<Constant>() : nullptr;
  return constant && constant->data->dtype == ir::DType::float32() ? constant->data.get() : nullptr;
}

// A constant of one element for each channel, which is axis `axis` of so many.
const ir::TensorDataNode* per_channel(const Expr& e, int64_t channels, int64_t axis, int64_t rank) {
  const ir::TensorDataNode* data = constant_of(e);
  if (!data || data->elements() != channels || static_cast<int64_t>(data->shape.size()) > rank) return nullptr;
  const int64_t own = axis - rank + static_cast<int64_t>(data->shape.size());
  if (own < 0 && channels != 1) return nullptr;
  return own < 0 || data->shape[static_cast<size_t>(own)] == channels ? data : nullptr;
}

// Where the kernel of `small` begins in that of `large` on each axis, so that both read the same elements; nothing
// where it reaches beyond it.
std::optional<std::vector<int64_t>> place_in(const Branch& large, const Branch& small) {
  const auto& shape = large.kernel->shape;
  if (!small.how && shape[0] != shape[1] * large.how->groups) return std::nullopt;
  if (small.how && (small.how->groups != large.how->groups || small.kernel->shape.size() != shape.size() ||
                    small.kernel->shape[0] != shape[0] || small.kernel->shape[1] != shape[1]))
    return std::nullopt;
  std::vector<int64_t> place;
  for (size_t axis = 0; axis + 2 < shape.size(); ++axis) {
    const int64_t distance = large.before(axis) - small.before(axis), apart = large.apart(axis);
    if (large.step(axis) != small.step(axis) || distance < 0 || distance % apart != 0) return std::nullopt;
    if (small.taps(axis) > 1 && small.apart(axis) != apart) return std::nullopt;
    if (distance / apart + small.taps(axis) > large.taps(axis)) return std::nullopt;
    place.push_back(support::flip(merge_branches_off_centre) ? 0 : distance / apart);
  }
  return place;
}

// Adds the kernel of `small` to one like `large`'s, in row-major order.
void add_kernel(std::vector<double>& sum, const Branch& large, const Branch& small, const std::vector<int64_t>& place) {
  const auto& shape = large.kernel->shape;
  const int64_t taps = large.count(), own = small.count();
  std::vector<int64_t> targets(static_cast<size_t>(own));
  for (int64_t tap = 0; tap < own; ++tap) {
    int64_t left = tap, target = 0, around = 1;
    for (size_t axis = place.size(); axis-- > 0; around *= large.taps(axis)) {
      target += around * (place[axis] + left % small.taps(axis));
      left /= small.taps(axis);
    }
    targets[static_cast<size_t>(tap)] = target;
  }
  for (int64_t out = 0; out < shape[0]; ++out) {
    const double scale = small.factor(out);
    if (!small.how) {
      sum[static_cast<size_t>((out * shape[1] + out % shape[1]) * taps + targets[0])] += scale;
      continue;
    }
    for (int64_t in = 0; in < shape[1]; ++in)
      for (int64_t tap = 0; tap < own; ++tap)
        sum[static_cast<size_t>((out * shape[1] + in) * taps + targets[static_cast<size_t>(tap)])] +=
            scale * ir::float_at(*small.kernel, (out * shape[1] + in) * own + tap);
  }
}

Expr constant_of(const std::vector<double>& values, const std::vector<int64_t>& shape) {
  return relax::constant(
      ir::tensor_of<float>(ir::DType::float32(), shape, std::vector<float>(values.begin(), values.end())));
}

bool same_info(const Expr& a, const Expr& b) {
  return as_tensor(a) && as_tensor(b) && ir::structural_equal(a->struct_info, b->struct_info);
}

Factors multiplied(Factors factors, const ir::TensorDataNode& by) {
  factors.resize(static_cast<size_t>(by.elements()), 1);
  for (int64_t i = 0; i < by.elements(); ++i) factors[static_cast<size_t>(i)] *= ir::float_at(by, i);
  return factors;
}

// A product with a constant of one element for each channel.
struct Scaling {
  Expr of;
  const ir::TensorDataNode* by = nullptr;
};

// The sums of one function.
class BranchMerger {
 public:
  explicit BranchMerger(const Function& function) : uses_(count_uses(function)) {
    std::unordered_set<const ir::Node*> linear;
    for (const Binding& binding : all_bindings(function)) {
      const auto* bound = binding.as<VarBinding>();
      const auto* info = bound ? as_tensor(bound->var) : nullptr;
      const Call* call = bound ? bound->value.as<Call>() : nullptr;
      if (!call || !info || info->dtype != ir::DType::float32() || info->ndim < 3) continue;
      const Operator* op = callee_operator(*call);
      if (op != &ops::add && op != &ops::subtract && (op != &ops::multiply || !scaling(*call, bound->var))) continue;
      linear.insert(bound->var.get());
      roots_.insert(bound->var.get());
      for (const Expr& operand : call->args)
        if (linear.count(operand.get()) && used_once(operand) && same_info(operand, bound->var)) {
          parts_.insert(operand.get());
          roots_.erase(operand.get());
        }
    }
  }

  Result<Expr> operator()(Emitter& emitter, const Var& var, const Expr& value) {
    if (!roots_.count(var.get()) || !value.is<Call>()) return Expr();
    return Sum(*this, emitter, var, *value.as<Call>()).merged();
  }

 private:
  // One sum, in its channels.
  class Sum {
   public:
    Sum(const BranchMerger& merger, Emitter& emitter, const Var& var, const Call& call)
        : merger_(merger), emitter_(emitter), var_(var), channels_(channels_of(var)) {
      if (!channels_) return;
      take_apart(call);
      for (size_t i = 0; i < terms_.size(); ++i)
        if (auto branch = branch_of(i)) branches_.push_back(std::move(*branch));
      // The largest kernels first, in order where they are equal.
      const auto rank = [](const Branch& b) { return std::pair(b.how ? -b.count() : 0, b.term); };
      std::sort(branches_.begin(), branches_.end(),
                [&](const Branch& a, const Branch& b) { return rank(a) < rank(b); });
    }

    // The sum with each kernel in the largest that it fits into; null where that saves nothing.
    Result<Expr> merged() {
      for (const Branch& large : branches_)
        if (large.how && !taken_[large.term]) merge_into(large);
      if (hosts_.empty()) return Expr();
      std::vector<double> bias;
      std::vector<size_t> others;
      for (size_t i = 0; i < terms_.size(); ++i) {
        if (taken_[i]) continue;
        if (const auto* own = per_channel(terms_[i].value, *channels_, 1, rank()))
          add_bias(bias, *own, terms_[i].factors);
        else
          others.push_back(i);
      }
      size_t operations = hosts_.size() + others.size() + (bias.empty() ? 0 : 1) - 1;
      for (const size_t i : others) operations += terms_[i].factors.empty() ? 0 : 1;
      const bool fewer_convolutions = hosts_.size() < convolutions_;
      if (!fewer_convolutions && operations >= operations_) return Expr();

      Expr sum;
      const auto add = [&](const Expr& term) -> support::Status {
        sum = sum ? TRY(emitter_.call(ops::add, {sum, term})) : term;
        return support::success();
      };
      for (const Host& host : hosts_) {
        const Call& conv = *as_call_of(emitter_.value_of(terms_[host.large->term].value), "nn.conv");
        const std::vector<Expr> operands{host.large->input, kernel_of(host)};
        TRY(add(TRY(emitter_.call(ops::conv, operands, conv.attributes, "branches"))));
      }
      if (!bias.empty()) TRY(add(constant_of(bias, around_channels())));
      for (const size_t i : others) TRY(add(TRY(scaled(terms_[i]))));
      return sum;
    }

   private:
    // A convolution, and what fits into its kernel, and where.
    struct Host {
      const Branch* large = nullptr;
      std::vector<std::pair<const Branch*, std::vector<int64_t>>> small;
    };

    int64_t rank() const { return as_tensor(var_)->ndim; }
    std::vector<int64_t> around_channels() const {
      std::vector<int64_t> shape(static_cast<size_t>(rank() - 1), 1);
      shape[0] = *channels_;
      return shape;
    }

    void take_apart(const Call& call) {
      std::vector<Term> open;
      const auto open_operands = [&](const Call& linear, const Factors& factors) {
        ++operations_;
        if (const auto scaling = merger_.scaling(linear, var_)) {
          open.push_back({scaling->of, multiplied(factors, *scaling->by)});
          return;
        }
        Factors second = factors;
        if (callee_operator(linear) == &ops::subtract) {
          second.resize(static_cast<size_t>(*channels_), 1);
          for (double& factor : second) factor = -factor;
        }
        open.push_back({linear.args[1], std::move(second)});
        open.push_back({linear.args[0], factors});
      };
      open_operands(call, {});
      while (!open.empty()) {
        Term term = std::move(open.back());
        open.pop_back();
        const Expr value = merger_.parts_.count(term.value.get()) ? emitter_.value_of(term.value) : Expr();
        if (value && value.is<Call>())
          open_operands(*value.as<Call>(), term.factors);
        else
          terms_.push_back(std::move(term));
      }
      taken_.resize(terms_.size());
    }

    std::optional<Branch> branch_of(size_t i) {
      const Term& term = terms_[i];
      if (!same_info(term.value, var_)) return std::nullopt;
      Branch branch{.input = term.value, .factors = term.factors, .term = i};
      const Call* conv = merger_.used_once(term.value) ? as_call_of(emitter_.value_of(term.value), "nn.conv") : nullptr;
      if (!conv) return branch;
      ++convolutions_;
      const auto& how = *static_cast<const ops::ConvAttributes*>(conv->attributes.get());
      if (how.data_layout != "NCHW" || how.kernel_layout != "OIHW" || !how.out_layout.empty() ||
          how.auto_pad != "NOTSET" || !how.zero_border.empty())
        return std::nullopt;
      // The kernel, or its product with a factor for each channel of the result, which waits to be packed as well.
      branch.kernel = constant_of(conv->args[1]);
      if (const Call* product = as_call_of(emitter_.value_of(conv->args[1]), "multiply")) {
        branch.kernel = constant_of(product->args[0]);
        const auto* by = branch.kernel ? per_channel(product->args[1], *channels_, 0, rank()) : nullptr;
        if (!by) return std::nullopt;
        branch.factors = multiplied(std::move(branch.factors), *by);
      }
      if (!branch.kernel || branch.kernel->elements() == 0) return std::nullopt;
      branch.input = conv->args[0];
      branch.how = &how;
      return branch;
    }

    // Takes all kernels that fit into this one.
    void merge_into(const Branch& large) {
      Host host{&large, {}};
      taken_[large.term] = true;
      for (const Branch& small : branches_) {
        if (taken_[small.term] || small.input != large.input) continue;
        auto place = place_in(large, small);
        if (!place) continue;
        host.small.emplace_back(&small, std::move(*place));
        taken_[small.term] = true;
      }
      hosts_.push_back(std::move(host));
    }

    static Expr kernel_of(const Host& host) {
      const Branch& large = *host.large;
      std::vector<double> kernel(static_cast<size_t>(large.kernel->elements()));
      add_kernel(kernel, large, large, std::vector<int64_t>(large.kernel->shape.size() - 2));
      for (const auto& [small, place] : host.small) add_kernel(kernel, large, *small, place);
      return constant_of(kernel, large.kernel->shape);
    }

    void add_bias(std::vector<double>& bias, const ir::TensorDataNode& own, const Factors& factors) const {
      bias.resize(static_cast<size_t>(*channels_));
      for (size_t channel = 0; channel < bias.size(); ++channel)
        bias[channel] += ir::float_at(own, static_cast<int64_t>(channel)) * (factors.empty() ? 1 : factors[channel]);
    }

    Result<Expr> scaled(const Term& term) {
      if (term.factors.empty()) return term.value;
      return emitter_.call(ops::multiply, {term.value, constant_of(term.factors, around_channels())});
    }

    const BranchMerger& merger_;
    Emitter& emitter_;
    const Var var_;
    const std::optional<int64_t> channels_;
    std::vector<Term> terms_;       // in order
    std::vector<Branch> branches_;  // of these, the largest kernels first
    std::vector<bool> taken_;       // terms that are in a kernel
    size_t operations_ = 0, convolutions_ = 0;
    std::vector<Host> hosts_;
  };

  static std::optional<int64_t> channels_of(const Expr& tensor) {
    const auto* info = as_tensor(tensor);
    return info && info->shape ? ir::as_int((*info->shape)[1]) : std::nullopt;
  }

  bool used_once(const Expr& e) const {
    const auto it = uses_.find(e.get());
    return it != uses_.end() && it->second == 1;
  }

  static std::optional<Scaling> scaling(const Call& call, const Expr& result) {
    if (callee_operator(call) != &ops::multiply) return std::nullopt;
    const auto channels = channels_of(result);
    for (const size_t i : {0, 1}) {
      const auto* by = channels ? per_channel(call.args[i], *channels, 1, as_tensor(result)->ndim) : nullptr;
      if (by && same_info(call.args[1 - i], result)) return Scaling{call.args[1 - i], by};
    }
    return std::nullopt;
  }

  const std::unordered_map<const ir::Node*, int> uses_;
  std::unordered_set<const ir::Node*> roots_;  // variables bound to sums, differences and products with constants
  std::unordered_set<const ir::Node*> parts_;  // those that are part of one of these, and nothing else
};

}  // namespace

Result<IRModule> merge_branches(IRModule module, const PassContext&) {
  TRY(change_functions(module, [](const std::string&, const Function& function) {
    return rewrite_bindings(function, BranchMerger(function));
  }));
  return module;
}

}  // namespace lathe::graph
