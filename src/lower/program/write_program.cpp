#include "lower/program/write_program.h"

#include "ir/formats/dlpack_type.h"
#include "lower/codes.h"
#include "lower/program/program_parts.h"
#include "lower/states/states.h"
#include "relax/control.h"

namespace lathe::lower {

namespace {

constexpr int deepest_call = 64;  // as the runtime's verifier of programs

support::Diagnostic refuse_program(std::string message) {
  return {.code = codes::program, .message = std::move(message)};
}

// The functions that `main` reaches, each before those it calls; a function that calls itself is refused.
class FunctionOrder {
 public:
  explicit FunctionOrder(const ir::IRModule& module) : module_(module) {}

  support::Status visit(const std::string& name, int above = 0) {
    const auto [it, is_new] = height_.try_emplace(name, is_open);
    if (it->second == is_open && !is_new) return refuse_program("the function '" + name + "' calls itself");
    if (above + (is_new ? 0 : it->second) > deepest_call)
      return refuse_program("functions call each other more than " + std::to_string(deepest_call) + " deep");
    if (!is_new) return support::success();
    const auto function = module_.find_as<relax::FunctionNode>(name);
    if (!function) return refuse_program("the module has no function '" + name + "'");
    int height = 0;
    for (const std::string& callee : callees_of(*function)) {
      TRY(visit(callee, above + 1));
      height = std::max(height, height_.at(callee) + 1);
    }
    height_[name] = height;
    order.insert(order.begin(), name);
    return support::success();
  }

  static std::vector<std::string> callees_of(const relax::FunctionNode& function) {
    std::vector<std::string> all;
    for (const relax::BindingBlock& block : function.body.as<relax::SeqExpr>()->blocks)
      for (const relax::Binding& binding : block->bindings)
        if (const auto* bound = binding.as<relax::VarBinding>())
          for (std::string& name : relax::called_functions(bound->value)) all.push_back(std::move(name));
    return all;
  }

  std::vector<std::string> order;

 private:
  static constexpr int is_open = -1;
  const ir::IRModule& module_;
  std::map<std::string, int> height_;  // the longest chain of calls below
};

// Each function's part of the arena lies after those of the functions that call it: two that never run at the same time
// share memory.
void plan_functions(ProgramParts& parts, const std::vector<std::string>& order) {
  for (const std::string& name : order) {
    PlannedFunction& planned = parts.functions[name];
    planned.function = parts.module.find_as<relax::FunctionNode>(name);
    planned.is_main = name == order.front();
    planned.plan =
        plan_memory(parts.module, planned.function, planned.is_main ? ResultMemory::outputs : ResultMemory::own);
    const int64_t end = planned.first_byte + planned.plan.arena_bytes;
    for (const std::string& callee : FunctionOrder::callees_of(*planned.function)) {
      int64_t& first = parts.functions[callee].first_byte;
      first = std::max(first, end);
    }
    parts.result.arena_bytes = std::max(parts.result.arena_bytes, end);
  }
  parts.result.plan = parts.functions.at(order.front()).plan;
}

}  // namespace

uint32_t ProgramParts::constant(const ir::TensorData& data) {
  const auto [known, is_new_node] = known_constants.try_emplace(data.get(), 0);
  if (!is_new_node) return known->second;
  const auto [it, is_new] = constants.try_emplace(ir::structural_hash(data), 0);
  if (!is_new) return known->second = it->second;
  const int64_t offset = (result.weight_bytes + plan_alignment - 1) / plan_alignment * plan_alignment;
  result.weights.push_back({data, offset});
  result.weight_bytes = offset + data->byte_size();
  return known->second = it->second = writer.constant({.name = "constant_" + std::to_string(constants.size() - 1),
                                                       .dtype = ir::dlpack_type(data->dtype),
                                                       .shape = data->shape,
                                                       .offset = static_cast<uint64_t>(offset),
                                                       .bytes = static_cast<uint64_t>(data->byte_size())});
}

uint32_t ProgramParts::kernel(const std::string& name, uint32_t buffers, uint32_t scalars) {
  const auto [it, is_new] = kernels.try_emplace(name, 0);
  if (is_new) {
    it->second = writer.kernel({.name = name, .buffer_count = buffers, .scalar_count = scalars});
    result.kernels.push_back(name);
  }
  return it->second;
}

uint32_t ProgramParts::runtime_kernel(std::string_view name) {
  const auto [it, is_new] = runtime_kernels.try_emplace(std::string(name), 0);
  if (is_new) {
    it->second = writer.runtime_kernel(name);
    result.runtime_kernels.emplace_back(name);
  }
  return it->second;
}

support::Result<Program> write_program(const ir::IRModule& module, const std::string& main) {
  FunctionOrder functions(module);
  TRY(functions.visit(main));
  TRY(check_states(*module.find_as<relax::FunctionNode>(main)));
  ProgramParts parts{.module = module};
  plan_functions(parts, functions.order);
  if (parts.result.arena_bytes > 0)
    parts.arena =
        parts.writer.arena({.bytes = static_cast<uint64_t>(parts.result.arena_bytes), .alignment = plan_alignment});
  for (const std::string& name : functions.order) parts.writers.emplace(name, parts.writer.function(name));
  for (const std::string& name : functions.order) TRY(write_function(parts, name));
  parts.result.bytes = parts.writer.finish(0);
  return std::move(parts.result);
}

}  // namespace lathe::lower
