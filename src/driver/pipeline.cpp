#include "driver/pipeline.h"

#include "driver/report/fail_on_request.h"
#include "graph/passes.h"
#include "lower/ahead/ask_for_weights.h"
#include "lower/batch/split_batch.h"
#include "lower/legalize/equal_sizes.h"
#include "lower/legalize/legalize.h"
#include "lower/legalize/name_extents.h"
#include "lower/parts/fold_scalars.h"
#include "lower/parts/parts_in_place.h"
#include "lower/states/states.h"
#include "lower/strips/row_strips.h"
#include "schedule/rules/rules.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::driver {
namespace {

// Accepts what lowers to a kernel.
schedule::Acceptance on_trial(const std::set<std::string>& disabled) {
  return [&disabled](const tir::Function& scheduled) {
    const support::Result<tir::Function> kernel = lower_to_kernel(scheduled, disabled);
    return kernel.ok() ? schedule::Outcome()
                       : schedule::Outcome("the schedule does not lower: " + kernel.diagnostics()[0].message);
  };
}

ir::Pass with_target(support::Result<ir::IRModule> (*pass)(ir::IRModule, const target::Target&, const ir::PassContext&),
                     const target::Target& target) {
  return [pass, target](ir::IRModule module, const ir::PassContext& context) {
    return pass(std::move(module), target, context);
  };
}

// The rows, each of which can be asked to fail.
std::vector<ir::PassRow> failing_on_request(std::vector<ir::PassRow> rows) {
  for (ir::PassRow& row : rows)
    row.run = [name = row.name, run = std::move(row.run)](ir::IRModule module, const ir::PassContext& context) {
      fail_on_request(name);
      return run(std::move(module), context);
    };
  return rows;
}

}  // namespace

ir::Pass default_schedule(const target::Target& target, const Decisions& decisions, Schedules schedules) {
  return [=](ir::IRModule module, const ir::PassContext& context) {
    schedule::AnalyticDecider model;
    schedule::TableDecider decider(decisions, model);
    const auto acceptance = schedules == Schedules::tried ? on_trial(context.disabled) : schedule::Acceptance();
    return schedule::schedule_functions(std::move(module), target, decider, context, acceptance);
  };
}

std::vector<ir::PassRow> pipeline(const target::Target& target, const Decisions& decisions, Schedules schedules) {
  std::vector<ir::PassRow> rows = {
      // -- the graph --
      {"expand_composites", graph::expand_composites},
      {"simplify_algebra", graph::simplify_algebra, {"expand_composites"}},
      {"fold_batch_norm", graph::fold_batch_norm, {"expand_composites"}},
      {"check_shapes", graph::check_shapes, {"expand_composites"}},
      {"fold_constants", graph::fold_all_but_scaled_kernels, {"expand_composites"}},
      {"eliminate_common_subexpressions", graph::eliminate_common_subexpressions},
      {"merge_padding", graph::merge_padding, {"fold_constants"}},
      {"merge_branches", graph::merge_branches, {"fold_constants", "merge_padding"}},
      {"drop_folded", graph::eliminate_dead_code, {"fold_batch_norm", "merge_padding", "merge_branches"}},
      {"split_groups", with_target(graph::split_groups, target), {"drop_folded"}},
      {"convert_layout", with_target(graph::convert_layout, target), {"drop_folded", "split_groups"}},
      // Only on request (CompileOptions::winograd).
      {"winograd", with_target(graph::winograd, target), {"convert_layout"}},
      {"fold_winograd", graph::fold_constants, {"winograd"}, {"winograd"}},
      {"pack_weights", with_target(graph::pack_weights, target), {"convert_layout", "winograd", "fold_winograd"}},
      {"fold_packing",
       graph::fold_constants,
       {"fold_constants", "convert_layout", "pack_weights"},
       {"fold_constants", "convert_layout", "pack_weights"}},
      {"mark_zero_borders", graph::mark_zero_borders, {"convert_layout", "fold_packing"}},
      {"simplify_layout", graph::simplify_algebra, {"convert_layout", "mark_zero_borders"}, {"convert_layout"}},
      {"eliminate_dead_code",
       graph::eliminate_dead_code,
       {"fold_packing", "simplify_layout"},
       {"drop_folded", "convert_layout", "winograd", "fold_winograd", "pack_weights", "fold_packing"}},
      {"fuse_attention", graph::fuse_attention, {"eliminate_dead_code"}},
      {"merge_axes", graph::merge_axes, {"eliminate_dead_code"}},
      {"fuse_ops", graph::fuse_ops, {"eliminate_dead_code"}},
      {"join_rows", graph::join_rows, {"fuse_ops"}},
      // -- from operators to loops --
      {"legalize", lower::legalize, {"fuse_ops"}},
      {"states_in_place", lower::states_in_place, {"legalize"}},
      {"split_batch", with_target(lower::split_batch, target), {"legalize"}},
      {"parts_in_place", lower::parts_in_place, {"legalize"}},
      {"fold_scalars", lower::fold_scalars, {"legalize"}},
      {"row_strips", with_target(lower::row_strips, target), {"legalize"}},
      {"name_extents", lower::name_extents, {"legalize"}},
      {"equal_sizes", lower::equal_sizes, {"legalize"}},
      {"schedule_functions", default_schedule(target, decisions, schedules), {"legalize"}},
      {"ask_for_weights", with_target(lower::ask_for_weights, target), {"schedule_functions"}},
  };
  rows = failing_on_request(std::move(rows));
  for (ir::PassRow& row : kernel_rows()) rows.push_back(std::move(row));
  return rows;
}

