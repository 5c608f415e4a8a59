// The methods of Schedule that change the program: each finds the ids behind the handles, runs the primitive, takes its
// edit over and records the instruction.
#include "ir/build.h"
#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "schedule/primitives/primitives.h"
#include "schedule/schedule.h"

namespace lathe::schedule {

namespace {

Argument argument(const Factor& factor) {
  if (!factor) return {};
  if (const auto* value = std::get_if<int64_t>(&*factor)) return *value;
  return std::get<ExprRV>(*factor);
}

Argument::List arguments(const std::vector<Factor>& factors) {
  Argument::List list;
  for (const Factor& factor : factors) list.push_back(argument(factor));
  return list;
}

// An annotation's value as a trace can hold it.
Argument argument(const ir::Value& value) {
  return std::visit(
      [](const auto& v) -> Argument {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
                      std::is_same_v<T, std::string>)
          return v;
        else
          return {};
      },
      value.data);
}

}  // namespace

#define LATHE_LOOP(handle) TRY(find(handle.index, Handle::loop, "loop"))
#define LATHE_BLOCK(handle) TRY(find(handle.index, Handle::block, "block"))

Result<std::vector<LoopRV>> Schedule::split(LoopRV loop, const std::vector<Factor>& factors) {
  const Handle handle = *LATHE_LOOP(loop);
  std::vector<Expr> sizes;
  for (const Factor& factor : factors) sizes.push_back(factor ? int64(TRY(number_of(factor))) : Expr());
  Edit edit = TRY(primitives::split(program(handle.function), handle.id, sizes));
  const std::vector<Id> created = edit.created;
  accept(handle.function, std::move(edit));
  std::vector<LoopRV> loops;
  for (const Id id : created) loops.push_back(add_loop(handle.function, id));
  record("split", {loop}, {{"factors", arguments(factors)}}, {loops.begin(), loops.end()});
  return loops;
}

Result<LoopRV> Schedule::fuse(const std::vector<LoopRV>& loops) {
  if (loops.empty()) return refuse(codes::bad_argument, "fuse needs at least one loop");
  std::vector<Id> ids;
  for (const LoopRV& loop : loops) ids.push_back(LATHE_LOOP(loop)->id);
  const std::string function = handles_[loops[0].index].function;
  Edit edit = TRY(primitives::fuse(program(function), ids));
  const Id created = edit.created.at(0);
  accept(function, std::move(edit));
  const LoopRV fused = add_loop(function, created);
  record("fuse", {loops.begin(), loops.end()}, {}, {fused});
  return fused;
}

Status Schedule::reorder(const std::vector<LoopRV>& loops) {
  if (loops.empty()) return refuse(codes::bad_argument, "reorder needs at least one loop");
  std::vector<Id> ids;
  for (const LoopRV& loop : loops) ids.push_back(LATHE_LOOP(loop)->id);
  const std::string function = handles_[loops[0].index].function;
  accept(function, TRY(primitives::reorder(program(function), ids)));
  record("reorder", {loops.begin(), loops.end()}, {}, {});
  return support::success();
}

Result<std::vector<LoopRV>> Schedule::loop_partition(LoopRV loop, const std::vector<Factor>& factors) {
  const Handle handle = *LATHE_LOOP(loop);
  std::vector<Expr> sizes;
  for (const Factor& factor : factors) sizes.push_back(factor ? int64(TRY(number_of(factor))) : Expr());
  Edit edit = TRY(primitives::loop_partition(program(handle.function), handle.id, sizes));
  const std::vector<Id> created = edit.created;
  accept(handle.function, std::move(edit));
  std::vector<LoopRV> loops;
  for (const Id id : created) loops.push_back(add_loop(handle.function, id));
  record("loop_partition", {loop}, {{"factors", arguments(factors)}}, {loops.begin(), loops.end()});
  return loops;
}

