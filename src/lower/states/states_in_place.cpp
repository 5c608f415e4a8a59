#include <fmt/format.h>

#include <unordered_set>

#include "arith/analyzer.h"
#include "graph/rewrite_bindings.h"
#include "ir/visit.h"
#include "lower/legalize/versions.h"
#include "lower/other_kernels.h"
#include "lower/states/states.h"
#include "ops/operators.h"
#include "relax/call_tir.h"
#include "relax/dim_sizes.h"
#include "relax/infer.h"
#include "support/mutation.h"
#include "tir/parts.h"

namespace lathe::lower {

LATHE_FAULT(states_in_place_too_early, "lower_test", "what is new is written over the last element that counts");

using namespace relax;  // NOLINT: the subject of this file

namespace {

constexpr int64_t most_elements = int64_t{1} << 40;  // along an axis

// A state that a kernel puts together of what there was and what is new.
struct Grown {
  size_t number;  // of the state
  Var param;
  const ir::Node* result;  // the variable of what it becomes
  size_t axis;
  ir::Var length;    // how many elements along the axis count before the run
  ir::Expr next;     // and behind it
  int64_t capacity;  // the most of these
  CallTir call;
  tir::Parts parts;
};

// A value that is a state as it is behind the run, under that shape or under another.
struct Whole {
  size_t state;
  size_t axis;
};

class StatePlacing {
 public:
  StatePlacing(ir::IRModule& module, const ir::PassContext& context, const relax::Function& function)
      : module_(module), context_(context), function_(function), states_(states_of(*function)) {}

  Result<relax::Function> run() {
    results_ = function_->body.as<SeqExpr>()->body.as<Tuple>()->items;
    TRY(find_grown());
    while (drop_unfit()) wholes_.clear();
    if (grown_.empty()) return function_;
    return rewritten();
  }

  const std::set<std::string>& replaced() const { return replaced_; }

 private:
  size_t first_param() const { return function_->params.size() - states_.size(); }

  // ---- which states ----

