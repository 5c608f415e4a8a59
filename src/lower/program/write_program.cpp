#include "lower/program/write_program.h"

#include "ir/visit.h"
#include "lower/codes.h"
#include "lower/program/dlpack_type.h"
#include "lower/program/scalars.h"
#include "relax/infer.h"
#include "support/mutation.h"

namespace lathe::lower {

LATHE_FAULT(write_program_swaps_operands, "lower_test", "a kernel gets its first two operands swapped");

namespace {

using namespace relax;  // NOLINT: the subject of this file
using abi::Opcode;
using abi::ValueKind;

class ProgramBuilder {
 public:
  ProgramBuilder(const ir::IRModule& module, relax::Function main)
      : module_(module), main_(std::move(main)), function_(program_.function("main")), scalars_(program_, function_) {}

  Result<Program> run() {
    result_.plan = plan_memory(module_, main_);
    if (result_.plan.arena_bytes > 0)
      arena_ = program_.arena({.bytes = static_cast<uint64_t>(result_.plan.arena_bytes), .alignment = plan_alignment});
    for (int64_t i = 0; i < result_.plan.slots; ++i)
      slots_.push_back(program_.storage({.kind = abi::StorageKind::dynamic, .alignment = plan_alignment}));

    for (const Var& param : main_->params) TRY(declare_input(param));
    for (const Var& param : main_->params) bind_symbols(param);
    for (const Var& param : main_->params) TRY(check_input(param));
    const auto* body = main_->body.as<SeqExpr>();
    for (const BindingBlock& block : body->blocks)
      for (const Binding& binding : block->bindings) TRY(step(binding));
    TRY(finish(body->body));
    program_.finish_function(std::move(function_));
    result_.bytes = program_.finish(0);
    return std::move(result_);
  }

 private:
  using Registers = std::vector<uint32_t>;

  static support::Diagnostic refuse(const ir::NodeRef& at, std::string message) {
    support::Diagnostic d{.code = codes::program, .message = std::move(message)};
    if (at && at->origin()) d.place = *at->origin();
    return d;
  }

  static std::string node_name(const ir::NodeRef& at) {
    if (!at || !at->origin()) return "";
    const auto* node = std::get_if<support::ModelNode>(at->origin().get());
    return node ? node->node : support::render(*at->origin());
  }

  // ---- signature ----

