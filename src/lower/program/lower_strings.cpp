// Tensors of strings as instructions: inside the program they are tensors of numbers, outside values of their own kind.
#include "ir/formats/dlpack_type.h"
#include "lower/program/function_lowering.h"
#include "relax/strings.h"
#include "support/mutation.h"

namespace lathe::lower {

LATHE_FAULT(write_program_reverses_strings, "lower_test", "the strings of a constant change places");

using namespace relax;  // NOLINT: the subject of this file
using abi::Opcode;
using abi::ValueKind;
using support::Result;

support::Status FunctionLowering::take_strings(const Var& param) {
  Registers taken = TRY(make_registers(param->struct_info, param->name));
  if (taken.size() != 1) return refuse(param, "strings come in tensors, sequences and optionals");
  function_.emit(Opcode::take_strings, {taken[0], registers_.at(param.get()).at(0)});
  lasting_.insert(taken[0]);
  registers_[param.get()] = std::move(taken);
  return support::success();
}

uint32_t FunctionLowering::given_strings(uint32_t reg, const StructInfo& info) {
  if (!holds_strings(info)) return reg;
  const uint32_t given = function_.reg(collection_kind(info).value_or(ValueKind::strings));
  function_.emit(Opcode::give_strings, {given, reg});
  return given;
}

Result<bool> FunctionLowering::strings(const VarBinding& bound, const Call& call, const Operator& op) {
  const bool is_constant = &op == &strings_operator;
  if (!is_constant && &op != &as_strings_operator) return false;
  const std::string node = node_name(bound.value);
  const TensorStructInfo& info = *as_tensor(bound.var);
  const uint32_t reg = tensor_register(info, bound.var->name);
  if (is_constant) {
    const auto& attributes = static_cast<const StringsAttributes&>(*call.attributes);
    std::vector<std::string> texts = attributes.texts;
    if (support::flip(write_program_reverses_strings)) std::reverse(texts.begin(), texts.end());
    const uint32_t outside = function_.reg(ValueKind::strings);
    const uint32_t constant = parts_.writer.string_constant(bound.var->name, attributes.shape, texts);
    function_.emit(Opcode::load_constant, {outside, constant}, node);
    function_.emit(Opcode::take_strings, {reg, outside}, node);
    lasting_.insert(reg);
  } else {
    if (!info.shape) return refuse(bound.value, "the shape of '" + bound.var->name + "' is not known");
    const Registers from = TRY(values(call.args.at(0)));
    std::vector<uint32_t> operands{reg, from.at(0), immediate(0)};
    TRY(push_dims(operands, *info.shape));
    function_.emit(Opcode::view, std::move(operands), node);
    if (lasting_.count(from.at(0))) lasting_.insert(reg);
  }
  registers_[bound.var.get()] = {reg};
  return true;
}

}  // namespace lathe::lower
