#include "tir/stages.h"

namespace lathe::tir {
namespace {

constexpr StageRow rows[] = {
    {Construct::reduce, "a reduction inside an expression", ""},
    {Construct::function_call, "a call of a function of the module", "inline_calls"},
    {Construct::loop_exit, "leaving a loop", "lower_loop_exits"},
    {Construct::block_init, "a block with an init", "lower_init"},
    {Construct::block, "a block", "convert_blocks"},
    {Construct::declared_buffer, "a DeclBuffer", "convert_blocks"},
    {Construct::indexed_buffer, "an access with other than one int64 index", "join_axis_groups"},
    {Construct::helper_intrinsic, "a hint to the compiler inside an expression", "lower_intrinsics"},
    {Construct::narrow_arithmetic, "arithmetic on a float narrower than float32", "legalize_dtypes"},
    {Construct::vectorized_loop, "a vectorized loop", "vectorize_loops"},
    {Construct::unrolled_loop, "an unrolled loop", "unroll_loops"},
    {Construct::register_variable, "an index that is not constant into a buffer of scope 'register'",
     "legalize_registers"},
    {Construct::nested_parallel, "a parallel loop inside a parallel loop", "nest_parallel"},
};

}  // namespace

std::span<const StageRow> stage_rows() { return rows; }

const StageRow* illegal_after(Construct construct, const ir::RowsRun& passes) {
  for (const StageRow& row : rows)
    if (row.construct == construct) return row.gone_after.empty() || passes.contains(row.gone_after) ? &row : nullptr;
  return nullptr;
}

const ir::RowsRun& all_lowered() {
  static const ir::RowsRun passes = [] {
    ir::RowsRun all;
    for (const StageRow& row : rows)
      if (!row.gone_after.empty()) all.emplace(row.gone_after);
    return all;
  }();
  return passes;
}

}  // namespace lathe::tir
