#include "graph/outline.h"

#include "graph/rewrite_bindings.h"
#include "ir/structural.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(fuse_ops_swaps_operands, "graph_test", "a group is called with two operands of one type swapped");

// One walk over a group, which numbers what it uses and what it computes.
struct Outliner::Reading {
  enum Operand : uint64_t { absent, itself, tuple, parameter, result };

  Signature signature;
  std::vector<Expr> args;  // what becomes the parameters
  std::unordered_map<const ir::Node*, uint64_t> parameters, results;
  bool known = true;  // all extents are

  explicit Reading(Group group) {
    for (const VarBinding* binding : group) {
      const Call& call = *binding->value.as<Call>();
      word(reinterpret_cast<uintptr_t>(callee_operator(call)));
      node(call.attributes);
      word(call.struct_info_args.size());
      for (const StructInfo& info : call.struct_info_args) node(info);
      word(call.args.size());
      for (const Expr& arg : call.args) operand(arg);
      type(binding->value->struct_info);
      type(binding->var->struct_info);
      results.emplace(binding->var.get(), results.size());
    }
  }

  Function function(Group group) const;

  support::Hash128 hash() const {
    support::Hasher hasher;
    for (const uint64_t word : signature.words) hasher.add(word);
    for (const ir::NodeRef& node : signature.nodes) {
      const support::Hash128 structure = node ? ir::structural_hash(node) : support::Hash128();
      hasher.add(structure.low);
      hasher.add(structure.high);
    }
    return hasher.finish();
  }

 private:
  void word(uint64_t word) { signature.words.push_back(word); }
  void node(ir::NodeRef node) { signature.nodes.push_back(std::move(node)); }

  void operand(const Expr& arg) {
    if (!arg) return word(absent);
    if (const auto* items = arg.as<Tuple>()) {
      word(tuple);
      word(items->items.size());
      for (const Expr& item : items->items) operand(item);
      return node(arg->struct_info);
    }
    if (const auto it = results.find(arg.get()); it != results.end()) {
      word(result);
      return word(it->second);
    }
    const auto* constant = arg.as<Constant>();
    if (!as_tensor(arg) || (constant && constant->data->elements() == 1)) {
      word(itself);
      return node(arg);
    }
    word(parameter);
    const auto [it, first] = parameters.emplace(arg.get(), args.size());
    word(it->second);
    if (!first) return;
    args.push_back(arg);
    type(arg->struct_info);
  }

  void type(const StructInfo& info) {
    const auto* tensor = info ? info.as<TensorStructInfo>() : nullptr;
    if (!tensor || !tensor->shape) {
      known = false;
      return;
    }
    word(static_cast<uint64_t>(tensor->dtype.code) << 32 | uint64_t{tensor->dtype.bits} << 16 | tensor->dtype.lanes);
    word(tensor->shape->size());
    for (const ir::Expr& extent : *tensor->shape) {
      const auto value = ir::as_int(extent);
      known = known && value;
      word(static_cast<uint64_t>(value.value_or(0)));
    }
  }
};

// The function that computes the group.
Function Outliner::Reading::function(Group group) const {
  std::vector<Var> params, inner;
  for (const Expr& arg : args) {
    const auto* var = arg.as<VarNode>();
    params.push_back(relax_var(var ? var->name : "w" + std::to_string(params.size()), arg->struct_info));
  }
  const auto inside = [&](const Expr& arg, const auto& self) -> Expr {
    if (!arg) return arg;
    if (const auto* tuple = arg.as<Tuple>()) {
      std::vector<Expr> items;
      for (const Expr& item : tuple->items) items.push_back(self(item, self));
      return with_struct_info(make<Tuple>(std::move(items)), arg->struct_info);
    }
    if (const auto it = results.find(arg.get()); it != results.end()) return inner[it->second];
    const auto it = parameters.find(arg.get());
    return it == parameters.end() ? arg : Expr(params[it->second]);
  };
  std::vector<Binding> body;
  for (const VarBinding* binding : group) {
    std::vector<Expr> operands;
    for (const Expr& arg : binding->value.as<Call>()->args) operands.push_back(inside(arg, inside));
    Expr value = ir::with(*binding->value.as<Call>(), [&](Call& copy) { copy.args = std::move(operands); });
    value = with_struct_info(std::move(value), binding->value->struct_info);
    inner.push_back(relax_var(binding->var->name, binding->var->struct_info, true));
    body.push_back(make<VarBinding>(std::move(value), inner.back()));
  }
  const ir::Attributes attrs{{"primitive", true}, {"private", true}};
  return make_function(std::move(params), std::move(body), inner.back(), attrs);
}

std::string Outliner::unique_name(Group group) const {
  std::string name = group.size() > 1 ? "fused" : "";
  for (const VarBinding* binding : group) {
    std::string op(callee_operator(*binding->value.as<Call>())->name);
    op = op.substr(op.rfind('.') + 1);
    if (name.size() + op.size() > 60) break;
    name += (name.empty() ? "" : "_") + op;
  }
  return module_.unique_name(name);
}

// The name of the group's function, or of an equal one that is there already.
std::string Outliner::name_of(const Reading& reading, Group group, const ir::Origin& origin) {
  std::vector<Outlined>* met = reading.known ? &outlined_[reading.hash()] : nullptr;
  if (met)
    for (const auto& [signature, name] : *met)
      if (signature.words == reading.signature.words &&
          std::ranges::equal(signature.nodes, reading.signature.nodes,
                             [](const ir::NodeRef& a, const ir::NodeRef& b) { return ir::structural_equal(a, b); }))
        return name;
  std::string name = unique_name(group);
  module_.set(name, ir::with_origin(reading.function(group), origin));
  if (met) met->push_back({reading.signature, name});
  return name;
}

Binding Outliner::call_of(Group group, size_t anchor) {
  Reading reading(group);
  const VarBinding* named = group[anchor]->value->origin() ? group[anchor] : group[0];
  const ir::Origin& origin = named->value->origin();
  const std::string name = name_of(reading, group, origin);
  std::vector<Expr> args = std::move(reading.args);
  if (support::flip(fuse_ops_swaps_operands))
    for (size_t i = 1; i < args.size(); ++i)
      if (ir::structural_equal(args[i - 1]->struct_info, args[i]->struct_info)) std::swap(args[i - 1], args[i]);
  const VarBinding& last = *group.back();
  Expr call = make<Call>(make<GlobalVar>(name), std::move(args));
  call = ir::with_origin(with_struct_info(std::move(call), last.value->struct_info), origin);
  return make<VarBinding>(std::move(call), last.var);
}

}  // namespace lathe::graph
