#include "driver/evaluate.h"

#include "driver/executable.h"
#include "driver/pipeline.h"

namespace lathe::driver {

ir::Evaluator native_evaluator(const CompileOptions& options) {
  return [threads = options.compile_threads, cancelled = options.cancelled, cache = options.cache](
             const ir::IRModule& module, const std::string&,
             const std::vector<ir::TensorData>& inputs) -> support::Result<std::vector<ir::TensorData>> {
    CompileOptions inner;
    inner.target = target::native_target();
    inner.compile_threads = threads;
    inner.cancelled = cancelled;
    inner.cache = cache;
    // What is left after inlining the constants is computed, not folded again: that would compile without end.
    inner.disabled_passes = {"convert_layout", "pack_weights"};
    for (const ir::PassRow& row : pipeline(inner.target))
      if (std::string_view(row.name).starts_with("fold_")) inner.disabled_passes.insert(std::string(row.name));
    const CompiledModelRef compiled = TRY(compile(module, inner));
    const ExecutableRef executable = TRY(load(compiled));
    return executable->run(inputs);
  };
}

}  // namespace lathe::driver
