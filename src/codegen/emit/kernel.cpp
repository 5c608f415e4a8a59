#include "codegen/emit/kernel.h"

#include "ir/node_name.h"
#include "ir/structural.h"
#include "ir/visit.h"

namespace lathe::codegen {

using namespace ir;  // NOLINT

std::string_view emit_kind_name(EmitKind kind) {
  switch (kind) {
    case EmitKind::object:
      return "object";
    case EmitKind::assembly:
      return "assembly";
    case EmitKind::llvm_ir:
      return "llvm_ir";
    case EmitKind::listing:
      return "listing";
  }
  support::unreachable("an emission kind without a name");
}

support::Hash128 kernel_hash(const Kernel& kernel) {
  support::Hasher hasher;
  // The name is outside: equal kernels share their code.
  const tir::Function nameless = with(*kernel.function, [](tir::PrimFunc& copy) { copy.attrs.erase("global_symbol"); });
  const support::Hash128 structure = structural_hash(nameless);
  hasher.add(structure.high);
  hasher.add(structure.low);
  // Origins are outside structural equality, but a check's message names its model node.
  pre_order(kernel.function->body, [&](const NodeRef& n) {
    const auto* call = &n->node_class() == &node_class_of<Call>() ? static_cast<const Call*>(n.get()) : nullptr;
    const bool raises = call && call->op == &intrinsic::raise_error;
    if (raises || &n->node_class() == &node_class_of<tir::AssertStmt>()) hasher.add(node_name(n));
    return true;
  });
  return hasher.finish();
}

std::vector<int> sharing_groups(const tir::PrimFunc& function) {
  std::vector<int> groups(function.buffer_map.size());
  std::iota(groups.begin(), groups.end(), 0);
  const auto* inplace = function.attrs.get<Value::List>("inplace");
  if (!inplace) return groups;
  for (const Value& entry : *inplace) {
    const auto* members = entry.get<Value::List>();
    if (!members) continue;
    int first = -1;
    for (const Value& member : *members) {
      const auto* number = member.get<int64_t>();
      if (!number || *number < 0 || *number >= static_cast<int64_t>(groups.size())) continue;
      const int group = groups[static_cast<size_t>(*number)];
      if (first < 0) first = group;
      for (int& g : groups)
        if (g == group) g = first;
    }
  }
  return groups;
}

}  // namespace lathe::codegen
