// What a function takes and gives: ports, registers of its parameters, their checks, its results.
#include "ir/formats/dlpack_type.h"
#include "lower/program/function_lowering.h"
#include "lower/states/states.h"
#include "relax/dim_sizes.h"
#include "relax/infer.h"
#include "relax/strings.h"

namespace lathe::lower {

using namespace relax;  // NOLINT: the subject of this file
using abi::Opcode;
using abi::ValueKind;
using support::Result;

abi::PortSpec FunctionLowering::port(const std::string& name, const TensorStructInfo& info) {
  abi::PortSpec spec{.name = name, .dtype = ir::dlpack_type(info.dtype)};
  if (info.dtype == string_dtype) {
    spec.kind = ValueKind::strings;
    spec.dtype = {};
  }
  if (!info.shape) {
    spec.unknown_rank = true;
    return spec;
  }
  for (const ir::Expr& extent : *info.shape) {
    const auto value = ir::as_int(extent);
    const auto* symbol = extent.as<ir::VarNode>();
    spec.dims.push_back({value.value_or(-1), symbol ? symbol->name : ""});
  }
  return spec;
}

std::optional<ValueKind> FunctionLowering::collection_kind(const StructInfo& info) {
  if (info.is<SequenceStructInfo>()) return ValueKind::sequence;
  if (info.is<OptionalStructInfo>()) return ValueKind::optional;
  return std::nullopt;
}

support::Status FunctionLowering::declare_input(const Var& param) {
  if (const auto kind = collection_kind(param->struct_info)) {
    parts_.writer.input({.name = param->name, .kind = *kind, .unknown_rank = true});
    return declare_parameter(param);
  }
  if (const ir::Expr size = as_size(param)) {
    const auto* symbol = size.as<ir::VarNode>();
    parts_.writer.input({.name = symbol ? symbol->name : param->name, .kind = ValueKind::scalar});
    return declare_parameter(param);
  }
  const auto* info = as_tensor(param);
  if (!info || !info->shape) return refuse(param, "the rank of the input '" + param->name + "' is not known");
  parts_.writer.input(port(param->name, *info));
  return declare_parameter(param);
}

void FunctionLowering::declare_states() {
  const std::vector<Var>& params = planned_.function->params;
  const std::vector<State> states = states_of(*planned_.function);
  const auto counts = [&](uint32_t i, const State& state) {
    const ir::Expr size = as_size(params[params.size() - states.size() + i]);
    const auto* symbol = size ? size.as<ir::VarNode>() : nullptr;
    return symbol && symbol->name == state.length;
  };
  for (const State& state : states) {
    uint32_t length = 0;
    while (length < states.size() && !counts(length, state)) ++length;
    parts_.writer.state({state.is_in_place() ? abi::absent : static_cast<uint32_t>(state.output),
                         state.is_in_place() ? length : abi::absent,
                         state.is_in_place() ? static_cast<uint32_t>(state.axis) : abi::absent, 0});
  }
}

// A function's parameters are its first registers.
support::Status FunctionLowering::declare_parameter(const Var& param) {
  Registers& registers = registers_[param.get()];
  const std::function<Status(const StructInfo&)> declare = [&](const StructInfo& info) -> Status {
    if (planned_.is_main && info.is<TensorStructInfo>() && holds_strings(info)) {
      registers.push_back(function_.parameter(ValueKind::strings, {}, -1, param->name));
      return support::success();
    }
    if (const auto* tensor = info.as<TensorStructInfo>()) {
      registers.push_back(function_.parameter(ValueKind::tensor, ir::dlpack_type(tensor->dtype),
                                              static_cast<int16_t>(tensor->ndim), param->name));
      return support::success();
    }
    if (const auto kind = collection_kind(info)) {
      registers.push_back(function_.parameter(*kind, {}, -1, param->name));
      return support::success();
    }
    if (const auto* shape = info.as<ShapeStructInfo>(); shape && shape->ndim >= 0) {
      for (int64_t i = 0; i < shape->ndim; ++i)
        registers.push_back(function_.parameter(ValueKind::scalar, {}, -1, param->name));
      return support::success();
    }
    if (const auto* tuple = info.as<TupleStructInfo>()) {
      for (const StructInfo& item : tuple->items) TRY(declare(item));
      return support::success();
    }
    return refuse(param, "a value like '" + param->name + "' cannot be passed to a function");
  };
  return declare(param->struct_info);
}

// A dimension that is a variable is bound by the first parameter that has it.
void FunctionLowering::bind_symbols(const StructInfo& info, const Registers& registers) {
  size_t next = 0;
  const std::function<void(const StructInfo&)> bind = [&](const StructInfo& each) {
    if (const auto* tuple = each.as<TupleStructInfo>())
      for (const StructInfo& item : tuple->items) bind(item);
    if (const auto* tensor = each.as<TensorStructInfo>()) {
      const uint32_t reg = registers.at(next++);
      for (size_t d = 0; tensor->shape && d < tensor->shape->size(); ++d) {
        const auto* symbol = (*tensor->shape)[d].as<ir::VarNode>();
        if (!symbol || scalars_.bound(ir::Var(symbol))) continue;
        const uint32_t extent = function_.reg(ValueKind::scalar, {}, -1, symbol->name);
        function_.emit(Opcode::read_dim, {extent, reg, immediate(static_cast<int64_t>(d))});
        scalars_.bind(ir::Var(symbol), extent);
      }
    }
    if (collection_kind(each)) ++next;
    if (const auto* shape = each.as<ShapeStructInfo>())
      for (int64_t i = 0; i < shape->ndim; ++i) {
        const uint32_t reg = registers.at(next++);
        const auto* symbol = shape->values ? (*shape->values)[static_cast<size_t>(i)].as<ir::VarNode>() : nullptr;
        if (symbol && !scalars_.bound(ir::Var(symbol))) scalars_.bind(ir::Var(symbol), reg);
      }
  };
  bind(info);
}

// Every dimension is compared with what is known, so that a wrong input is refused before any kernel runs.
support::Status FunctionLowering::check_input(const Var& param) {
  const auto* info = as_tensor(param);
  if (!info || !info->shape) return support::success();
  const std::string message = planned_.is_main
                                  ? "input '" + param->name + "' does not have the shape the model was compiled for"
                                  : "'" + param->name + "' does not have the shape that was expected";
  return match(registers_.at(param.get())[0], *info, message, "");
}

support::Status FunctionLowering::match(uint32_t reg, const TensorStructInfo& info, const std::string& message,
                                        const std::string& node) {
  std::vector<uint32_t> operands{reg, parts_.writer.text(message), static_cast<uint32_t>(info.shape->size())};
  for (const ir::Expr& extent : *info.shape)
    operands.push_back(scalars_.known(extent) ? TRY(scalars_.operand(extent)) : abi::absent);
  function_.emit(Opcode::match_shape, std::move(operands), node);
  return support::success();
}

// Results that are not all of a kernel's own output (inputs, constants, parts, repeats) are copied out.
support::Status FunctionLowering::finish_main(const Expr& result) {
  std::vector<Expr> results{result};
  if (const auto* tuple = result.as<Tuple>()) results = tuple->items;
  const auto* names = planned_.function->attrs.get<ir::Value::List>("output_names");
  std::vector<uint32_t> operands{static_cast<uint32_t>(results.size())};
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string* given = names && i < names->size() ? (*names)[i].get<std::string>() : nullptr;
    const std::string name = given ? *given : "output_" + std::to_string(i);
    if (const auto kind = collection_kind(results[i]->struct_info)) {
      parts_.writer.output({.name = name, .kind = *kind, .unknown_rank = true});
      operands.push_back(given_strings(TRY(values(results[i])).at(0), results[i]->struct_info));
      continue;
    }
    if (as_size(results[i])) {
      parts_.writer.output({.name = name, .kind = ValueKind::scalar});
      operands.push_back(TRY(values(results[i])).at(0));
      continue;
    }
    const auto* info = as_tensor(results[i]);
    if (!info || !info->shape) return refuse(results[i], "the shape of result " + std::to_string(i) + " is not known");
    parts_.writer.output(port(name, *info));
    uint32_t reg = TRY(values(results[i])).at(0);
    if (info->dtype == string_dtype) {
      operands.push_back(given_strings(reg, results[i]->struct_info));
      continue;
    }
    if (!written_in_place(results[i], i))
      reg = TRY(copied(
          reg, *info,
          parts_.writer.storage(
              {.kind = abi::StorageKind::output, .index = static_cast<uint32_t>(i), .alignment = plan_alignment})));
    operands.push_back(reg);
  }
  function_.emit(Opcode::return_values, std::move(operands));
  return support::success();
}