  static abi::PortSpec port(const std::string& name, const TensorStructInfo& info) {
    abi::PortSpec spec{.name = name, .dtype = dlpack_type(info.dtype)};
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

  uint32_t tensor_register(const TensorStructInfo& info, const std::string& name) {
    return function_.reg(ValueKind::tensor, dlpack_type(info.dtype), static_cast<int16_t>(info.ndim), name);
  }

  Result<std::monostate> declare_input(const Var& param) {
    const auto* info = as_tensor(param);
    if (!info || !info->shape) return refuse(param, "the rank of the input '" + param->name + "' is not known");
    program_.input(port(param->name, *info));
    registers_[param.get()] = {function_.parameter(ValueKind::tensor, dlpack_type(info->dtype),
                                                   static_cast<int16_t>(info->ndim), param->name)};
    return support::success();
  }

  // A dimension that is a variable is bound by the first input that has it. After all inputs are declared: a function's
  // parameters are its first registers.
  void bind_symbols(const Var& param) {
    const auto* info = as_tensor(param);
    for (size_t d = 0; d < info->shape->size(); ++d)
      if (const auto* symbol = (*info->shape)[d].as<ir::VarNode>(); symbol && !scalars_.bound(ir::Var(symbol))) {
        const uint32_t reg = function_.reg(ValueKind::scalar, {}, -1, symbol->name);
        function_.emit(Opcode::read_dim,
                       {reg, registers_[param.get()][0], program_.immediate(static_cast<int64_t>(d))});
        scalars_.bind(ir::Var(symbol), reg);
      }
  }

  // Every dimension is compared with what is known, so that a wrong input is refused before any kernel runs.
  Result<std::monostate> check_input(const Var& param) {
    const auto* info = as_tensor(param);
    return match(registers_[param.get()][0], *info,
                 "input '" + param->name + "' does not have the shape the model was compiled for", "");
  }

  Result<std::monostate> match(uint32_t reg, const TensorStructInfo& info, const std::string& message,
                               const std::string& node) {
    std::vector<uint32_t> operands{reg, program_.text(message), static_cast<uint32_t>(info.shape->size())};
    for (const ir::Expr& extent : *info.shape)
      operands.push_back(scalars_.known(extent) ? TRY(scalars_.operand(extent)) : abi::absent);
    function_.emit(Opcode::match_shape, std::move(operands), node);
    return support::success();
  }

  // ---- values ----

  uint32_t constant_register(const Constant& constant) {
    const ir::TensorData& data = constant.data;
    const support::Hash128 key = ir::structural_hash(data);
    if (const auto it = constants_.find(key); it != constants_.end()) return it->second;
    const int64_t offset = (result_.weight_bytes + plan_alignment - 1) / plan_alignment * plan_alignment;
    result_.weights.push_back({data, offset});
    result_.weight_bytes = offset + data->byte_size();
    const uint32_t index = program_.constant({.name = "constant_" + std::to_string(constants_.size()),
                                              .dtype = dlpack_type(data->dtype),
                                              .shape = data->shape,
                                              .offset = static_cast<uint64_t>(offset),
                                              .bytes = static_cast<uint64_t>(data->byte_size())});
    const uint32_t reg =
        function_.reg(ValueKind::tensor, dlpack_type(data->dtype), static_cast<int16_t>(data->shape.size()));
    function_.emit(Opcode::load_constant, {reg, index});
    return constants_[key] = reg;
  }

  Result<Registers> values(const Expr& e) {
    if (const auto* constant = e.as<Constant>()) return Registers{constant_register(*constant)};
    if (const auto* tuple = e.as<Tuple>()) {
      Registers all;
      for (const Expr& item : tuple->items) {
        const Registers one = TRY(values(item));
        all.insert(all.end(), one.begin(), one.end());
      }
      return all;
    }
    const auto it = registers_.find(e.get());
    if (it == registers_.end()) return refuse(e, "a value has no register");
    return it->second;
  }

  Result<std::monostate> push_dims(std::vector<uint32_t>& operands, const std::vector<ir::Expr>& shape) {
    operands.push_back(static_cast<uint32_t>(shape.size()));
    for (const ir::Expr& extent : shape) operands.push_back(TRY(scalars_.operand(extent)));
    return support::success();
  }

  // A register with memory for output number `output` of the kernel bound to `var`.
  Result<uint32_t> allocate(const Var& var, int output, const TensorStructInfo& info, const std::string& node) {
    if (!info.shape) return refuse(var, "the shape of '" + var->name + "' is not known");
    const Placement& placement = result_.plan.placements.at({var.get(), output});
    uint32_t storage = abi::absent;
    if (placement.kind == Placement::planned) {
      storage = program_.storage({.kind = abi::StorageKind::planned,
                                  .index = arena_,
                                  .offset = static_cast<uint64_t>(placement.offset),
                                  .bytes = static_cast<uint64_t>(placement.bytes),
                                  .alignment = plan_alignment});
    } else if (placement.kind == Placement::slot) {
      storage = slots_.at(static_cast<size_t>(placement.slot_index));
      ir::Expr bits = ir::product(*info.shape) * info.dtype.storage_bits();
      const ir::Expr bytes = ir::floordiv(bits + 7, ir::int64(8));
      function_.emit(Opcode::reserve_storage, {storage, TRY(scalars_.operand(bytes))}, node);
    } else {
      storage = program_.storage({.kind = abi::StorageKind::output,
                                  .index = static_cast<uint32_t>(placement.slot_index),
                                  .alignment = plan_alignment});
    }
    const uint32_t reg = tensor_register(info, var->name);
    std::vector<uint32_t> operands{reg, storage};
    TRY(push_dims(operands, *info.shape));
    function_.emit(Opcode::alloc_tensor, std::move(operands), node);
    return reg;
  }

  // ---- bindings ----

  Result<std::monostate> step(const Binding& binding) {
    if (const auto* cast = binding.as<MatchCast>()) {
      if (const auto* extents = cast->value.as<ShapeExpr>()) return check_extents(*cast, *extents, node_name(binding));
      const Registers from = TRY(values(cast->value));
      if (const auto* info = cast->struct_info.as<TensorStructInfo>(); info && info->shape && from.size() == 1) {
        for (size_t d = 0; d < info->shape->size(); ++d)
          if (const auto* symbol = (*info->shape)[d].as<ir::VarNode>(); symbol && !scalars_.bound(ir::Var(symbol))) {
            const uint32_t reg = function_.reg(ValueKind::scalar, {}, -1, symbol->name);
            function_.emit(Opcode::read_dim, {reg, from[0], program_.immediate(static_cast<int64_t>(d))});
            scalars_.bind(ir::Var(symbol), reg);
          }
        TRY(match(from[0], *info, "'" + cast->var->name + "' does not have the shape that was expected",
                  node_name(binding)));
      }
      if (const auto* shape = cast->struct_info.as<ShapeStructInfo>(); shape && shape->values)
        TRY(bind_integers(*shape, from.at(0), node_name(binding)));
      registers_[cast->var.get()] = from;
      return support::success();
    }
    const auto& bound = *binding.as<VarBinding>();
    if (const auto parts = as_call_tir(bound.value)) return call_kernel(bound, *parts);
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
    const auto* call = bound.value.as<Call>();
    const Operator* op = call ? callee_operator(*call) : nullptr;
    if (op && op->is_view) return view(bound, *call);
    if (op && std::holds_alternative<RuntimeKernel>(op->meaning))
      return call_runtime_kernel(bound, *call, std::get<RuntimeKernel>(op->meaning));
    return refuse(bound.value, op ? "the operator " + std::string(op->name) + " was not lowered"
                                  : "this value cannot be computed at run time");
  }

  // What type rules took for true of extents.
  Result<std::monostate> check_extents(const MatchCast& cast, const ShapeExpr& extents, const std::string& node) {
    const auto* wanted = cast.struct_info.as<ShapeStructInfo>();
    if (!wanted || !wanted->values || wanted->values->size() != extents.values.size())
      return refuse(cast.value, "a shape is matched with a value that is none of its rank");
    for (size_t d = 0; d < extents.values.size(); ++d) {
      const ir::Expr &actual = extents.values[d], &expected = (*wanted->values)[d];
      // 1, or what it broadcasts to, which may be such a choice itself.
      const auto* choice = expected.as<ir::Select>();
      const ir::Expr& other = choice ? choice->false_value : expected;
      const auto* inner = other.as<ir::Select>();
      std::string left = text_of(actual), right = text_of(inner ? inner->false_value : other);
      if (ir::as_int(actual)) std::swap(left, right);
      const std::string text = "the shapes do not fit: " + left + " must be " + (choice ? "1 or " : "") + right;
      const uint32_t same = function_.reg(ValueKind::scalar);
      function_.emit(Opcode::scalar_equal, {same, TRY(scalars_.operand(actual)), TRY(scalars_.operand(expected))},
                     node);
      function_.emit(Opcode::assert_true, {same, program_.text(text)}, node);
    }
    return support::success();
  }

  // The elements of a tensor as scalars: variables met first are bound, other values are checked.
  Result<std::monostate> bind_integers(const ShapeStructInfo& shape, uint32_t tensor, const std::string& node) {
    for (size_t i = 0; i < shape.values->size(); ++i) {
      const ir::Expr& value = (*shape.values)[i];
      const uint32_t element = function_.reg(ValueKind::scalar);
      function_.emit(Opcode::load_scalar, {element, tensor, program_.immediate(static_cast<int64_t>(i))}, node);
      if (const auto* symbol = value.as<ir::VarNode>(); symbol && !scalars_.bound(ir::Var(symbol))) {
        scalars_.bind(ir::Var(symbol), element);
        continue;
      }
      const uint32_t same = function_.reg(ValueKind::scalar);
      function_.emit(Opcode::scalar_equal, {same, element, TRY(scalars_.operand(value))}, node);
      function_.emit(Opcode::assert_true, {same, program_.text("a computed integer is not the one expected")}, node);
    }
    return support::success();
  }

  Result<std::monostate> call_kernel(const VarBinding& bound, const CallTir& parts) {
    const auto function = module_.find_as<tir::PrimFunc>(parts.function);
    if (!function) return refuse(bound.value, "the module has no function '" + parts.function + "'");
    const std::string node = node_name(bound.value);
    Registers tensors;
    for (const Expr& tensor : parts.args) {
      const Registers one = TRY(values(tensor));
      tensors.insert(tensors.end(), one.begin(), one.end());
    }
    Registers made;
    for (size_t i = 0; i < parts.outputs.size(); ++i)
      made.push_back(TRY(allocate(bound.var, static_cast<int>(i), *parts.outputs[i].as<TensorStructInfo>(), node)));
    tensors.insert(tensors.end(), made.begin(), made.end());
    if (support::flip(write_program_swaps_operands) && tensors.size() > 2) std::swap(tensors[0], tensors[1]);
    const auto scalar_count = static_cast<uint32_t>(parts.scalars.size());
    std::vector<uint32_t> operands{kernel_index(parts.function, static_cast<uint32_t>(tensors.size()), scalar_count)};
    operands.push_back(static_cast<uint32_t>(tensors.size()));
    operands.insert(operands.end(), tensors.begin(), tensors.end());
    operands.push_back(scalar_count);
    for (const ir::Expr& scalar : parts.scalars) operands.push_back(TRY(scalars_.operand(scalar)));
    function_.emit(Opcode::call_kernel, std::move(operands), node);
    registers_[bound.var.get()] = made;
    return support::success();
  }

  Result<std::monostate> call_runtime_kernel(const VarBinding& bound, const Call& call, const RuntimeKernel& kernel) {
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
    }
    const auto [it, is_new] = runtime_kernels_.try_emplace(std::string(kernel.name), 0);
    if (is_new) {
      it->second = program_.runtime_kernel(kernel.name);
      result_.runtime_kernels.emplace_back(kernel.name);
    }
    std::vector<uint32_t> operands{it->second, abi::absent, static_cast<uint32_t>(inputs.size())};
    operands.insert(operands.end(), inputs.begin(), inputs.end());
    operands.push_back(static_cast<uint32_t>(made.size()));
    operands.insert(operands.end(), made.begin(), made.end());
    function_.emit(Opcode::call_runtime_kernel, std::move(operands), node_name(bound.value));
    registers_[bound.var.get()] = made;
    return support::success();
  }

