#include "relax/call_tir.h"

#include "relax/codes.h"

namespace lathe::relax {

namespace {

Result<StructInfo> infer_call_tir(const InferContext& c) {
  if (c.args.size() < 2 || !c.args[0].is<GlobalVar>() || !c.args[1].is<Tuple>() || c.struct_info_args.empty())
    return support::Diagnostic{.code = codes::wrong_arguments,
                               .message =
                                   "call_tir takes a function of the module, a tuple of tensors and the struct "
                                   "info of its outputs"};
  if (c.struct_info_args.size() == 1) return c.struct_info_args[0];
  return StructInfo(
      make<TupleStructInfo>(std::vector<StructInfo>(c.struct_info_args.begin(), c.struct_info_args.end())));
}

}  // namespace

const Operator call_tir_operator{
    .name = "call_tir",
    .inputs = {{"function"}, {"args"}, {"scalars", Input::optional, Input::shape}},
    .infer = infer_call_tir,
    .meaning = RuntimeKernel{"call_tir"},
};

Expr global_var(std::string name) { return make<GlobalVar>(std::move(name)); }

Result<Expr> call_tir(const std::string& function, std::vector<Expr> args, std::vector<StructInfo> outputs,
                      std::vector<ir::Expr> scalars) {
  std::vector<StructInfo> infos;
  for (const Expr& arg : args) infos.push_back(arg->struct_info);
  Expr tuple = with_struct_info(make<Tuple>(std::move(args)), make<TupleStructInfo>(std::move(infos)));
  std::vector<Expr> operands{global_var(function), std::move(tuple)};
  if (!scalars.empty()) operands.push_back(make<ShapeExpr>(std::move(scalars)));
  return make_call(call_tir_operator, std::move(operands), {}, {}, std::move(outputs));
}

std::optional<CallTir> as_call_tir(const Expr& e) {
  const auto* call = e.as<Call>();
  if (!call || callee_operator(*call) != &call_tir_operator) return std::nullopt;
  CallTir parts{call->args[0].as<GlobalVar>()->name, call->args[1].as<Tuple>()->items, call->struct_info_args, {}};
  if (call->args.size() > 2 && call->args[2]) parts.scalars = call->args[2].as<ShapeExpr>()->values;
  return parts;
}

}  // namespace lathe::relax