Result<std::vector<LoopRV>> Schedule::peel(LoopRV loop, const Factor& multiple) {
  const Handle handle = *LATHE_LOOP(loop);
  if (!multiple) return refuse(codes::bad_argument, "peel needs a multiple");
  Edit edit = TRY(primitives::peel(program(handle.function), handle.id, TRY(number_of(multiple))));
  const std::vector<Id> created = edit.created;
  accept(handle.function, std::move(edit));
  std::vector<LoopRV> loops;
  for (const Id id : created) loops.push_back(add_loop(handle.function, id));
  record("peel", {loop, argument(multiple)}, {}, {loops.begin(), loops.end()});
  return loops;
}

Result<LoopRV> Schedule::add_unit_loop(BlockRV block) {
  const Handle handle = *LATHE_BLOCK(block);
  Edit edit = TRY(primitives::add_unit_loop(program(handle.function), handle.id));
  const Id created = edit.created.at(0);
  accept(handle.function, std::move(edit));
  const LoopRV loop = add_loop(handle.function, created);
  record("add_unit_loop", {block}, {}, {loop});
  return loop;
}

Status Schedule::parallel(LoopRV loop) {
  const Handle handle = *LATHE_LOOP(loop);
  accept(handle.function, TRY(primitives::parallel(program(handle.function), handle.id)));
  record("parallel", {loop}, {}, {});
  return support::success();
}

Status Schedule::vectorize(LoopRV loop) {
  const Handle handle = *LATHE_LOOP(loop);
  accept(handle.function, TRY(primitives::vectorize(program(handle.function), handle.id)));
  record("vectorize", {loop}, {}, {});
  return support::success();
}

Status Schedule::unroll(LoopRV loop) {
  const Handle handle = *LATHE_LOOP(loop);
  accept(handle.function, TRY(primitives::unroll(program(handle.function), handle.id)));
  record("unroll", {loop}, {}, {});
  return support::success();
}

Status Schedule::compute_at(BlockRV block, LoopRV loop, bool preserve_unit_loops) {
  const Handle handle = *LATHE_BLOCK(block);
  const Id target = LATHE_LOOP(loop)->id;
  accept(handle.function,
         TRY(primitives::compute_at(program(handle.function), handle.id, target, preserve_unit_loops)));
  record("compute_at", {block, loop}, {{"preserve_unit_loops", preserve_unit_loops}}, {});
  return support::success();
}

Status Schedule::reverse_compute_at(BlockRV block, LoopRV loop, bool preserve_unit_loops) {
  const Handle handle = *LATHE_BLOCK(block);
  const Id target = LATHE_LOOP(loop)->id;
  accept(handle.function,
         TRY(primitives::reverse_compute_at(program(handle.function), handle.id, target, preserve_unit_loops)));
  record("reverse_compute_at", {block, loop}, {{"preserve_unit_loops", preserve_unit_loops}}, {});
  return support::success();
}

Status Schedule::compute_inline(BlockRV block) {
  const Handle handle = *LATHE_BLOCK(block);
  accept(handle.function, TRY(primitives::compute_inline(program(handle.function), handle.id)));
  record("compute_inline", {block}, {}, {});
  return support::success();
}

Status Schedule::reverse_compute_inline(BlockRV block) {
  const Handle handle = *LATHE_BLOCK(block);
  accept(handle.function, TRY(primitives::reverse_compute_inline(program(handle.function), handle.id)));
  record("reverse_compute_inline", {block}, {}, {});
  return support::success();
}

Result<BlockRV> Schedule::cache_read(BlockRV block, int64_t read_buffer_index, const std::string& scope) {
  const Handle handle = *LATHE_BLOCK(block);
  Edit edit = TRY(primitives::cache_read(program(handle.function), handle.id, read_buffer_index, scope));
  const Id created = edit.created.at(0);
  accept(handle.function, std::move(edit));
  const BlockRV copy = add_block(handle.function, created);
  record("cache_read", {block, read_buffer_index, scope}, {}, {copy});
  return copy;
}

