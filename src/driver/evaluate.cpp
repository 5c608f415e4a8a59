#include "driver/evaluate.h"

#include "driver/executable.h"
#include "driver/pipeline.h"

namespace lathe::driver {

std::set<std::string> rows_off_in_evaluation(const target::Target& target) {
  std::set<std::string> off{"convert_layout", "pack_weights"};
  for (const ir::PassRow& row : pipeline(target))
    if (std::string_view(row.name).starts_with("fold_")) off.insert(row.name);
  return off;
}

ir::Evaluator native_evaluator(const CompileOptions& options) {
  return [threads = options.compile_threads, cancelled = options.cancelled, cache = options.cache](
             const ir::IRModule& module, const std::string&,
             const std::vector<ir::TensorData>& inputs) -> support::Result<std::vector<ir::TensorData>> {
    CompileOptions inner;
    inner.target = target::native_target();
    inner.compile_threads = threads;
    inner.cancelled = cancelled;
    inner.cache = cache;
    inner.disabled_passes = rows_off_in_evaluation(inner.target);
    const CompiledModelRef compiled = TRY(compile(module, inner));
    const ExecutableRef executable = TRY(load(compiled));
    return executable->run(inputs);
  };
}

}  // namespace lathe::driver
