#include "graph/constant_weights.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ir/codes.h"
#include "ir/visit.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(fold_constants_swaps_values, "graph_test", "the values that were folded change places");

namespace {

// An attribute of functions.
constexpr const char* reached_limit = "folding_reached_limit";

// Nothing where a size is not known, or beyond what any machine holds.
std::optional<int64_t> byte_size(const StructInfo& info) {
  constexpr int64_t no_machine = int64_t{1} << 48;
  if (const auto* tuple = info.as<TupleStructInfo>()) {
    int64_t total = 0;
    for (const StructInfo& item : tuple->items) {
      const auto bytes = byte_size(item);
      if (!bytes || *bytes > no_machine - total) return std::nullopt;
      total += *bytes;
    }
    return total;
  }
  const auto* tensor = info.as<TensorStructInfo>();
  if (!tensor || !tensor->shape) return std::nullopt;
  int64_t count = 1;
  for (const ir::Expr& extent : *tensor->shape) {
    const auto value = ir::as_int(extent);
    if (!value || __builtin_mul_overflow(count, *value, &count) || count > no_machine) return std::nullopt;
  }
  return tensor->dtype.storage_bytes(count);
}

// Of every constant that the module's functions name, once.
int64_t constant_bytes(const ir::IRModule& module) {
  std::unordered_set<const ir::TensorDataNode*> seen;
  int64_t total = 0;
  for (const auto& [name, function] : module)
    ir::pre_order(function, [&](const ir::NodeRef& n) {
      const auto* constant = n.as<Constant>();
      if (constant && seen.insert(constant->data.get()).second)
        total += static_cast<int64_t>(constant->data->view().size());
      return true;
    });
  return total;
}

// The part of a function that constants determine, as a function of those constants.
class ConstantPart {
 public:
  // `largest`: bytes of any value in it, asked for where there is one. `left`: variables that are not in it.
  ConstantPart(const Function& function, const std::unordered_set<const ir::Node*>& left,
               support::function_ref<int64_t()> largest)
      : largest_(largest) {
    for (const Binding& binding : all_bindings(function)) {
      const auto* bound = binding.as<VarBinding>();
      if (bound && !left.count(bound->var.get()) && foldable(*bound)) take(*bound);
    }
    if (!bindings_.empty()) find_needed(function);
  }

  bool empty() const { return needed_.empty(); }
  const std::vector<Var>& needed() const { return needed_; }
  const std::vector<ir::TensorData>& inputs() const { return inputs_; }
  // Whether someone asked for the value, which takes none of the room for what is folded.
  bool was_asked_for(const Var& var) const { return asked_for_.count(var.get()) != 0; }
  int64_t input_bytes() const {
    int64_t total = 0;
    for (const ir::TensorData& input : inputs_) total += static_cast<int64_t>(input->view().size());
    return total;
  }

  ir::IRModule module(std::span<const Var> wanted) const {
    ir::IRModule module;
    module.set("main", make_function(params_, bindings_, tuple_of({wanted.begin(), wanted.end()}), {}));
    return module;
  }

 private:
  bool constant(const Expr& e) const {
    if (!e || e.is<Constant>()) return true;
    if (const auto* shape = e.as<ShapeExpr>()) {
      for (const ir::Expr& extent : shape->values)
        if (!ir::as_int(extent)) return false;
      return true;
    }
    if (const auto* scalar = e.as<PrimValue>()) return ir::as_int(scalar->value) || ir::as_float(scalar->value);
    if (const auto* tuple = e.as<Tuple>()) {
      for (const Expr& item : tuple->items)
        if (!constant(item)) return false;
      return true;
    }
    return e.is<VarNode>() && folded_.count(e.get());
  }

  bool foldable(const VarBinding& binding) {
    const Expr& value = binding.value;
    if (const auto* item = value.as<TupleGetItem>()) return constant(item->tuple) && item->tuple.is<VarNode>();
    const auto* call = value.as<Call>();
    const Operator* op = call ? callee_operator(*call) : nullptr;
    if (!op || std::holds_alternative<RuntimeKernel>(op->meaning)) return false;
    int64_t from = 0, beginnings = 0;
    std::unordered_set<const ir::Node*> counted;
    for (const Expr& arg : call->args) {
      if (!constant(arg)) return false;
      if (arg) count_once(arg, counted, from, beginnings);
    }
    const auto to = byte_size(value->struct_info);
    if (op->grows_weights) return to.has_value();
    if (!to || *to > largest_()) return false;
    beginning_[binding.var.get()] = beginnings;
    if (*to - std::max(from, beginnings) <= largest_growth_bytes) return true;
    // Padding that is cut off again is worth going through.
    if (*to > 2 * beginnings) return false;
    passing_.insert(binding.var.get());
    return true;
  }

