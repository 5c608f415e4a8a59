#include "driver/saved/node_kinds.h"

#include "interchange/onnx/nodes/node_call.h"
#include "relax/expr.h"
#include "tir/stmt.h"

namespace lathe::driver::saved {

using ir::NodeClass;

namespace {

template <class... Kinds>
void add_kinds(std::vector<const NodeClass*>& all, ir::KindList<Kinds...>) {
  (all.push_back(&ir::node_class_of<Kinds>()), ...);
}

using KindsByName = std::unordered_map<std::string, const NodeClass*>;

KindsByName named_kinds() {
  KindsByName all;
  for (const NodeClass* kind : node_kinds()) all[saved_kind(*kind)] = kind;
  const NodeClass& module = ir::node_class_of<SavedModule>();
  all[saved_kind(module)] = &module;
  for (const relax::Operator* op : onnx::operators_with_nodes().all()) {
    if (!op->attributes) continue;
    const NodeClass& kind = op->attributes->defaults()->node_class();
    const auto [it, added] = all.emplace(saved_kind(kind), &kind);
    support::require(added || it->second == &kind, "two classes of operators' attributes have one name");
  }
  return all;
}

}  // namespace

const std::vector<const NodeClass*>& node_kinds() {
  static const std::vector<const NodeClass*> all = [] {
    std::vector<const NodeClass*> list;
    add_kinds(list, ir::FamilyKinds<ir::ExprNode>::type{});
    add_kinds(list, ir::KindsAfter<void LATHE_EXPR_PARTS(LATHE_KIND)>{});
    add_kinds(list, ir::FamilyKinds<tir::StmtNode>::type{});
    add_kinds(list, ir::KindsAfter<void LATHE_STMT_PARTS(LATHE_KIND)>{});
    add_kinds(list, ir::KindList<tir::PrimFunc, ir::TensorDataNode, relax::FunctionNode, relax::BindingBlockNode>{});
    add_kinds(list, ir::FamilyKinds<relax::StructInfoNode>::type{});
    add_kinds(list, ir::FamilyKinds<relax::ExprNode>::type{});
    add_kinds(list, ir::FamilyKinds<relax::BindingNode>::type{});
    return list;
  }();
  return all;
}

std::string saved_kind(const NodeClass& kind) { return fmt::format("{}.{}", kind.family, kind.name); }

const NodeClass* find_saved_kind(const std::string& name) {
  static const KindsByName all = named_kinds();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

ir::NodeRef module_node(const ir::IRModule& module) { return ir::make<SavedModule>(module.functions(), module.attrs); }

std::optional<ir::IRModule> node_module(const ir::NodeRef& node) {
  const auto* saved = node.as<SavedModule>();
  if (!saved) return std::nullopt;
  ir::IRModule module;
  for (const auto& [name, function] : saved->functions) module.set(name, function);
  module.attrs = saved->attrs;
  return module;
}

}  // namespace lathe::driver::saved
