#include "driver/evaluate.h"

#include "driver/executable.h"

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
    // What is left after inlining the constants is computed, not folded again.
    inner.disabled_passes = {"fold_constants", "fold_packing", "pack_weights", "fold_batch_norm"};
    const CompiledModelRef compiled = TRY(compile(module, inner));
    const ExecutableRef executable = TRY(load(compiled));
    return executable->run(inputs);
  };
}

}  // namespace lathe::driver
