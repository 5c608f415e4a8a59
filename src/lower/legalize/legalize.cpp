#include "lower/legalize/legalize.h"

#include <unordered_set>

#include "ir/visit.h"
#include "lower/legalize/at_sizes.h"
#include "lower/legalize/group.h"
#include "lower/legalize/versions.h"
#include "relax/dim_sizes.h"
#include "support/mutation.h"

namespace lathe::lower {

LATHE_FAULT(legalize_merges_parameters, "lower_test", "operands of one type are taken for one operand");

namespace {

using namespace relax;  // NOLINT: the subject of this pass

constexpr size_t most_versions = 8;  // of one kernel

class Legalize {
 public:
  Legalize(ir::IRModule module, const ir::PassContext& context)
      : context_(context), groups_(module), module_(std::move(module)) {}

  Result<ir::IRModule> run() {
    const std::vector<ir::IRModule::Entry> functions = module_.functions();
    if (const auto main = module_.find_as<relax::FunctionNode>("main")) sizes_ = TRY(told_sizes(*main));
    for (const auto& [name, function] : functions) {
      if (!function.is<relax::FunctionNode>() || function->attrs.get_or("primitive", false)) continue;
      module_.set(name, TRY(rewrite(ir::cast<relax::FunctionNode>(function))));
    }
    return without_groups();
  }

 private:
  // The module without the groups that are lowered now; a PrimFunc may have taken the name of one.
  ir::IRModule without_groups() const {
    ir::IRModule lowered;
    lowered.attrs = module_.attrs;
    for (const auto& [name, function] : module_)
      if (!function.is<relax::FunctionNode>() || !function->attrs.get_or("primitive", false))
        lowered.set(name, function);
    return lowered;
  }

  Result<relax::Function> rewrite(const relax::Function& function) {
    const auto* body = function->body.as<SeqExpr>();
    std::vector<BindingBlock> blocks;
    for (const BindingBlock& block : body->blocks) {
      std::vector<Binding> bindings;
      for (const Binding& binding : block->bindings) bindings.push_back(TRY(rewrite(binding)));
      blocks.push_back(make<BindingBlockNode>(std::move(bindings), block->is_dataflow));
    }
    Expr sequence = make<SeqExpr>(std::move(blocks), body->body);
    sequence = with_struct_info(std::move(sequence), body->struct_info);
    return ir::with(*function, [&](relax::FunctionNode& copy) { copy.body = sequence; });
  }

  Result<Binding> rewrite(const Binding& binding) {
    const auto* bound = binding.as<VarBinding>();
    const auto* call = bound ? bound->value.as<Call>() : nullptr;
    if (!call) return binding;
    std::optional<Expr> lowered;
    if (const auto* callee = call->callee.as<GlobalVar>()) {
      const relax::Function group = groups_.find_as<relax::FunctionNode>(callee->name);
      if (!group || !group->attrs.get_or("primitive", false)) return binding;
      lowered = TRY(lower_function(callee->name, group, *bound, *call));
    } else if (const Operator* op = callee_operator(*call); op && !op->is_view && op->name != "call_tir") {
      if (std::holds_alternative<RuntimeKernel>(op->meaning)) return binding;
      lowered = TRY(lower_single(*op, *bound, *call));
    }
    if (!lowered) return binding;
    Expr value = ir::with_origin(std::move(*lowered), bound->value->origin());
    return Binding(make<VarBinding>(std::move(value), bound->var));
  }

  Result<std::optional<Expr>> lower_function(const std::string& name, const relax::Function& function,
                                             const VarBinding& binding, const Call& call) {
    if (const auto it = by_group_.find(name); it != by_group_.end())
      return called({it->second, {}}, call.args, binding);
    Group group{name, function->params, {}, {}};
    const auto* body = function->body.as<SeqExpr>();
    for (const BindingBlock& block : body->blocks)
      for (const Binding& inner : block->bindings) group.bindings.push_back(ir::cast<VarBinding>(inner));
    if (const auto* tuple = body->body.as<Tuple>())
      group.results = tuple->items;
    else
      group.results = {body->body};
    Lowered lowered = TRY(lower(group));
    if (lowered.scalars.empty()) by_group_[name] = lowered.function;
    const ir::VarMap symbols = symbols_given(group.params, call.args);
    for (ir::Expr& scalar : lowered.scalars) scalar = ir::substitute(scalar, symbols);
    return called(lowered, call.args, binding);
  }