// What a caller in the program gets lasts: it goes on when this function's memory is used for something else.
support::Status FunctionLowering::finish(const Expr& result) {
  std::vector<uint32_t> operands;
  const std::function<Status(const Expr&, const StructInfo&, const Registers&)> add =
      [&](const Expr& e, const StructInfo& info, const Registers& registers) -> Status {
    if (const auto* tuple = e.as<Tuple>()) {
      for (const Expr& item : tuple->items) TRY(add(item, item->struct_info, TRY(values(item))));
      return support::success();
    }
    size_t next = 0;
    const std::function<Status(const StructInfo&)> leaves = [&](const StructInfo& each) -> Status {
      if (const auto* tuple = each.as<TupleStructInfo>()) {
        for (const StructInfo& item : tuple->items) TRY(leaves(item));
        return support::success();
      }
      uint32_t reg = registers.at(next++);
      if (const auto* tensor = each.as<TensorStructInfo>(); tensor && !lasting_.count(reg))
        reg = TRY(copied(reg, *tensor));
      operands.push_back(reg);
      return support::success();
    };
    return leaves(info);
  };
  TRY(add(result, result->struct_info, TRY(values(result))));
  operands.insert(operands.begin(), static_cast<uint32_t>(operands.size()));
  function_.emit(Opcode::return_values, std::move(operands));
  return support::success();
}

bool FunctionLowering::written_in_place(const Expr& result, size_t index) const {
  for (const auto& [key, placement] : planned_.plan.placements) {
    if (placement.kind != Placement::output || placement.slot_index != static_cast<int64_t>(index)) continue;
    const auto it = registers_.find(key.first);
    const auto own = registers_.find(result.get());
    return it != registers_.end() && own != registers_.end() && own->second.size() == 1 &&
           memory_of(it->second.at(static_cast<size_t>(key.second))) == memory_of(own->second[0]);
  }
  return false;
}

}  // namespace lathe::lower
