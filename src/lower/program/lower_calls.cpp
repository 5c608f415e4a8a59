// Calls of kernels: those that are compiled, by the version that fits, and those of the runtime.
#include "lower/program/function_lowering.h"
#include "lower/states/states.h"
#include "relax/infer.h"
#include "support/mutation.h"

namespace lathe::lower {

LATHE_FAULT(write_program_swaps_operands, "lower_test", "a kernel gets its first two operands swapped");

using namespace relax;  // NOLINT: the subject of this file
using abi::Opcode;
using abi::ValueKind;
using support::Result;

support::Status FunctionLowering::call_kernel(const VarBinding& bound, const CallTir& parts) {
  const auto function = parts_.module.find_as<tir::PrimFunc>(parts.function);
  if (!function) return refuse(bound.value, "the module has no function '" + parts.function + "'");
  const std::string node = node_name(bound.value);
  Registers tensors;
  for (const Expr& tensor : parts.args) {
    const Registers one = TRY(values(tensor));
    tensors.insert(tensors.end(), one.begin(), one.end());
  }
  Registers made;
  for (size_t i = 0; i < parts.outputs.size(); ++i) {
    const auto number = static_cast<int>(i);
    const auto updated = parts.updated(i);
    if (updated && planned_.plan.updates.count({bound.var.get(), number})) {
      made.push_back(tensors.at(*updated));
      continue;
    }
    if (updated && is_state_in_place(parts.args[*updated]))
      return refuse(bound.value, "a state cannot be written in place where it is read as it was afterwards");
    made.push_back(TRY(allocate(bound.var, number, *parts.outputs[i].as<TensorStructInfo>(), node)));
    if (updated) {  // somebody else reads what is there
      function_.emit(Opcode::copy, {made.back(), tensors.at(*updated)}, node);
      tensors[*updated] = made.back();
    } else {
      tensors.push_back(made.back());
    }
  }
  if (support::flip(write_program_swaps_operands) && tensors.size() > 2) std::swap(tensors[0], tensors[1]);
  std::vector<uint32_t> scalars;
  for (const ir::Expr& scalar : parts.scalars) scalars.push_back(TRY(scalars_.operand(scalar)));
  std::vector<std::pair<Version, uint32_t>> versions;  // each with whether its sizes are here
  for (Version& version : versions_of(*function))
    if (const auto fits = TRY(fits_call(version, tensors.size(), parts.scalars)))
      versions.emplace_back(std::move(version), *fits);
  const uint32_t end = versions.empty() ? 0 : function_.label();
  for (const auto& [version, fits] : versions) {
    const uint32_t here = function_.label(), next = function_.label();
    function_.emit(Opcode::branch, {fits, here, next}, node);
    function_.bind(here);
    std::vector<uint32_t> given;
    for (const int64_t scalar : version.scalars) given.push_back(scalars.at(static_cast<size_t>(scalar)));
    emit_kernel(version.function, tensors, given, node);
    function_.emit(Opcode::jump, {end}, node);
    function_.bind(next);
  }
  emit_kernel(parts.function, tensors, scalars, node);
  if (!versions.empty()) function_.bind(end);
  registers_[bound.var.get()] = made;
  return support::success();
}

bool FunctionLowering::is_state_in_place(const Expr& e) const {
  if (!planned_.is_main) return false;
  const std::vector<Var>& params = planned_.function->params;
  const std::vector<State> states = states_of(*planned_.function);
  for (size_t i = 0; i < states.size(); ++i)
    if (states[i].is_in_place() && params[params.size() - states.size() + i].get() == e.get()) return true;
  return false;
}

void FunctionLowering::emit_kernel(const std::string& name, const Registers& tensors,
                                   const std::vector<uint32_t>& scalars, const std::string& node) {
  const auto tensor_count = static_cast<uint32_t>(tensors.size()), scalar_count = static_cast<uint32_t>(scalars.size());
  std::vector<uint32_t> operands{parts_.kernel(name, tensor_count, scalar_count), tensor_count};
  operands.insert(operands.end(), tensors.begin(), tensors.end());
  operands.push_back(scalar_count);
  operands.insert(operands.end(), scalars.begin(), scalars.end());
  function_.emit(Opcode::call_kernel, std::move(operands), node);
}

Result<std::optional<uint32_t>> FunctionLowering::fits_call(const Version& version, size_t tensors,
                                                            const std::vector<ir::Expr>& scalars) {
  const auto function = parts_.module.find_as<tir::PrimFunc>(version.function);
  bool known = function && function->params.size() == tensors + version.scalars.size();
  for (size_t i = 0; known && i < function->params.size(); ++i)
    known = function->params[i]->dtype.is_handle() == (i < tensors);
  const auto is_there = [&](int64_t i) { return i >= 0 && static_cast<size_t>(i) < scalars.size(); };
  for (const int64_t scalar : version.scalars) known = known && is_there(scalar);
  for (const auto& [scalar, size] : version.sizes) known = known && is_there(scalar);
  for (const auto& [scalar, other] : version.equal) known = known && is_there(scalar) && is_there(other);
  if (!known) return std::optional<uint32_t>();
  ir::Expr fits = ir::boolean(true);
  for (const auto& [scalar, size] : version.sizes)
    fits = ir::logical_and(fits, ir::eq(scalars[static_cast<size_t>(scalar)], ir::int64(size)));
  for (const auto& [scalar, other] : version.equal)
    fits = ir::logical_and(fits, ir::eq(scalars[static_cast<size_t>(scalar)], scalars[static_cast<size_t>(other)]));
  if (ir::is_int(fits, 0)) return std::optional<uint32_t>();
  return std::optional(TRY(scalars_.operand(fits)));
}

support::Status FunctionLowering::call_runtime_kernel(const VarBinding& bound, const Call& call,
                                                      const RuntimeKernel& kernel) {
  Registers inputs;
  for (const Expr& arg : call.args) {
    if (!arg) continue;
    const Registers one = TRY(values(arg));
    inputs.insert(inputs.end(), one.begin(), one.end());
  }
  std::vector<const TensorStructInfo*> infos;
  if (const auto* tuple = bound.var->struct_info.as<TupleStructInfo>())
    for (const StructInfo& item : tuple->items) infos.push_back(item.as<TensorStructInfo>());
  else
    infos.push_back(bound.var->struct_info.as<TensorStructInfo>());
  Registers made;
  for (const TensorStructInfo* info : infos) {
    if (!info) return refuse(bound.value, "a runtime kernel's result is not a tensor");
    made.push_back(tensor_register(*info, bound.var->name));
    lasting_.insert(made.back());
  }
  const std::string attributes = kernel.attributes ? kernel.attributes(call) : "";
  const uint32_t slice = kernel.attributes ? parts_.writer.slice(attributes.data(), attributes.size()) : abi::absent;
  std::vector<uint32_t> operands{parts_.runtime_kernel(kernel.name), slice, static_cast<uint32_t>(inputs.size())};
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  operands.push_back(static_cast<uint32_t>(made.size()));
  operands.insert(operands.end(), made.begin(), made.end());
  function_.emit(Opcode::call_runtime_kernel, std::move(operands), node_name(bound.value));
  registers_[bound.var.get()] = made;
  return support::success();
}

}  // namespace lathe::lower
