#include "driver/report/work.h"

#include "graph/rewrite_bindings.h"
#include "ir/node_name.h"
#include "ir/visit.h"
#include "lower/ahead/ask_for_weights.h"
#include "lower/legalize/versions.h"
#include "relax/call_tir.h"
#include "relax/infer.h"
#include "schedule/cost/cost.h"
#include "tir/analysis/flops.h"
#include "tir/rewrite.h"
#include "tir/scalars.h"

namespace lathe::driver {
namespace {

// What tensor functions mean before they are scheduled is what they have to do.
constexpr std::array<std::string_view, 6> rows_that_make_functions{
    "legalize", "states_in_place", "split_batch", "parts_in_place", "row_strips", "ask_for_weights"};
// After these, loops have their kinds and buffers their places, and blocks still say what they compute.
constexpr std::array<std::string_view, 4> rows_of_schedules{"schedule_functions", "ask_for_weights", "inline_calls",
                                                            "compact_buffers"};

// The function for the scalars that a call gives it, with what follows from them folded; null where it has others.
ir::Ref<tir::PrimFunc> for_call(const ir::Ref<tir::PrimFunc>& function, const std::vector<int64_t>& scalars) {
  if (!function || tir::scalar_params(*function).size() != scalars.size()) return {};
  return ir::cast<tir::PrimFunc>(tir::fold_constants(tir::specialize(function, {scalars.begin(), scalars.end()})));
}

void set_figures(KernelWork& work, const tir::PrimFunc& function) {
  bool of_loops = false, of_sizes = false;
  work.operations = tir::estimate_flops(function.body, &of_loops);
  work.bytes = tir::estimate_traffic(function, &of_sizes);
  work.symbolic = of_loops || of_sizes;
}

// The values of the symbols that are sizes of the function's first parameters.
ir::VarMap sizes_of(const relax::FunctionNode& function, const std::vector<ir::TensorData>& inputs) {
  ir::VarMap values;
  for (size_t i = 0; i < std::min(inputs.size(), function.params.size()); ++i) {
    const auto* info = relax::as_tensor(function.params[i]);
    if (!info || !info->shape || info->shape->size() != inputs[i]->shape.size()) continue;
    for (size_t d = 0; d < info->shape->size(); ++d)
      if (const auto* symbol = (*info->shape)[d].as<ir::VarNode>())
        values[ir::Var(symbol)] = ir::constant(symbol->dtype, inputs[i]->shape[d]);
  }
  return values;
}

}  // namespace

double KernelWork::limit(const MachineLimits& machine) const {
  return std::max(operations / machine.operations_per_second, bytes / machine.level_of(bytes).bytes_per_second);
}

std::string KernelWork::bound(const MachineLimits& machine) const {
  const MemoryLevel& level = machine.level_of(bytes);
  return operations / machine.operations_per_second >= bytes / level.bytes_per_second ? "compute" : level.name;
}

std::function<void(const std::string&, const ir::IRModule&)> WorkReport::watch() {
  return [this](const std::string& row, const ir::IRModule& module) {
    if (std::ranges::count(rows_of_schedules, row) != 0) scheduled_ = module;
    if (scheduled_.size() == 0) unscheduled_ = module;
    if (std::ranges::count(rows_that_make_functions, row) == 0) return;
    for (const auto& [name, base] : module) {
      const auto* function = base.as<tir::PrimFunc>();
      if (!function || kernels_.count(name)) continue;
      if (const auto* original = function->attrs.get<std::string>(lower::scheduled_as)) {
        scheduled_as_[name] = *original;
        kernels_[name] = kernels_[*original];
        continue;
      }
      KernelWork& work = kernels_[name];
      set_figures(work, *function);
    }
  };
}

void WorkReport::finish(const CompiledModel& model) {
  for (const ir::Remark& remark : model.remarks) {
    const auto at = kernels_.find(remark.subject);
    if (!remark.taken || at == kernels_.end()) continue;
    at->second.rule = remark.pass;
    at->second.decisions = remark.text;
  }
  for (const auto& [name, original] : scheduled_as_) kernels_[name] = kernels_[original];
}

const std::string& WorkReport::scheduled_as(const std::string& kernel) const {
  const auto at = scheduled_as_.find(kernel);
  return at == scheduled_as_.end() ? kernel : at->second;
}

void WorkReport::know_sizes(const std::vector<ir::TensorData>& inputs) {
  calls_.clear();
  const auto main = unscheduled_.find_as<relax::FunctionNode>("main");
  if (!main) return;
  const ir::VarMap sizes = sizes_of(*main, inputs);
  for (const relax::Binding& binding : graph::all_bindings(main)) {
    const auto* bound = binding.as<relax::VarBinding>();
    const auto call = bound ? relax::as_call_tir(bound->value) : std::nullopt;
    const auto kernel = call ? unscheduled_.find_as<tir::PrimFunc>(call->function) : nullptr;
    if (!kernel || call->scalars.empty()) continue;
    std::vector<int64_t> scalars;
    for (const ir::Expr& scalar : call->scalars)
      if (const auto value = ir::as_int(relax::simplified(ir::substitute(scalar, sizes)))) scalars.push_back(*value);
    if (scalars.size() != call->scalars.size()) continue;
    const std::string node = ir::node_name(bound->value);
    add_call(call->function, node, scalars);
    for (const lower::Version& version : lower::versions_of(*kernel)) {
      std::vector<int64_t> given;
      for (const int64_t position : version.scalars) given.push_back(scalars.at(static_cast<size_t>(position)));
      add_call(version.function, node, std::move(given));
    }
  }
}

void WorkReport::add_call(const std::string& kernel, const std::string& node, std::vector<int64_t> scalars) {
  const auto function = unscheduled_.find_as<tir::PrimFunc>(kernel);
  const auto fixed = for_call(function, scalars);
  if (!fixed) return;
  KernelWork work = kernels_[kernel];
  set_figures(work, *fixed);
  calls_[{kernel, node}] = {std::move(scalars), std::move(work)};
}

const WorkReport::Sized* WorkReport::sized(const std::string& kernel, const std::string& node) const {
  const auto at = calls_.find({scheduled_as(kernel), node});
  if (at != calls_.end()) return &at->second;
  // Of any node, where all calls are alike.
  const Sized* only = nullptr;
  for (const auto& [key, one] : calls_) {
    if (key.first != scheduled_as(kernel)) continue;
    if (only && only->scalars != one.scalars) return nullptr;
    only = &one;
  }
  return only;
}

std::optional<double> WorkReport::predicted(const std::string& kernel, const std::string& node,
                                            const target::Target& target, const MachineLimits& machine,
                                            int threads) const {
  auto function = scheduled_.find_as<tir::PrimFunc>(kernel);
  if (const Sized* one = function ? sized(kernel, node) : nullptr) {
    if (const auto fixed = for_call(function, one->scalars)) function = fixed;
  }
  if (!function) return std::nullopt;
  schedule::Rates rates{.operations_per_second = machine.operations_per_second, .levels = {}, .threads = threads};
  for (const MemoryLevel& level : machine.levels)
    rates.levels.push_back({static_cast<double>(level.bytes), level.bytes_per_second});
  const auto cost = schedule::predict(*function, target, rates);
  return cost ? std::optional(cost->seconds()) : std::nullopt;
}

const KernelWork* WorkReport::find(const std::string& kernel, const std::string& node) const {
  const Sized* one = sized(kernel, node);
  if (one) return &one->work;
  const auto at = kernels_.find(kernel);
  return at == kernels_.end() ? nullptr : &at->second;
}

}  // namespace lathe::driver