  support::Status find_grown() {
    const DimSizesByName told = TRY(told_sizes(*function_));
    std::unordered_map<const ir::Node*, Expr> values;
    for (const Binding& binding : graph::all_bindings(function_))
      if (const auto* bound = binding.as<VarBinding>()) values[bound->var.get()] = bound->value;
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].is_in_place()) continue;
      const Var& param = function_->params[first_param() + i];
      const Expr& result = results_.at(static_cast<size_t>(states_[i].output));
      const auto* info = as_tensor(param);
      const auto value = values.find(result.get());
      const auto call = value == values.end() ? std::nullopt : as_call_tir(value->second);
      const bool begins_with_it = info && info->shape && call && call->outputs.size() == 1 &&
                                  call->inplace_indices.empty() && !call->args.empty() &&
                                  call->args[0].get() == param.get();
      const auto kernel = begins_with_it ? module_.find_as<tir::PrimFunc>(call->function) : nullptr;
      const auto parts = kernel ? tir::as_concatenation(*kernel) : std::nullopt;
      if (!parts || parts->parts[0].param != 0) {
        decline(i, "no kernel puts it together of what there was and what is new");
        continue;
      }
      const std::vector<ir::Expr>& shape = *info->shape;
      const auto* length = shape[parts->axis].as<ir::VarNode>();
      const ir::Expr& next = (*as_tensor(result)->shape)[parts->axis];
      bool is_fixed = true;
      for (size_t d = 0; d < shape.size(); ++d) is_fixed = is_fixed && (d == parts->axis || ir::as_int(shape[d]));
      const auto capacity = most_of(next, told);
      if (!length || !is_fixed || !capacity) {
        decline(i, length && is_fixed ? fmt::format("nothing bounds its length, '{}'", length->name)
                                      : "it grows along no axis alone");
        continue;
      }
      grown_.push_back({i, param, result.get(), parts->axis, ir::Var(length), next, *capacity, *call, *parts});
    }
    return support::success();
  }

  static std::optional<int64_t> most_of(const ir::Expr& extent, const DimSizesByName& told) {
    arith::Analyzer known;
    ir::pre_order(extent, [&](const ir::NodeRef& n) {
      const auto* symbol = n.as<ir::VarNode>();
      const auto sizes = symbol ? told.find(symbol->name) : told.end();
      if (sizes != told.end() && sizes->second.most != DimSizes::unlimited)
        known.update(ir::Var(symbol), arith::ConstIntBound{sizes->second.least, sizes->second.most});
      return true;
    });
    const int64_t most = known.const_int_bound(extent).max_value;
    return most <= most_elements ? std::optional(most) : std::nullopt;
  }

  void decline(size_t state, const std::string& why) {
    context_.remark("states_in_place", function_->params[first_param() + state]->name,
                    "the state is not written in place: " + why);
  }

  // Takes out one that something needs otherwise; false where nothing does.
  bool drop_unfit() {
    for (size_t k = 0; k < grown_.size(); ++k) {
      wholes_[grown_[k].result] = {k, grown_[k].axis};
      for (size_t other = 0; other < k; ++other)
        if (grown_[other].length.same_as(grown_[k].length) &&
            !arith::Analyzer().can_prove_equal(grown_[other].next, grown_[k].next))
          return drop(
              k, fmt::format("its length, '{}', becomes another than that of other states", grown_[k].length->name));
    }
    for (const Binding& binding : graph::all_bindings(function_)) {
      const auto* bound = binding.as<VarBinding>();
      if (!bound) {
        if (const auto k = used_by(binding.as<MatchCast>()->value)) return drop(*k, "it is no kernel that reads it");
        continue;
      }
      if (wholes_.count(bound->var.get()) && is_put_together(*bound)) continue;
      if (!used_by(bound->value)) continue;
      if (const auto k = reads_otherwise(*bound)) return drop(*k, "'" + bound->var->name + "' reads it otherwise");
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      const auto k = used_by(results_[i]);
      if (k && (results_[i].get() != grown_[*k].result || static_cast<int64_t>(i) != states_[grown_[*k].number].output))
        return drop(*k, "it is a result, too");
    }
    return false;
  }

  bool drop(size_t k, const std::string& why) {
    decline(grown_[k].number, why);
    grown_.erase(grown_.begin() + static_cast<ptrdiff_t>(k));
    return true;
  }

  // Whether it is the call that is to write in place, and reads nothing else of states.
  bool is_put_together(const VarBinding& bound) const {
    const Grown& grown = grown_[wholes_.at(bound.var.get()).state];
    return std::all_of(grown.call.args.begin() + 1, grown.call.args.end(),
                       [&](const Expr& arg) { return !used_by(arg); });
  }

  // The state that an expression has to do with.
  std::optional<size_t> used_by(const Expr& e) const {
    std::optional<size_t> found;
    ir::pre_order(e, [&](const ir::NodeRef& n) {
      if (!n.is<VarNode>()) return true;
      if (const auto whole = wholes_.find(n.get()); whole != wholes_.end()) found = whole->second.state;
      for (size_t k = 0; k < grown_.size(); ++k)
        if (grown_[k].param.get() == n.get()) found = k;
      return false;
    });
    return found;
  }

  std::optional<size_t> reads_otherwise(const VarBinding& bound) {
    if (const auto view = view_of_whole(bound)) {
      wholes_[bound.var.get()] = *view;
      return std::nullopt;
    }
    const auto call = as_call_tir(bound.value);
    if (!call || !call->inplace_indices.empty()) return used_by(bound.value);
    for (size_t i = 0; i < call->args.size(); ++i) {
      const auto used = used_by(call->args[i]);
      if (!used) continue;
      const auto whole = wholes_.find(call->args[i].get());
      if (whole == wholes_.end() || !can_read(call->function, i)) return used;
    }
    return std::nullopt;
  }

  // A view in which the axis is one axis still.
  std::optional<Whole> view_of_whole(const VarBinding& bound) const {
    const auto* call = bound.value.as<Call>();
    const Operator* op = call ? callee_operator(*call) : nullptr;
    const auto whole = op && op->is_view ? wholes_.find(call->args[0].get()) : wholes_.end();
    const auto* info = as_tensor(bound.var);
    if (whole == wholes_.end() || !info || !info->shape) return std::nullopt;
    const auto [state, axis] = whole->second;
    const int64_t inner = inner_of(*as_tensor(call->args[0])->shape, axis);
    for (size_t d = 0; d < info->shape->size(); ++d)
      if (!ir::as_int((*info->shape)[d]) && inner_of(*info->shape, d) == inner &&
          arith::Analyzer().can_prove_equal((*info->shape)[d], grown_[state].next))
        return Whole{state, d};
    return std::nullopt;
  }

  // The elements behind one of the axis; -1 where only the run knows.
  static int64_t inner_of(const std::vector<ir::Expr>& shape, size_t axis) {
    int64_t inner = 1;
    for (size_t d = axis + 1; d < shape.size(); ++d) {
      const auto extent = ir::as_int(shape[d]);
      if (!extent) return -1;
      inner *= *extent;
    }
    return inner;
  }

  bool can_read(const std::string& name, size_t param) const {
    const auto kernel = module_.find_as<tir::PrimFunc>(name);
    if (!kernel || !tir::has_plain_uses(*kernel, param)) return false;
    const std::vector<Version> versions = versions_of(*kernel);
    return std::all_of(versions.begin(), versions.end(), [&](const Version& version) {
      const auto other = module_.find_as<tir::PrimFunc>(version.function);
      return other && tir::has_plain_uses(*other, param);
    });
  }

  // ---- the new program ----

  Result<relax::Function> rewritten() {
    std::vector<Var> params = function_->params;
    for (Grown& grown : grown_) {
      std::vector<ir::Expr> shape = *as_tensor(grown.param)->shape;
      shape[grown.axis] = ir::int64(grown.capacity);
      Var& param = params[first_param() + grown.number];
      param = ir::with_origin(relax_var(param->name, tensor_info(std::move(shape), as_tensor(param)->dtype)),
                              param->origin());
      memory_.push_back(param);
    }
    const relax::Function changed =
        TRY(graph::rewrite_bindings(function_, [&](graph::Emitter& emitter, const Var& var, const Expr& value) {
          return rewrite(emitter, var, value);
        }));

    // Results and states anew: those that are replaced, then the lengths.
    const std::vector<Expr> given = changed->body.as<SeqExpr>()->body.as<Tuple>()->items;
    const auto* given_names = function_->attrs.get<ir::Value::List>("output_names");
    std::vector<Expr> results;
    ir::Value::List names;
    std::vector<State> states = states_;
    for (size_t i = 0; i < given.size(); ++i) {
      const auto grown = std::find_if(grown_.begin(), grown_.end(), [&](const Grown& one) {
        return states_[one.number].output == static_cast<int64_t>(i);
      });
      if (grown != grown_.end()) {
        states[grown->number] = {-1, static_cast<int64_t>(grown->axis), grown->length->name};
        continue;
      }
      for (size_t k = 0; k < states_.size(); ++k)
        if (states_[k].output == static_cast<int64_t>(i)) states[k].output = static_cast<int64_t>(results.size());
      if (given_names && i < given_names->size()) names.push_back((*given_names)[i]);
      results.push_back(given[i]);
    }
    std::unordered_set<const ir::Node*> counted;
    for (const Grown& grown : grown_) {
      if (!counted.insert(grown.length.get()).second) continue;
      params.push_back(relax_var(grown.length->name + "_size", shape_info(grown.length)));
      states.push_back({.output = static_cast<int64_t>(results.size())});
      names.emplace_back(grown.length->name);
      results.push_back(
          with_struct_info(ir::make<ShapeExpr>(std::vector<ir::Expr>{grown.next}), shape_info(grown.next)));
    }
    ir::Attributes attrs = function_->attrs;
    attrs.set("output_names", std::move(names));
    set_states(attrs, states);
    context_.remark(
        "states_in_place", "main",
        fmt::format("{} states are written in place, with room for {} elements", grown_.size(), grown_[0].capacity));
    return ir::with_origin(graph::make_function(std::move(params), graph::all_bindings(changed),
                                                tuple_of(std::move(results)), attrs, function_->is_pure),
                           function_->origin());
  }

  static StructInfo shape_info(const ir::Expr& size) {
    return ir::make<ShapeStructInfo>(std::optional(std::vector<ir::Expr>{size}));
  }

  Result<Expr> rewrite(graph::Emitter& emitter, const Var& var, const Expr& value) {
    const auto whole = wholes_.find(var.get());
    if (whole != wholes_.end()) {
      const Grown& grown = grown_[whole->second.state];
      if (var.get() == grown.result) return written(emitter, whole->second.state, value->origin());
      std::vector<ir::Expr> shape = *as_tensor(var)->shape;
      shape[whole->second.axis] = ir::int64(grown.capacity);
      const Expr view = TRY(emitter.call(
          ops::reshape, {value.as<Call>()->args[0], ir::make<ShapeExpr>(std::move(shape))}, {}, var->name));
      read_[view.get()] = whole->second;
      return view;
    }
    const auto call = as_call_tir(value);
    if (!call) return Expr();
    const CallTir& before = *call;
    std::string function = before.function;
    for (size_t i = 0; i < before.args.size(); ++i)
      if (const auto read = read_.find(before.args[i].get()); read != read_.end())
        function = reading(function, i, read->second.axis, grown_[read->second.state].capacity);
    if (function == before.function) return Expr();
    return ir::with_origin(TRY(call_tir(function, before.args, before.outputs, before.scalars)), value->origin());
  }

  // The kernel whose parameter is the part that counts of memory for so many elements along the axis.
  std::string reading(const std::string& function, size_t param, size_t axis, int64_t capacity) {
    if (const auto known = reading_.find({function, param, axis, capacity}); known != reading_.end())
      return known->second;
    const auto kernel = module_.find_as<tir::PrimFunc>(function);
    tir::Function made = tir::with_part_of_whole(*kernel, param, axis, capacity, true);
    std::vector<Version> versions = versions_of(*kernel);
    for (Version& version : versions) version.function = reading(version.function, param, axis, capacity);
    if (!versions.empty())
      made = ir::with(*ir::cast<tir::PrimFunc>(made),
                      [&](tir::PrimFunc& copy) { copy.attrs.set("versions", to_value(versions)); });
    return reading_[{function, param, axis, capacity}] = add(made, function);
  }

  // The call that writes what is new behind what counts.
  Result<Expr> written(graph::Emitter& emitter, size_t state, const ir::Origin& origin) {
    const Grown& grown = grown_[state];
    std::string& name = appending_[{grown.call.function, grown.axis, grown.capacity}];
    if (name.empty()) {
      const auto kernel = module_.find_as<tir::PrimFunc>(grown.call.function);
      std::vector<bool> kept(grown.parts.parts.size(), true);
      kept[0] = false;
      const tir::Function rest = ir::with(*ir::cast<tir::PrimFunc>(tir::with_parts(*kernel, grown.parts, kept)),
                                          [](tir::PrimFunc& copy) { copy.attrs.erase("versions"); });
      name = add(tir::with_part_of_whole(*ir::cast<tir::PrimFunc>(rest), grown.call.args.size() - 1, grown.axis,
                                         grown.capacity, true),
                 grown.call.function);
    }
    std::vector<Expr> args;
    for (size_t i = 1; i < grown.call.args.size(); ++i) args.push_back(emitter.replaced(grown.call.args[i]));
    args.push_back(memory_[state]);
    std::vector<ir::Expr> scalars = grown.call.scalars;
    if (support::flip(states_in_place_too_early))
      for (ir::Expr& scalar : scalars) scalar = scalar - 1;
    const Expr all = emitter.emit(TRY(call_tir_inplace(name, std::move(args), std::move(scalars), origin)),
                                  static_cast<const VarNode*>(grown.result)->name);
    read_[all.get()] = {state, grown.axis};
    return all;
  }

  std::string add(const tir::Function& kernel, const std::string& of) {
    replaced_.insert(of);
    return add_kernel(module_, kernel, of.ends_with("_state") ? of : of + "_state");
  }

  ir::IRModule& module_;
  const ir::PassContext& context_;
  const relax::Function& function_;
  const std::vector<State> states_;
  std::vector<Expr> results_;
  std::vector<Grown> grown_;
  std::unordered_map<const ir::Node*, Whole> wholes_;  // by variables of the program as it was
  std::unordered_map<const ir::Node*, Whole> read_;    // and as it becomes
  std::vector<Expr> memory_;                           // of what has grown, the parameters
  std::set<std::string> replaced_;                     // kernels that others took the place of
  std::map<std::tuple<std::string, size_t, int64_t>, std::string> appending_;
  std::map<std::tuple<std::string, size_t, size_t, int64_t>, std::string> reading_;
};

}  // namespace

support::Result<ir::IRModule> states_in_place(ir::IRModule module, const ir::PassContext& context) {
  const auto function = module.find_as<FunctionNode>("main");
  if (!function) return module;
  TRY(check_states(*function));
  if (states_of(*function).empty()) return module;
  StatePlacing placing(module, context, function);
  module.set("main", TRY(placing.run()));
  drop_uncalled(module, placing.replaced());
  return module;
}

}  // namespace lathe::lower