  // The bytes of `e`, and of what it began as; a value that an operator takes many times is one value.
  void count_once(const Expr& e, std::unordered_set<const ir::Node*>& counted, int64_t& bytes,
                  int64_t& beginnings) const {
    if (const auto* tuple = e.as<Tuple>()) {
      for (const Expr& item : tuple->items) count_once(item, counted, bytes, beginnings);
      return;
    }
    if (!counted.insert(e.get()).second) return;
    const int64_t own = byte_size(e->struct_info).value_or(0);
    const auto beginning = beginning_.find(e.get());
    const int64_t first = beginning == beginning_.end() ? own : beginning->second;
    bytes += passing_.count(e.get()) ? first : own;
    beginnings += first;
  }

  // Constants of several elements become parameters, so that equal work on different weights is one function.
  Expr outside(const Expr& e) {
    if (const auto* tuple = e ? e.as<Tuple>() : nullptr) {
      std::vector<Expr> items;
      for (const Expr& item : tuple->items) items.push_back(outside(item));
      return with_struct_info(make<Tuple>(std::move(items)), e->struct_info);
    }
    const auto* constant = e ? e.as<Constant>() : nullptr;
    if (!constant || constant->data->elements() == 1) return e;
    Var& param = parameter_[constant->data.get()];
    if (!param) {
      param = relax_var("c" + std::to_string(params_.size()), e->struct_info);
      params_.push_back(param);
      inputs_.push_back(constant->data);
    }
    return param;
  }

  void take(const VarBinding& bound) {
    Expr value = bound.value;
    if (const auto* call = value.as<Call>()) {
      std::vector<Expr> args;
      for (const Expr& arg : call->args) args.push_back(outside(arg));
      const StructInfo info = value->struct_info;
      value = with_struct_info(ir::with(*call, [&](Call& copy) { copy.args = args; }), info);
    }
    folded_.insert(bound.var.get());
    const auto* made = value.as<Call>();
    const Operator* op = made ? callee_operator(*made) : nullptr;
    if (op && op->grows_weights) asked_for_.insert(bound.var.get());
    bindings_.push_back(make<VarBinding>(std::move(value), bound.var));
  }

  // Folded variables that the rest of the function, or its result, uses.
  void find_needed(const Function& function) {
    std::unordered_map<const ir::Node*, int> inside;
    for (const Binding& binding : bindings_) {
      const auto count = [&](const ir::NodeRef& n) {
        if (n.is<VarNode>()) ++inside[n.get()];
      };
      ir::NodeRef value = binding.as<VarBinding>()->value;
      value->node_class().for_each_child(*value, [&](const ir::NodeRef& child) {
        count(child);
        if (const auto* tuple = child.as<Tuple>())
          for (const Expr& item : tuple->items) count(item);
      });
    }
    const auto uses = count_uses(function);
    for (const Binding& binding : bindings_) {
      const Var& var = binding.as<VarBinding>()->var;
      const auto all = uses.find(var.get());
      if (all == uses.end() || !as_tensor(var) || passing_.count(var.get())) continue;
      if (all->second > inside[var.get()]) needed_.push_back(var);
    }
  }

  support::function_ref<int64_t()> largest_;
  std::unordered_set<const ir::Node*> folded_, asked_for_;
  std::unordered_set<const ir::Node*> passing_;             // too large to be a result, not to be gone through
  std::unordered_map<const ir::Node*, int64_t> beginning_;  // bytes of the constants that a value comes from
  std::vector<Binding> bindings_;
  std::unordered_map<const ir::Node*, Var> parameter_;
  std::vector<Var> params_;
  std::vector<ir::TensorData> inputs_;
  std::vector<Var> needed_;
};

// The values of a part, as far as they stay within limits.
class Values {
 public:
  Values(const ConstantPart& part, std::string function, const ir::PassContext& context)
      : part_(part), function_(std::move(function)), context_(context) {}