ir::Attributes pass_config(const Decisions& decisions, bool winograd) {
  ir::Attributes config;
  if (!winograd) return config;
  config.set(graph::winograd_wanted, true);
  for (const auto& [name, value] : decisions)
    if (name.ends_with(graph::winograd_tile)) config.set(name, value);
  return config;
}

std::vector<ir::PassRow> kernel_rows() {
  return failing_on_request({
      // -- from loops and blocks to kernels: what is legal after each is tir/stages.cpp --
      {"skip_zeros", tir::skip_zeros},
      {"lower_loop_exits", tir::lower_loop_exits},
      {"inline_calls", tir::inline_calls, {"lower_loop_exits"}},
      {"reuse_outputs", tir::reuse_outputs, {"inline_calls"}},
      {"compact_buffers", tir::compact_buffers, {"inline_calls"}},
      {"lower_init", tir::lower_init},
      {"convert_blocks", tir::convert_blocks, {"lower_init"}},
      {"flatten_buffers", tir::flatten_buffers, {"convert_blocks"}},
      {"join_axis_groups", tir::join_axis_groups, {"flatten_buffers"}},
      {"simplify", tir::simplify},
      {"partition_loops", tir::partition_loops, {"flatten_buffers"}},
      {"simplify_partitions", tir::simplify, {"partition_loops"}},
      {"vectorize_loops", tir::vectorize_loops, {"join_axis_groups"}},
      {"unroll_loops", tir::unroll_loops, {"vectorize_loops"}},
      {"simplify_vectors", tir::simplify, {"vectorize_loops", "unroll_loops"}},
      {"legalize_registers", tir::legalize_registers, {"unroll_loops"}},
      {"lower_intrinsics", tir::lower_intrinsics},
      {"legalize_dtypes", tir::legalize_dtypes, {"lower_intrinsics"}},
      {"nest_parallel", tir::nest_parallel},
  });
}

std::vector<ir::PassRow> library_rows() {
  return failing_on_request({
      {"convert_blocks_to_opaque", tir::convert_blocks_to_opaque, {"lower_init"}},
      {"remove_no_op", tir::remove_no_op},
      {"place_allocations", tir::place_allocations},
      {"lower_match_buffer", tir::lower_match_buffer},
      {"convert_ssa", tir::convert_ssa},
      {"hoist_branches", tir::hoist_branches},
      {"share_expressions", tir::share_expressions},
      {"share_storage", tir::share_storage, {"convert_blocks"}},
      {"narrow_dtypes", tir::narrow_dtypes, {"convert_blocks"}},
  });
}

support::Result<tir::Function> lower_to_kernel(const tir::Function& function, const std::set<std::string>& disabled) {
  ir::IRModule module;
  module.set("main", function);
  ir::PassContext context;
  context.disabled = disabled;
  module = TRY(ir::run_passes(std::move(module), kernel_rows(), context));
  return module.find_as<tir::PrimFunc>("main");
}

std::string_view stage_of(std::string_view row) {
  if (row == "write_program" || row == "generate_code" || row == "compile_program") return "code";
  if (row == "legalize" || row == "schedule_functions") return "tensor programs";
  for (const ir::PassRow& lowering : kernel_rows())
    if (lowering.name == row) return "kernels";
  return "graph";
}

}  // namespace lathe::driver