  uint32_t kernel_index(const std::string& name, uint32_t buffers, uint32_t scalars) {
    const auto [it, is_new] = kernels_.try_emplace(name, 0);
    if (is_new) {
      it->second = program_.kernel({.name = name, .buffer_count = buffers, .scalar_count = scalars});
      result_.kernels.push_back(name);
    }
    return it->second;
  }

  Result<std::monostate> view(const VarBinding& bound, const Call& call) {
    const auto* info = as_tensor(bound.var);
    if (!info || !info->shape) return refuse(bound.value, "the shape of '" + bound.var->name + "' is not known");
    const Registers from = TRY(values(call.args.at(0)));
    const uint32_t reg = tensor_register(*info, bound.var->name);
    std::vector<uint32_t> operands{reg, from.at(0), program_.immediate(0)};
    TRY(push_dims(operands, *info->shape));
    function_.emit(Opcode::view, std::move(operands), node_name(bound.value));
    registers_[bound.var.get()] = {reg};
    return support::success();
  }

  // Results that are not a kernel's own output (inputs, constants, views, repeats) are copied out.
  Result<std::monostate> finish(const Expr& result) {
    std::vector<Expr> results{result};
    if (const auto* tuple = result.as<Tuple>()) results = tuple->items;
    const auto* names = main_->attrs.get<ir::Value::List>("output_names");
    std::vector<uint32_t> operands{static_cast<uint32_t>(results.size())};
    std::map<const ir::Node*, size_t> direct;
    for (size_t i = 0; i < results.size(); ++i) {
      const auto* info = as_tensor(results[i]);
      if (!info || !info->shape)
        return refuse(results[i], "the shape of result " + std::to_string(i) + " is not known");
      const std::string* name = names && i < names->size() ? (*names)[i].get<std::string>() : nullptr;
      program_.output(port(name ? *name : "output_" + std::to_string(i), *info));
      uint32_t reg = TRY(values(results[i])).at(0);
      if (!written_in_place(results[i], i)) {
        const uint32_t storage = program_.storage(
            {.kind = abi::StorageKind::output, .index = static_cast<uint32_t>(i), .alignment = plan_alignment});
        const uint32_t copy = tensor_register(*info, "");
        std::vector<uint32_t> alloc{copy, storage};
        TRY(push_dims(alloc, *info->shape));
        function_.emit(Opcode::alloc_tensor, std::move(alloc));
        function_.emit(Opcode::copy, {copy, reg});
        reg = copy;
      }
      operands.push_back(reg);
    }
    function_.emit(Opcode::return_values, std::move(operands));
    return support::success();
  }

