#include "relax/call_tir.h"

namespace lathe::relax {
namespace {

Result<StructInfo> infer_call_tir(const InferContext&) {
  return support::Diagnostic{.code = {"relax-call-tir"},
                             .message = "call_tir states the struct info of its outputs; it is not inferred"};
}

Result<Expr> no_meaning(BlockBuilder&, const Call&) {
  return support::Diagnostic{.code = {"relax-call-tir"}, .message = "call_tir means its function"};
}

}  // namespace

const Operator call_tir_operator{
    .name = "call_tir",
    .inputs = {{"function"}, {"args"}, {"scalars", Input::optional, Input::shape}},
    .infer = infer_call_tir,
    .meaning = Composite(no_meaning),
    .fusion = FusionKind::opaque,
};

Expr call_tir(const CallTir& parts) {
  Expr tensors = make<Tuple>(parts.tensors);
  std::vector<StructInfo> infos;
  for (const Expr& tensor : parts.tensors) infos.push_back(tensor->struct_info);
  tensors = with_struct_info(std::move(tensors), make<TupleStructInfo>(std::move(infos)));
  std::vector<Expr> args{make<GlobalVar>(parts.function), std::move(tensors)};
  if (!parts.scalars.empty()) args.push_back(make<ShapeExpr>(parts.scalars));
  StructInfo result = parts.outputs.size() == 1 ? parts.outputs[0] : StructInfo(make<TupleStructInfo>(parts.outputs));
  Expr call = make<Call>(op_ref(call_tir_operator), std::move(args), AttributesRef{}, parts.outputs);
  return with_struct_info(std::move(call), std::move(result));
}

std::optional<CallTir> as_call_tir(const Expr& e) {
  const auto* call = e ? e.as<Call>() : nullptr;
  if (!call || callee_operator(*call) != &call_tir_operator || call->args.size() < 2) return std::nullopt;
  const auto* function = call->args[0].as<GlobalVar>();
  const auto* tensors = call->args[1].as<Tuple>();
  if (!function || !tensors) return std::nullopt;
  CallTir parts{function->name, tensors->items, {}, call->struct_info_args};
  if (call->args.size() > 2)
    if (const auto* scalars = call->args[2].as<ShapeExpr>()) parts.scalars = scalars->values;
  return parts;
}

}  // namespace lathe::relax