Result<BlockRV> Schedule::cache_write(BlockRV block, int64_t write_buffer_index, const std::string& scope) {
  const Handle handle = *LATHE_BLOCK(block);
  Edit edit = TRY(primitives::cache_write(program(handle.function), handle.id, write_buffer_index, scope));
  const Id created = edit.created.at(0);
  accept(handle.function, std::move(edit));
  const BlockRV copy = add_block(handle.function, created);
  record("cache_write", {block, write_buffer_index, scope}, {}, {copy});
  return copy;
}

Status Schedule::transform_layout(BlockRV block, int64_t write_buffer_index, const std::vector<int64_t>& axes) {
  const Handle handle = *LATHE_BLOCK(block);
  accept(handle.function,
         TRY(primitives::transform_layout(program(handle.function), handle.id, write_buffer_index, axes)));
  record("transform_layout", {block, write_buffer_index}, {{"axes", Argument::List(axes.begin(), axes.end())}}, {});
  return support::success();
}

Status Schedule::set_scope(BlockRV block, int64_t write_buffer_index, const std::string& scope) {
  const Handle handle = *LATHE_BLOCK(block);
  accept(handle.function, TRY(primitives::set_scope(program(handle.function), handle.id, write_buffer_index, scope)));
  record("set_scope", {block, write_buffer_index, scope}, {}, {});
  return support::success();
}

Result<BlockRV> Schedule::decompose_reduction(BlockRV block, LoopRV loop) {
  const Handle handle = *LATHE_BLOCK(block);
  const Id target = LATHE_LOOP(loop)->id;
  Edit edit = TRY(primitives::decompose_reduction(program(handle.function), handle.id, target));
  const Id created = edit.created.at(0);
  accept(handle.function, std::move(edit));
  const BlockRV init = add_block(handle.function, created);
  record("decompose_reduction", {block, loop}, {}, {init});
  return init;
}

Result<BlockRV> Schedule::rfactor(LoopRV loop, int64_t factor_axis) {
  const Handle handle = *LATHE_LOOP(loop);
  Edit edit = TRY(primitives::rfactor(program(handle.function), handle.id, factor_axis));
  const Id created = edit.created.at(0);
  accept(handle.function, std::move(edit));
  const BlockRV partial = add_block(handle.function, created);
  record("rfactor", {loop}, {{"factor_axis", factor_axis}}, {partial});
  return partial;
}

Status Schedule::annotate(LoopRV loop, const std::string& key, ir::Value value) {
  const Handle handle = *LATHE_LOOP(loop);
  accept(handle.function, TRY(primitives::annotate(program(handle.function), handle.id, key, value)));
  record("annotate", {loop, key, argument(value)}, {}, {});
  return support::success();
}

Status Schedule::annotate(BlockRV block, const std::string& key, ir::Value value) {
  const Handle handle = *LATHE_BLOCK(block);
  accept(handle.function, TRY(primitives::annotate(program(handle.function), handle.id, key, value)));
  record("annotate", {block, key, argument(value)}, {}, {});
  return support::success();
}

Status Schedule::unannotate(LoopRV loop, const std::string& key) {
  const Handle handle = *LATHE_LOOP(loop);
  accept(handle.function, TRY(primitives::annotate(program(handle.function), handle.id, key, {})));
  record("unannotate", {loop, key}, {}, {});
  return support::success();
}

Status Schedule::unannotate(BlockRV block, const std::string& key) {
  const Handle handle = *LATHE_BLOCK(block);
  accept(handle.function, TRY(primitives::annotate(program(handle.function), handle.id, key, {})));
  record("unannotate", {block, key}, {}, {});
  return support::success();
}

#undef LATHE_LOOP
#undef LATHE_BLOCK

}  // namespace lathe::schedule