  bool written_in_place(const Expr& result, size_t index) const {
    for (const auto& [key, placement] : result_.plan.placements) {
      if (placement.kind != Placement::output || placement.slot_index != static_cast<int64_t>(index)) continue;
      const auto it = registers_.find(key.first);
      const auto own = registers_.find(result.get());
      return it != registers_.end() && own != registers_.end() && own->second.size() == 1 &&
             it->second.at(static_cast<size_t>(key.second)) == own->second[0];
    }
    return false;
  }

  const ir::IRModule& module_;
  relax::Function main_;
  abi::ProgramWriter program_;
  abi::FunctionWriter function_;
  Scalars scalars_;
  Program result_;
  uint32_t arena_ = 0;
  std::vector<uint32_t> slots_;
  std::unordered_map<const ir::Node*, Registers> registers_;
  std::unordered_map<support::Hash128, uint32_t> constants_;
  std::map<std::string, uint32_t> kernels_, runtime_kernels_;
};

}  // namespace

support::Result<Program> write_program(const ir::IRModule& module, const std::string& main) {
  const auto function = module.find_as<relax::FunctionNode>(main);
  if (!function)
    return support::Diagnostic{.code = codes::program, .message = "the module has no function '" + main + "'"};
  return ProgramBuilder(module, function).run();
}

}  // namespace lathe::lower