  // What the symbols are that parameters' shapes name, by the arguments.
  static ir::VarMap symbols_given(const std::vector<Var>& params, const std::vector<Expr>& args) {
    ir::VarMap symbols;
    for (size_t i = 0; i < params.size() && i < args.size(); ++i) {
      const auto *param = as_tensor(params[i]), *arg = args[i] ? as_tensor(args[i]) : nullptr;
      if (!param || !arg || !param->shape || !arg->shape) continue;
      for (size_t d = 0; d < param->shape->size() && d < arg->shape->size(); ++d)
        if (const auto* symbol = (*param->shape)[d].as<ir::VarNode>())
          symbols.try_emplace(ir::Var(symbol), (*arg->shape)[d]);
    }
    return symbols;
  }

  // A group of one operator: its tensor arguments become parameters.
  Result<std::optional<Expr>> lower_single(const Operator& op, const VarBinding& binding, const Call& call) {
    Group group;
    group.name = std::string(op.name);
    for (char& c : group.name)
      if (c == '.') c = '_';
    std::vector<Expr> outside;
    std::unordered_map<const ir::Node*, Var> given;
    const auto parameter = [&](const Expr& arg) -> Expr {
      const auto* constant = arg ? arg.as<Constant>() : nullptr;
      if (!arg || !as_tensor(arg) || (constant && constant->data->elements() == 1)) return arg;
      if (!outside.empty() && support::flip(legalize_merges_parameters) &&
          ir::structural_equal(outside[0]->struct_info, arg->struct_info))
        return group.params[0];
      Var& param = given[arg.get()];
      if (!param) {
        param = relax_var("p" + std::to_string(group.params.size()), arg->struct_info);
        group.params.push_back(param);
        outside.push_back(arg);
      }
      return param;
    };
    std::vector<Expr> args;
    for (const Expr& arg : call.args) {
      if (const auto* tuple = arg ? arg.as<Tuple>() : nullptr) {
        std::vector<Expr> items;
        for (const Expr& item : tuple->items) items.push_back(parameter(item));
        args.push_back(with_struct_info(make<Tuple>(std::move(items)), arg->struct_info));
      } else {
        args.push_back(parameter(arg));
      }
    }
    Expr value = make<Call>(call.callee, std::move(args), call.attributes, call.struct_info_args);
    value = ir::with_origin(with_struct_info(std::move(value), call.struct_info), call.origin());
    Var result = relax_var("result", binding.var->struct_info);
    group.bindings.push_back(make<VarBinding>(std::move(value), result));
    group.results = {result};
    return called(TRY(lower(group)), outside, binding);
  }

  // A function that is there, and what it takes beside tensors.
  struct Lowered {
    std::string function;
    std::vector<ir::Expr> scalars;
  };

  static Result<std::optional<Expr>> called(const Lowered& lowered, const std::vector<Expr>& args,
                                            const VarBinding& binding) {
    std::vector<StructInfo> outputs{binding.var->struct_info};
    if (const auto* tuple = binding.var->struct_info.as<TupleStructInfo>()) outputs = tuple->items;
    return std::optional(TRY(call_tir(lowered.function, args, std::move(outputs), lowered.scalars)));
  }

  Result<Lowered> lower(const Group& group) {
    const relax::Function whole = as_function(group);
    const support::Hash128 key = ir::structural_hash(whole);
    for (const auto& [met, name] : met_[key])
      if (ir::structural_equal(met, whole)) return Lowered{name, {}};
    LoweredGroup lowered = TRY(lower_group(group));
    if (const auto versions = add_versions(group, lowered.scalars); !versions.empty())
      lowered.function =
          ir::with(*lowered.function, [&](tir::PrimFunc& copy) { copy.attrs.set("versions", to_value(versions)); });
    const std::string name = share(group.name, lowered.function);
    if (lowered.scalars.empty()) met_[key].emplace_back(whole, name);
    return Lowered{name, std::move(lowered.scalars)};
  }

