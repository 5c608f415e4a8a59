#include "relax/expr.h"

#include "ir/match.h"

namespace lathe::relax {

void Constant::derive() { struct_info = tensor_info(data->shape, data->dtype); }
void ShapeExpr::derive() { struct_info = make<ShapeStructInfo>(values); }
void PrimValue::derive() { struct_info = make<PrimStructInfo>(value->dtype, value); }

StructInfo tensor_info(std::vector<ir::Expr> shape, DType dtype) {
  return make<TensorStructInfo>(std::optional(std::move(shape)), dtype);
}
StructInfo tensor_info(const std::vector<int64_t>& shape, DType dtype) {
  std::vector<ir::Expr> extents;
  for (const int64_t extent : shape) extents.push_back(ir::int64(extent));
  return tensor_info(std::move(extents), dtype);
}
StructInfo tensor_info_of_rank(int64_t ndim, DType dtype) {
  return make<TensorStructInfo>(std::optional<std::vector<ir::Expr>>{}, dtype, ndim);
}

Var relax_var(std::string name, StructInfo info, bool is_dataflow) {
  return make<VarNode>(std::move(name), std::move(info), is_dataflow);
}
Expr constant(ir::TensorData data) { return make<Constant>(std::move(data)); }

const TensorStructInfo* as_tensor(const Expr& e) { return e ? e->struct_info.as<TensorStructInfo>() : nullptr; }

Expr tuple_of(std::vector<Expr> items) {
  std::vector<StructInfo> infos;
  for (const Expr& item : items) infos.push_back(item->struct_info);
  return with_struct_info(make<Tuple>(std::move(items)), make<TupleStructInfo>(std::move(infos)));
}

Expr with_struct_info(Expr e, StructInfo info) {
  if (e->unique()) {
    const_cast<ExprNode*>(e.get())->struct_info = std::move(info);
    return e;
  }
  return ir::match(e, [&](const auto& node) -> Expr {
    using Kind = std::remove_cvref_t<decltype(node)>;
    return ir::with<Kind>(node, [&](Kind& copy) { copy.struct_info = info; });
  });
}

}  // namespace lathe::relax

LATHE_STRUCT_INFO_KINDS(LATHE_DEFINE_KIND)
LATHE_RELAX_KINDS(LATHE_DEFINE_KIND)
LATHE_BINDING_KINDS(LATHE_DEFINE_KIND)
LATHE_DEFINE_KIND(lathe::relax::BindingBlockNode)
LATHE_DEFINE_KIND(lathe::relax::FunctionNode)
