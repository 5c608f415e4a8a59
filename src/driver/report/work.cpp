#include "driver/report/work.h"

#include "lower/ahead/ask_for_weights.h"
#include "schedule/cost/cost.h"
#include "tir/analysis/flops.h"

namespace lathe::driver {
namespace {

// What tensor functions mean before they are scheduled is what they have to do.
constexpr std::array<std::string_view, 6> rows_that_make_functions{
    "legalize", "states_in_place", "split_batch", "parts_in_place", "row_strips", "ask_for_weights"};
// After these, loops have their kinds and buffers their places, and blocks still say what they compute.
constexpr std::array<std::string_view, 4> rows_of_schedules{"schedule_functions", "ask_for_weights", "inline_calls",
                                                            "compact_buffers"};

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
      bool of_loops = false, of_sizes = false;
      work.operations = tir::estimate_flops(function->body, &of_loops);
      work.bytes = tir::estimate_traffic(*function, &of_sizes);
      work.symbolic = of_loops || of_sizes;
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

std::optional<double> WorkReport::predicted(const std::string& kernel, const target::Target& target,
                                            const MachineLimits& machine, int threads) const {
  const auto function = scheduled_.find_as<tir::PrimFunc>(kernel);
  if (!function) return std::nullopt;
  schedule::Rates rates{.operations_per_second = machine.operations_per_second, .levels = {}, .threads = threads};
  for (const MemoryLevel& level : machine.levels)
    rates.levels.push_back({static_cast<double>(level.bytes), level.bytes_per_second});
  const auto cost = schedule::predict(*function, target, rates);
  return cost ? std::optional(cost->seconds()) : std::nullopt;
}

const KernelWork* WorkReport::find(const std::string& kernel) const {
  const auto at = kernels_.find(kernel);
  return at == kernels_.end() ? nullptr : &at->second;
}

}  // namespace lathe::driver
