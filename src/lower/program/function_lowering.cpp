#include "lower/program/function_lowering.h"

#include "ir/formats/dlpack_type.h"
#include "lower/batch/batch_parts.h"
#include "lower/codes.h"
#include "relax/dim_sizes.h"
#include "relax/infer.h"
#include "relax/mismatch.h"
#include "relax/strings.h"

namespace lathe::lower {

using namespace relax;  // NOLINT: the subject of this file
using abi::Opcode;
using abi::ValueKind;
using support::Result;

support::Status write_function(ProgramParts& parts, const std::string& name) {
  TRY(FunctionLowering(parts, name).run());
  parts.writer.finish_function(std::move(parts.writers.at(name)));
  return support::success();
}

FunctionLowering::FunctionLowering(ProgramParts& parts, const std::string& name)
    : parts_(parts),
      planned_(parts.functions.at(name)),
      function_(parts.writers.at(name)),
      scalars_(parts.writer, function_) {}

support::Status FunctionLowering::run() {
  for (int64_t i = 0; i < planned_.plan.slots; ++i)
    slots_.push_back(parts_.writer.storage({.kind = abi::StorageKind::dynamic, .alignment = plan_alignment}));
  const std::vector<Var>& params = planned_.function->params;
  for (const Var& param : params) TRY(planned_.is_main ? declare_input(param) : declare_parameter(param));
  if (planned_.is_main) declare_states();
  for (const Var& param : params)
    if (planned_.is_main && holds_strings(param->struct_info)) TRY(take_strings(param));
  for (const Var& param : params) bind_symbols(param->struct_info, registers_.at(param.get()));
  for (const Var& param : params) TRY(check_input(param));
  for (const Assert& each : TRY(size_checks(*planned_.function))) TRY(check(each, planned_.function));
  const auto* body = planned_.function->body.as<SeqExpr>();
  for (const BindingBlock& block : body->blocks)
    for (const Binding& binding : block->bindings) TRY(step(binding));
  return planned_.is_main ? finish_main(body->body) : finish(body->body);
}

support::Diagnostic FunctionLowering::refuse(const ir::NodeRef& at, std::string message) {
  support::Diagnostic d{.code = codes::program, .message = std::move(message)};
  if (at && at->origin()) d.place = *at->origin();
  return d;
}

std::string FunctionLowering::operator_prefix(const ir::NodeRef& at) {
  const auto* node = at && at->origin() ? std::get_if<support::ModelNode>(at->origin().get()) : nullptr;
  return node && !node->operator_type.empty() ? node->operator_type + ": " : "";
}

// ---- values ----

uint32_t FunctionLowering::tensor_register(const TensorStructInfo& info, const std::string& name) {
  return function_.reg(ValueKind::tensor, ir::dlpack_type(info.dtype), static_cast<int16_t>(info.ndim), name);
}

Result<Registers> FunctionLowering::make_registers(const StructInfo& info, const std::string& name) {
  if (const auto* tensor = info.as<TensorStructInfo>()) return Registers{tensor_register(*tensor, name)};
  if (const auto* tuple = info.as<TupleStructInfo>()) {
    Registers all;
    for (const StructInfo& item : tuple->items) {
      const Registers one = TRY(make_registers(item, name));
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  if (const auto kind = collection_kind(info)) return Registers{function_.reg(*kind, {}, -1, name)};
  return refuse({}, "the value '" + name + "' is of a type that the program cannot hold");
}

uint32_t FunctionLowering::constant_register(const Constant& constant) {
  const uint32_t index = parts_.constant(constant.data);
  const auto [it, is_new] = constants_.try_emplace(index, 0);
  if (!is_new) return it->second;
  it->second = function_.reg(ValueKind::tensor, ir::dlpack_type(constant.data->dtype),
                             static_cast<int16_t>(constant.data->shape.size()));
  function_.emit(Opcode::load_constant, {it->second, index});
  lasting_.insert(it->second);
  return it->second;
}

Result<uint32_t> FunctionLowering::scalar_register(const ir::Expr& e) {
  const uint32_t operand = TRY(scalars_.operand(e));
  if ((operand & abi::immediate_bit) == 0) return operand;
  const uint32_t reg = function_.reg(ValueKind::scalar);
  function_.emit(Opcode::scalar_set, {reg, operand});
  return reg;
}

Result<Registers> FunctionLowering::values(const Expr& e) {
  if (const auto* constant = e.as<Constant>()) return Registers{constant_register(*constant)};
  Registers all;
  if (const auto* tuple = e.as<Tuple>()) {
    for (const Expr& item : tuple->items) {
      const Registers one = TRY(values(item));
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  if (const auto* shape = e.as<ShapeExpr>()) {
    for (const ir::Expr& value : shape->values) all.push_back(TRY(scalar_register(value)));
    return all;
  }
  if (const auto* scalar = e.as<PrimValue>()) return Registers{TRY(scalar_register(scalar->value))};
  const auto it = registers_.find(e.get());
  if (it == registers_.end()) return refuse(e, "a value has no register");
  return it->second;
}

support::Status FunctionLowering::push_dims(std::vector<uint32_t>& operands, const std::vector<ir::Expr>& shape) {
  operands.push_back(static_cast<uint32_t>(shape.size()));
  for (const ir::Expr& extent : shape) operands.push_back(TRY(scalars_.operand(extent)));
  return support::success();
}

// A register with memory for output number `output` of the kernel bound to `var`.
support::Result<uint32_t> FunctionLowering::allocate(const Var& var, int output, const TensorStructInfo& info,
                                                     const std::string& node) {
  if (!info.shape) return refuse(var, "the shape of '" + var->name + "' is not known");
  const Placement& placement = planned_.plan.placements.at({var.get(), output});
  if (placement.whole)
    return viewed(TRY(whole_register(ir::cast<relax::VarNode>(placement.whole), node)), info, var->name, node,
                  placement.part * 8 / info.dtype.storage_bits());
  uint32_t storage = abi::absent;
  if (placement.kind == Placement::planned) {
    storage = parts_.writer.storage({.kind = abi::StorageKind::planned,
                                     .index = parts_.arena,
                                     .offset = static_cast<uint64_t>(planned_.first_byte + placement.offset),
                                     .bytes = static_cast<uint64_t>(placement.bytes),
                                     .alignment = plan_alignment});
  } else if (placement.kind == Placement::slot) {
    storage = slots_.at(static_cast<size_t>(placement.slot_index));
    const int64_t bits = info.dtype.storage_bits();
    const ir::Expr count = ir::product(*info.shape);
    const ir::Expr bytes = bits % 8 == 0 ? count * (bits / 8) : ir::floordiv(count * bits + 7, ir::int64(8));
    function_.emit(Opcode::reserve_storage, {storage, TRY(scalars_.operand(bytes))}, node);
  } else if (placement.kind == Placement::output) {
    storage = parts_.writer.storage({.kind = abi::StorageKind::output,
                                     .index = static_cast<uint32_t>(placement.slot_index),
                                     .alignment = plan_alignment});
  }
  // A result of another shape has its memory as what it is for the caller; the kernel writes a view of that.
  const auto* whole = placement.as ? placement.as.as<TensorStructInfo>() : &info;
  const uint32_t reg = tensor_register(*whole, var->name);
  if (placement.kind == Placement::own) lasting_.insert(reg);
  std::vector<uint32_t> operands{reg, storage};
  TRY(push_dims(operands, *whole->shape));
  function_.emit(Opcode::alloc_tensor, std::move(operands), node);
  return whole == &info ? reg : viewed(reg, info, var->name, node);
}

Result<uint32_t> FunctionLowering::copied(uint32_t from, const TensorStructInfo& info, uint32_t storage) {
  const uint32_t reg = tensor_register(info, "");
  std::vector<uint32_t> operands{reg, storage};
  if (info.shape) {
    TRY(push_dims(operands, *info.shape));
  } else {
    if (info.ndim < 0) return refuse({}, "a tensor of unknown rank cannot be copied");
    operands.push_back(static_cast<uint32_t>(info.ndim));
    for (int64_t d = 0; d < info.ndim; ++d) {
      const uint32_t extent = function_.reg(ValueKind::scalar);
      function_.emit(Opcode::read_dim, {extent, from, immediate(d)});
      operands.push_back(extent);
    }
  }
  function_.emit(Opcode::alloc_tensor, std::move(operands));
  function_.emit(Opcode::copy, {reg, from});
  if (storage == abi::absent) lasting_.insert(reg);
  return reg;
}

// ---- bindings ----

support::Status FunctionLowering::step(const Binding& binding) {
  if (const auto* each = binding.as<MatchCast>()) return cast(*each, binding);
  const auto& bound = *binding.as<VarBinding>();
  if (const auto parts = as_call_tir(bound.value)) return call_kernel(bound, *parts);
  if (const auto parts = as_branch(bound.value)) return branch(bound, *parts);
  if (const auto parts = as_loop(bound.value)) return loop(bound, *parts);
  if (is_tensor_to_shape(bound.value)) {  // its integers are loaded where a match_cast names them
    registers_[bound.var.get()] = TRY(values(bound.value.as<Call>()->args.at(0)));
    return support::success();
  }
  if (const auto* item = bound.value.as<TupleGetItem>()) {
    const Registers tuple = TRY(values(item->tuple));
    if (static_cast<size_t>(item->index) >= tuple.size()) return refuse(bound.value, "a tuple has no such item");
    registers_[bound.var.get()] = {tuple[static_cast<size_t>(item->index)]};
    return support::success();
  }
  if (bound.value.is<Tuple>() || bound.value.is<Constant>() || bound.value.is<VarNode>()) {
    registers_[bound.var.get()] = TRY(values(bound.value));
    return support::success();
  }
  if (const auto parts = as_assert(bound.value)) {
    registers_[bound.var.get()] = {};
    return check(*parts, bound.value);
  }
  const auto* call = bound.value.as<Call>();
  if (const auto* global = call ? call->callee.as<GlobalVar>() : nullptr)
    return call_function(bound, global->name, call->args);
  const Operator* op = call ? callee_operator(*call) : nullptr;
  if (op && op->is_view) return view(bound, *call);
  if (is_batch_part(bound.value)) return batch_part(bound, *call);
  if (is_joined_batch(bound.value)) return joined_batch(bound, *call);
  if (is_alloc_tensor(bound.value)) {
    registers_[bound.var.get()] = {TRY(allocate(bound.var, 0, *as_tensor(bound.var), node_name(bound.value)))};
    return support::success();
  }
  if (op && (TRY(collection(bound, *call, *op)) || TRY(strings(bound, *call, *op)))) return support::success();
  if (op && std::holds_alternative<RuntimeKernel>(op->meaning))
    return call_runtime_kernel(bound, *call, std::get<RuntimeKernel>(op->meaning));
  return refuse(bound.value, op ? "the operator " + std::string(op->name) + " was not lowered"
                                : "this value cannot be computed at run time");
}

support::Status FunctionLowering::cast(const MatchCast& cast, const Binding& at) {
  if (const auto* extents = cast.value.as<ShapeExpr>()) return check_extents(cast, *extents, at);
  const std::string node = node_name(at);
  const Registers from = TRY(values(cast.value));
  if (const auto* info = cast.struct_info.as<TensorStructInfo>(); info && info->shape && from.size() == 1) {
    bind_symbols(cast.struct_info, from);
    TRY(match(from[0], *info, "'" + cast.var->name + "' does not have the shape that was expected", node));
  }
  if (const auto* shape = cast.struct_info.as<ShapeStructInfo>(); shape && shape->values)
    TRY(bind_integers(*shape, from.at(0), node));
  registers_[cast.var.get()] = from;
  return support::success();
}

// What type rules took for true of extents.
support::Status FunctionLowering::check_extents(const MatchCast& cast, const ShapeExpr& extents, const Binding& at) {
  const auto* wanted = cast.struct_info.as<ShapeStructInfo>();
  if (!wanted || !wanted->values || wanted->values->size() != extents.values.size())
    return refuse(cast.value, "a shape is matched with a value that is none of its rank");
  for (size_t d = 0; d < extents.values.size(); ++d) {
    const ir::Expr &actual = extents.values[d], &expected = (*wanted->values)[d];
    const Message message = mismatch(actual, expected);
    TRY(check({ir::eq(actual, expected), message.numbers(), message.format()}, at));
  }
  return support::success();
}

// The text names the operator, the instruction the node.
support::Status FunctionLowering::check(const Assert& parts, const ir::NodeRef& at) {
  std::string text = operator_prefix(at);
  const std::string& format = parts.format;
  for (size_t i = 0; i < format.size(); ++i) {
    const bool is_number = format.compare(i, 2, "{}") == 0;
    text += is_number ? '%' : format[i] == '%' ? ' ' : format[i];
    i += is_number ? 1 : 0;
  }
  std::vector<uint32_t> values;
  for (const ir::Expr& number : parts.numbers) values.push_back(TRY(scalars_.operand(number)));
  std::vector<uint32_t> operands = {TRY(scalars_.operand(parts.condition)), parts_.writer.text(text),
                                    static_cast<uint32_t>(values.size())};
  operands.insert(operands.end(), values.begin(), values.end());
  function_.emit(Opcode::assert_numbers, std::move(operands), node_name(at));
  return support::success();
}

// The elements of a tensor as scalars: variables met first are bound, other values are checked.
support::Status FunctionLowering::bind_integers(const ShapeStructInfo& shape, uint32_t tensor,
                                                const std::string& node) {
  for (size_t i = 0; i < shape.values->size(); ++i) {
    const ir::Expr& value = (*shape.values)[i];
    const uint32_t element = function_.reg(ValueKind::scalar);
    function_.emit(Opcode::load_scalar, {element, tensor, parts_.writer.immediate(static_cast<int64_t>(i))}, node);
    if (const auto* symbol = value.as<ir::VarNode>(); symbol && !scalars_.bound(ir::Var(symbol))) {
      scalars_.bind(ir::Var(symbol), element);
      continue;
    }
    const uint32_t same = function_.reg(ValueKind::scalar);
    function_.emit(Opcode::scalar_equal, {same, element, TRY(scalars_.operand(value))}, node);
    function_.emit(Opcode::assert_true, {same, parts_.writer.text("a computed integer is not the one expected")}, node);
  }
  return support::success();
}

support::Status FunctionLowering::view(const VarBinding& bound, const Call& call) {
  const auto* info = as_tensor(bound.var);
  if (!info || !info->shape) return refuse(bound.value, "the shape of '" + bound.var->name + "' is not known");
  const Registers from = TRY(values(call.args.at(0)));
  registers_[bound.var.get()] = {TRY(viewed(from.at(0), *info, bound.var->name, node_name(bound.value)))};
  return support::success();
}

support::Status FunctionLowering::batch_part(const VarBinding& bound, const Call& call) {
  const TensorStructInfo& info = *as_tensor(bound.var);
  const Registers from = TRY(values(call.args.at(0)));
  registers_[bound.var.get()] = {
      TRY(viewed(from.at(0), info, bound.var->name, node_name(bound.value), first_element(call)))};
  return support::success();
}

support::Status FunctionLowering::joined_batch(const VarBinding& bound, const Call& call) {
  const std::string node = node_name(bound.value);
  const uint32_t whole = TRY(whole_register(bound.var, node));
  int64_t first = 0;
  for (const Expr& part : call.args) {
    const TensorStructInfo& info = *as_tensor(part);
    const uint32_t own = TRY(values(part)).at(0);
    if (memory_of(own) != memory_of(whole)) {
      const uint32_t place = TRY(viewed(whole, info, "", node, first));
      function_.emit(Opcode::copy, {place, own}, node);
    }
    first += *ir::as_int(ir::product(*info.shape));
  }
  registers_[bound.var.get()] = {whole};
  return support::success();
}

Result<uint32_t> FunctionLowering::whole_register(const Var& var, const std::string& node) {
  const auto it = wholes_.find(var.get());
  if (it != wholes_.end()) return it->second;
  const uint32_t reg = TRY(allocate(var, 0, *as_tensor(var), node));
  wholes_.emplace(var.get(), reg);
  return reg;
}

Result<uint32_t> FunctionLowering::viewed(uint32_t from, const TensorStructInfo& info, const std::string& name,
                                          const std::string& node, int64_t first) {
  const uint32_t reg = tensor_register(info, name);
  std::vector<uint32_t> operands{reg, from, parts_.writer.immediate(first)};
  TRY(push_dims(operands, *info.shape));
  function_.emit(Opcode::view, std::move(operands), node);
  if (lasting_.count(from)) lasting_.insert(reg);
  views_[reg] = memory_of(from);
  return reg;
}

uint32_t FunctionLowering::memory_of(uint32_t reg) const {
  const auto it = views_.find(reg);
  return it == views_.end() ? reg : it->second;
}

}  // namespace lathe::lower
