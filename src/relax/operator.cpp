#include "relax/operator.h"

namespace lathe::relax {

const TensorStructInfo& LowerContext::output(size_t i) const {
  if (const auto* tuple = call.struct_info.as<TupleStructInfo>()) return *tuple->items.at(i).as<TensorStructInfo>();
  return *call.struct_info.as<TensorStructInfo>();
}

void OperatorTable::add(const Operator& op) {
  support::require(index_.emplace(op.name, &op).second, "two operators of one name");
  rows_.push_back(&op);
}

const Operator* OperatorTable::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : it->second;
}

Expr op_ref(const Operator& op) {
  Ref<OpRef> ref = make<OpRef>(std::string(op.name));
  const_cast<OpRef*>(ref.get())->op = &op;
  return ref;
}

const Operator* callee_operator(const Call& call) {
  const auto* ref = call.callee.as<OpRef>();
  return ref ? ref->op : nullptr;
}

Result<Expr> make_call(const Operator& op, std::vector<Expr> args, AttributesRef attributes, ir::Origin origin,
                       std::vector<StructInfo> struct_info_args) {
  if (!attributes && op.attributes) attributes = op.attributes->defaults();
  Result<StructInfo> info = op.infer(InferContext{op, args, attributes.get(), struct_info_args});
  if (!info.ok()) {
    support::Diagnostics diagnostics = info.diagnostics();
    for (support::Diagnostic& d : diagnostics)
      if (origin && std::holds_alternative<std::monostate>(d.place)) d.place = *origin;
    return diagnostics;
  }
  Expr call = make<Call>(op_ref(op), std::move(args), std::move(attributes), std::move(struct_info_args));
  return ir::with_origin(with_struct_info(std::move(call), *info), origin);
}

}  // namespace lathe::relax
