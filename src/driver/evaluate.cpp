#include "driver/evaluate.h"

#include "driver/codes.h"
#include "driver/executable.h"
#include "driver/pipeline.h"
#include "ir/codes.h"

namespace lathe::driver {

std::set<std::string> rows_off_in_evaluation(const target::Target& target) {
  std::set<std::string> off{"convert_layout", "pack_weights"};
  for (const ir::PassRow& row : pipeline(target))
    if (std::string_view(row.name).starts_with("fold_")) off.insert(row.name);
  return off;
}

namespace {

// What was beyond the limits: the rows that fold ask for the same again where nothing has changed between them.
class Refusals {
 public:
  static support::Hash128 key(const ir::IRModule& module, const std::vector<ir::TensorData>& inputs) {
    support::Hasher hasher;
    const support::Hash128 program = ir::structural_hash(module);
    hasher.add(program.high);
    hasher.add(program.low);
    for (const ir::TensorData& input : inputs) hasher.add(reinterpret_cast<uintptr_t>(input->bytes));
    return hasher.finish();
  }
  const support::Diagnostic* find(const support::Hash128& key) const {
    const auto it = known_.find(key);
    return it == known_.end() ? nullptr : &it->second;
  }
  void keep(const support::Hash128& key, const support::Diagnostic& reason) { known_.emplace(key, reason); }

 private:
  std::unordered_map<support::Hash128, support::Diagnostic> known_;
};

using Outputs = support::Result<std::vector<ir::TensorData>>;

Outputs evaluate(const ir::IRModule& module, const std::vector<ir::TensorData>& inputs, CompileOptions options,
                 const EvaluationLimits& limits) {
  uint64_t given = 0;
  for (const ir::TensorData& input : inputs) given += input->view().size();
  options.most_bytes = limits.bytes + 2 * given;
  constexpr uint64_t much = 128 << 20;  // bytes that take longer to pass through slow code than to make fast code
  options.runs_once = given < much;
  const CompiledModelRef compiled = TRY(compile(module, options));
  const ExecutableRef executable = TRY(load(compiled));
  const Limits of_run{.max_memory = options.most_bytes, .timeout = limits.seconds};
  auto outputs = executable->run(inputs, {.limits = of_run});
  if (outputs.ok() || outputs.diagnostics()[0].code != codes::limit) return outputs;
  support::Diagnostic reached = outputs.diagnostics()[0];
  reached.code = ir::codes::evaluation_limit;
  return reached;
}

}  // namespace

ir::Evaluator native_evaluator(const CompileOptions& options, const EvaluationLimits& limits) {
  CompileOptions inner;
  inner.target = target::native_target();
  inner.compile_threads = options.compile_threads;
  inner.cancelled = options.cancelled;
  inner.cache = options.cache;
  inner.most_operations = limits.operations;
  inner.disabled_passes = rows_off_in_evaluation(inner.target);
  return [inner, limits, refusals = std::make_shared<Refusals>()](
             const ir::IRModule& module, const std::string&, const std::vector<ir::TensorData>& inputs) -> Outputs {
    const support::Hash128 key = Refusals::key(module, inputs);
    if (const support::Diagnostic* reason = refusals->find(key)) return *reason;
    auto outputs = evaluate(module, inputs, inner, limits);
    if (!outputs.ok() && outputs.diagnostics()[0].code == ir::codes::evaluation_limit)
      refusals->keep(key, outputs.diagnostics()[0]);
    return outputs;
  };
}

}  // namespace lathe::driver