  // The group's programs for likely sizes of its symbols, each with each; other symbols stay.
  std::vector<Version> add_versions(const Group& group, const std::vector<ir::Expr>& scalars) {
    std::vector<std::vector<std::pair<int64_t, int64_t>>> choices{{}};
    for (size_t i = 0; i < scalars.size(); ++i) {
      const auto* symbol = scalars[i].as<ir::VarNode>();
      const auto told = symbol ? sizes_.find(symbol->name) : sizes_.end();
      if (told == sizes_.end() || told->second.likely.empty()) continue;
      std::vector<std::vector<std::pair<int64_t, int64_t>>> longer;
      for (const auto& choice : choices)
        for (const int64_t size : told->second.likely) {
          longer.push_back(choice);
          longer.back().emplace_back(static_cast<int64_t>(i), size);
        }
      choices = std::move(longer);
      if (choices.size() > most_versions) choices.resize(most_versions);
    }
    std::vector<Version> versions;
    for (const auto& choice : choices) {
      if (choice.empty()) continue;
      // Sizes that the operators cannot have (rows split by four, of which three are likely) never come here.
      if (auto version = version_at(group, scalars, choice); version.ok())
        versions.push_back(*std::move(version));
      else
        context_.remark("legalize", group.name, "no kernel for likely sizes: " + version.diagnostics()[0].message);
    }
    return versions;
  }

  Result<Version> version_at(const Group& group, const std::vector<ir::Expr>& scalars,
                             const std::vector<std::pair<int64_t, int64_t>>& sizes) {
    ir::VarMap fixed;
    std::string hint = group.name + "_at";
    for (const auto& [scalar, size] : sizes) {
      fixed[ir::cast<ir::VarNode>(scalars[static_cast<size_t>(scalar)])] = ir::int64(size);
      hint += "_" + std::to_string(size);
    }
    const LoweredGroup lowered = TRY(lower_group(at_sizes(group, fixed)));
    Version version{share(hint, lowered.function), sizes, {}, {}};
    for (const ir::Expr& scalar : lowered.scalars)
      version.scalars.push_back(std::find(scalars.begin(), scalars.end(), scalar) - scalars.begin());
    return version;
  }

  // The group as a function, to compare with others.
  static relax::Function as_function(const Group& group) {
    std::vector<Binding> bindings(group.bindings.begin(), group.bindings.end());
    Expr result = group.results.size() == 1 ? group.results[0] : Expr(make<Tuple>(group.results));
    const StructInfo info = group.bindings.back()->var->struct_info;
    std::vector<BindingBlock> blocks{make<BindingBlockNode>(std::move(bindings), true)};
    return make<relax::FunctionNode>(group.params, Expr(make<SeqExpr>(std::move(blocks), std::move(result))), info);
  }

  // The name of an equal function that is there already, or of this one, added. The name does not count.
  std::string share(const std::string& hint, const tir::Function& function) {
    const tir::Function nameless = ir::with(*function, [](tir::PrimFunc& copy) { copy.attrs.erase("global_symbol"); });
    auto& candidates = shared_[ir::structural_hash(nameless)];
    for (const auto& [other, name] : candidates)
      if (ir::structural_equal(other, nameless)) return name;
    std::string name = hint;
    if (const ir::BaseFunc taken = module_.find(hint); taken && !taken->attrs.get_or("primitive", false))
      name = module_.unique_name(hint);
    module_.set(name, ir::with(*function, [&](tir::PrimFunc& copy) { copy.attrs.set("global_symbol", name); }));
    candidates.emplace_back(nameless, name);
    return name;
  }

  const ir::PassContext& context_;
  DimSizesByName sizes_;       // of main's symbols
  const ir::IRModule groups_;  // as given: a PrimFunc may take a group's name before the group's last call is met
  ir::IRModule module_;
  // Groups of known extents that were lowered, with their functions' names: layers repeat, and an equal group is not
  // lowered again. What differs before lowering may still be equal after it.
  std::unordered_map<support::Hash128, std::vector<std::pair<relax::Function, std::string>>> met_;
  std::unordered_map<support::Hash128, std::vector<std::pair<tir::Function, std::string>>> shared_;
  std::unordered_map<std::string, std::string> by_group_;  // the functions of named groups that take tensors alone
};

}  // namespace

support::Result<ir::IRModule> legalize(ir::IRModule module, const ir::PassContext& context) {
  return Legalize(std::move(module), context).run();
}

}  // namespace lathe::lower
