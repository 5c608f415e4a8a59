#include "relax/interpret/lower_call.h"

#include "relax/codes.h"
#include "relax/strings.h"

namespace lathe::relax {

Result<LoweredCall> lower_call(const Call& call) {
  const Operator* op = callee_operator(call);
  support::require(op, "lower_call of a call of no operator");
  LoweredCall lowered;
  LowerContext context{call, call.attributes.get(), {}};
  std::vector<te::Tensor> inputs;
  const auto add = [&](const Expr& arg) {
    const TensorStructInfo* info = as_tensor(arg);
    if (!info) {
      context.tensors.emplace_back();
      return;
    }
    inputs.push_back(
        te::placeholder(info->shape.value(), loop_dtype(info->dtype), "in" + std::to_string(inputs.size())));
    context.tensors.push_back(inputs.back());
    lowered.inputs.push_back(arg);
  };
  for (const Expr& arg : call.args) {
    if (const auto* tuple = arg ? arg.as<Tuple>() : nullptr)
      for (const Expr& item : tuple->items) add(item);
    else if (arg && arg->struct_info.is<TupleStructInfo>())
      return support::Diagnostic{.code = codes::cannot_interpret,
                                 .message = "a tuple of " + std::string(op->name) + " is not written out"};
    else
      add(arg);
  }
  if (const auto* tuple = call.struct_info.as<TupleStructInfo>())
    lowered.outputs = tuple->items;
  else
    lowered.outputs = {call.struct_info};

  if (const auto* expression = std::get_if<TeExpression>(&op->meaning))
    lowered.function = te::create_prim_func(inputs, (*expression)(context));
  else if (const auto* builder = std::get_if<TirBuilder>(&op->meaning))
    lowered.function = (*builder)(context);
  else
    return support::Diagnostic{.code = codes::cannot_interpret,
                               .message = std::string(op->name) + " has no meaning as loops"};
  for (const ir::Var& param : lowered.function->params)
    if (!param->dtype.is_handle()) lowered.scalars.push_back(param);
  return lowered;
}

}  // namespace lathe::relax