  // What comes first goes first: `room` is what all results may take, less of which is left for those of others.
  support::Status compute(int64_t& room) {
    std::vector<Var> wanted;
    for (const Var& var : part_.needed()) {
      const int64_t bytes = part_.was_asked_for(var) ? 0 : byte_size(var->struct_info).value_or(0);
      if (bytes > room) {
        leave(var, fmt::format("constants may take no {} bytes more", bytes));
        continue;
      }
      room -= bytes;
      wanted.push_back(var);
    }
    return wanted.empty() ? support::success() : compute(wanted);
  }

  const std::unordered_map<const ir::Node*, Expr>& found() const { return found_; }
  bool has_left_some() const { return has_left_some_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds time_for_failures{3};

  support::Status compute(std::span<const Var> wanted) {
    const auto start = Clock::now();
    const auto values = context_.evaluate(part_.module(wanted), "main", part_.inputs());
    if (!values.ok()) {
      if (values.diagnostics()[0].code != ir::codes::evaluation_limit) return values.diagnostics();
      failing_ += Clock::now() - start;
      return halve(wanted, values.diagnostics()[0].message);
    }
    support::require(values->size() == wanted.size(), "the evaluator gave another number of results");
    const bool backwards = support::flip(fold_constants_swaps_values);
    for (size_t i = 0; i < wanted.size(); ++i)
      found_[wanted[i].get()] =
          ir::with_origin(constant(values->at(backwards ? wanted.size() - 1 - i : i)), wanted[i]->origin());
    return support::success();
  }

  support::Status halve(std::span<const Var> wanted, const std::string& reason) {
    if (wanted.size() == 1 || failing_ > time_for_failures) {
      for (const Var& var : wanted) leave(var, reason);
      return support::success();
    }
    TRY(compute(wanted.first(wanted.size() / 2)));
    return compute(wanted.subspan(wanted.size() / 2));
  }

  void leave(const Var& var, const std::string& reason) {
    has_left_some_ = true;
    context_.remark("fold_constants", function_ + "." + var->name, reason);
  }

  const ConstantPart& part_;
  std::string function_;
  const ir::PassContext& context_;
  Clock::duration failing_{};
  bool has_left_some_ = false;
  std::unordered_map<const ir::Node*, Expr> found_;
};

// `left`: the variables of a function that are not folded yet.
using Left = std::unordered_set<const ir::Node*> (*)(const Function&);
support::Result<ir::IRModule> fold_all_but(Left left, ir::IRModule module, const ir::PassContext& context) {
  int64_t largest = 0;
  const auto largest_value = [&] {
    if (largest == 0) largest = constant_bytes(module) + largest_folded_bytes;
    return largest;
  };
  std::optional<int64_t> room;
  const auto fold = [&](const std::string& name, const Function& function) -> Result<Function> {
    if (function->attrs.get_or("primitive", false)) return function;
    const ConstantPart part(function, left(function), largest_value);
    if (part.empty()) return function;
    if (!room) room = largest_value();
    if (!context.evaluate) {
      context.remark("fold_constants", name, "the context has no evaluator");
      return function;
    }
    Values values(part, name, context);
    // Rows that fold come several times, and the room is for all of them: what one has left, the next does not take,
    // but for weights in another layout, padded at the most to twice their size.
    int64_t room_of_weights = 2 * part.input_bytes();
    TRY(values.compute(function->attrs.get_or(reached_limit, false) ? room_of_weights : *room));
    if (values.found().empty()) return function;
    const auto replace = [&](Emitter&, const Var& var, const Expr&) -> Result<Expr> {
      const auto it = values.found().find(var.get());
      return it == values.found().end() ? Expr() : it->second;
    };
    Function folded = TRY(rewrite_bindings(function, replace));
    if (values.has_left_some())
      folded = ir::with(*folded, [](relax::FunctionNode& copy) { copy.attrs.set(reached_limit, true); });
    return folded;
  };
  TRY(change_functions(module, fold));
  return module;
}

std::unordered_set<const ir::Node*> nothing(const Function&) { return {}; }

}  // namespace

support::Result<ir::IRModule> fold_constants(ir::IRModule module, const ir::PassContext& context) {
  return fold_all_but(nothing, std::move(module), context);
}

support::Result<ir::IRModule> fold_all_but_scaled_kernels(ir::IRModule module, const ir::PassContext& context) {
  const bool looks_into_kernels = context.config.get_or(winograd_wanted, false);
  return fold_all_but(looks_into_kernels ? nothing : scaled_kernels, std::move(module), context);
}

}  // namespace lathe::graph
