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

ir::Evaluator native_evaluator(const CompileOptions& options, const EvaluationLimits& limits) {
  return [threads = options.compile_threads, cancelled = options.cancelled, cache = options.cache, limits](
             const ir::IRModule& module, const std::string&,
             const std::vector<ir::TensorData>& inputs) -> support::Result<std::vector<ir::TensorData>> {
    CompileOptions inner;
    inner.target = target::native_target();
    inner.compile_threads = threads;
    inner.cancelled = cancelled;
    inner.cache = cache;
    inner.most_operations = limits.operations;
    inner.disabled_passes = rows_off_in_evaluation(inner.target);
    const CompiledModelRef compiled = TRY(compile(module, inner));
    const ExecutableRef executable = TRY(load(compiled));
    uint64_t given = 0;
    for (const ir::TensorData& input : inputs) given += input->view().size();
    const Limits of_run{.max_memory = limits.bytes + 2 * given, .timeout = limits.seconds};
    auto outputs = executable->run(inputs, {.limits = of_run});
    if (outputs.ok() || outputs.diagnostics()[0].code != codes::limit) return outputs;
    support::Diagnostic reached = outputs.diagnostics()[0];
    reached.code = ir::codes::evaluation_limit;
    return reached;
  };
}

}  // namespace lathe::driver
