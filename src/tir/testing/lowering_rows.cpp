#include "tir/testing/lowering_rows.h"

namespace lathe::tir::testing {

const std::vector<PassRow>& lowering_rows() {
  static const std::vector<PassRow> rows = {
      {"compact_buffers", compact_buffers, {}},
      {"lower_init", lower_init, {}},
      {"convert_blocks", convert_blocks, {"lower_init"}},
      {"flatten_buffers", flatten_buffers, {"convert_blocks"}},
      {"simplify", simplify, {}},
      {"partition_loops", partition_loops, {"flatten_buffers"}},
      {"simplify_partitions", simplify, {"partition_loops"}},
      {"vectorize_loops", vectorize_loops, {"flatten_buffers"}},
      {"unroll_loops", unroll_loops, {"vectorize_loops"}},
      {"simplify_vectors", simplify, {"vectorize_loops", "unroll_loops"}},
      {"legalize_registers", legalize_registers, {"unroll_loops"}},
      {"lower_intrinsics", lower_intrinsics, {}},
      {"legalize_dtypes", legalize_dtypes, {"lower_intrinsics"}},
      {"nest_parallel", nest_parallel, {}},
  };
  return rows;
}

Result<Function> lower_to_kernel(const Function& function) {
  IRModule module;
  module.set("main", function);
  module = TRY(run_passes(std::move(module), lowering_rows(), {}));
  return module.find_as<PrimFunc>("main");
}

}  // namespace lathe::tir::testing
