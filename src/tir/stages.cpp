#include "tir/stages.h"

#include "tir/passes/passes.h"

namespace lathe::tir {
namespace {

constexpr StageRow rows[] = {
    {Construct::reduce, "a reduction inside an expression", ""},
    {Construct::block_init, "a block with an init", "lower_init"},
    {Construct::block, "a block", "convert_blocks"},
    {Construct::declared_buffer, "a DeclBuffer", "convert_blocks"},
    {Construct::indexed_buffer, "an access with other than one int64 index", "flatten_buffers"},
    {Construct::helper_intrinsic, "a hint to the compiler inside an expression", "lower_intrinsics"},
    {Construct::narrow_arithmetic, "arithmetic on a float narrower than float32", "legalize_dtypes"},
    {Construct::vectorized_loop, "a vectorized loop", "vectorize_loops"},
    {Construct::unrolled_loop, "an unrolled loop", "unroll_loops"},
    {Construct::register_variable, "an index that is not constant into a buffer of scope 'register'",
     "legalize_registers"},
    {Construct::nested_parallel, "a parallel loop inside a parallel loop", "nest_parallel"},
};

// The place of a pass among the lowering rows; -1 for block-level.
int position(std::string_view pass) {
  const std::vector<PassRow>& passes = lowering_rows();
  if (pass == "kernel") return static_cast<int>(passes.size());
  for (size_t i = 0; i < passes.size(); ++i)
    if (passes[i].name == pass) return static_cast<int>(i);
  return -1;
}

}  // namespace

std::span<const StageRow> stage_rows() { return rows; }

bool is_legal(Construct construct, std::string_view after) {
  for (const StageRow& row : rows)
    if (row.construct == construct) return !row.gone_after.empty() && position(after) < position(row.gone_after);
  return true;
}

}  // namespace lathe::tir
