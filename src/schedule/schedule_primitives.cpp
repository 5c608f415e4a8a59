// The methods of Schedule that change loops and where blocks run: each finds the ids behind the handles, runs the
// primitive, takes its edit over and records the instruction.
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

using NamedArguments = std::vector<std::pair<std::string, Argument>>;

// What traces leave out has its default.
NamedArguments unless_preserved(bool preserve_unit_iters) {
  if (preserve_unit_iters) return {};
  return {{"preserve_unit_iters", false}};
}

NamedArguments of_placing(bool preserve_unit_loops, int64_t index) {
  NamedArguments attributes{{"preserve_unit_loops", preserve_unit_loops}};
  if (index != primitives::last_place) attributes.emplace_back("index", index);
  return attributes;
}

}  // namespace

Result<std::vector<LoopRV>> Schedule::split(LoopRV loop, const std::vector<Factor>& factors, bool disable_predication,
                                            bool preserve_unit_iters) {
  const Handle handle = *TRY(find(loop));
  std::vector<Expr> sizes;
  for (const Factor& factor : factors) sizes.push_back(factor ? int64(TRY(number_of(factor))) : Expr());
  Edit edit =
      TRY(primitives::split(program(handle.function), handle.id, sizes, disable_predication, preserve_unit_iters));
  const std::vector<Id> created = edit.created;
  accept(handle.function, std::move(edit));
  std::vector<LoopRV> loops;
  for (const Id id : created) loops.push_back(add_loop(handle.function, id));
  NamedArguments attributes = unless_preserved(preserve_unit_iters);
  attributes.insert(attributes.begin(), {"factors", arguments(factors)});
  if (disable_predication) attributes.emplace_back("disable_predication", true);
  record("split", {loop}, std::move(attributes), {loops.begin(), loops.end()});
  return loops;
}

Result<LoopRV> Schedule::fuse(const std::vector<LoopRV>& loops, bool preserve_unit_iters) {
  if (loops.empty()) return refuse(codes::bad_argument, "fuse needs at least one loop");
  std::vector<Id> ids;
  for (const LoopRV& loop : loops) ids.push_back(TRY(find(loop))->id);
  const std::string function = handles_[loops[0].index].function;
  Edit edit = TRY(primitives::fuse(program(function), ids, preserve_unit_iters));
  const Id created = edit.created.at(0);
  accept(function, std::move(edit));
  const LoopRV fused = add_loop(function, created);
  record("fuse", {loops.begin(), loops.end()}, unless_preserved(preserve_unit_iters), {fused});
  return fused;
}

Status Schedule::reorder(const std::vector<LoopRV>& loops) {
  if (loops.empty()) return refuse(codes::bad_argument, "reorder needs at least one loop");
  std::vector<Id> ids;
  for (const LoopRV& loop : loops) ids.push_back(TRY(find(loop))->id);
  const std::string function = handles_[loops[0].index].function;
  accept(function, TRY(primitives::reorder(program(function), ids)));
  record("reorder", {loops.begin(), loops.end()}, {}, {});
  return support::success();
}

Result<std::vector<LoopRV>> Schedule::loop_partition(LoopRV loop, const std::vector<Factor>& factors,
                                                     bool preserve_unit_iters) {
  const Handle handle = *TRY(find(loop));
  std::vector<Expr> sizes;
  for (const Factor& factor : factors) sizes.push_back(factor ? int64(TRY(number_of(factor))) : Expr());
  Edit edit = TRY(primitives::loop_partition(program(handle.function), handle.id, sizes, preserve_unit_iters));
  const std::vector<Id> created = edit.created;
  accept(handle.function, std::move(edit));
  std::vector<LoopRV> loops;
  for (const Id id : created) loops.push_back(add_loop(handle.function, id));
  NamedArguments attributes = unless_preserved(preserve_unit_iters);
  attributes.insert(attributes.begin(), {"factors", arguments(factors)});
  record("loop_partition", {loop}, std::move(attributes), {loops.begin(), loops.end()});
  return loops;
}

Result<std::vector<LoopRV>> Schedule::peel(LoopRV loop, const Factor& multiple) {
  const Handle handle = *TRY(find(loop));
  if (!multiple) return refuse(codes::bad_argument, "peel needs a multiple");
  Edit edit = TRY(primitives::peel(program(handle.function), handle.id, TRY(number_of(multiple))));
  const std::vector<Id> created = edit.created;
  accept(handle.function, std::move(edit));
  std::vector<LoopRV> loops;
  for (const Id id : created) loops.push_back(add_loop(handle.function, id));
  record("peel", {loop, argument(multiple)}, {}, {loops.begin(), loops.end()});
  return loops;
}

Result<std::vector<LoopRV>> Schedule::strip_mine(LoopRV loop, const Factor& size) {
  const Handle handle = *TRY(find(loop));
  if (!size) return refuse(codes::bad_argument, "strip_mine needs a size");
  Edit edit = TRY(primitives::strip_mine(program(handle.function), handle.id, TRY(number_of(size))));
  const std::vector<Id> created = edit.created;
  accept(handle.function, std::move(edit));
  const std::vector<LoopRV> loops{add_loop(handle.function, created.at(0)), add_loop(handle.function, created.at(1))};
  record("strip_mine", {loop, argument(size)}, {}, {loops.begin(), loops.end()});
  return loops;
}

template <class Rv>
Result<LoopRV> Schedule::within_unit_loop(Rv target) {
  const Handle handle = *TRY(find(target));
  Edit edit = TRY(primitives::add_unit_loop(program(handle.function), handle.id));
  const Id created = edit.created.at(0);
  accept(handle.function, std::move(edit));
  const LoopRV loop = add_loop(handle.function, created);
  record("add_unit_loop", {target}, {}, {loop});
  return loop;
}

Result<LoopRV> Schedule::add_unit_loop(BlockRV block) { return within_unit_loop(block); }
Result<LoopRV> Schedule::add_unit_loop(LoopRV loop) { return within_unit_loop(loop); }

template <class Step>
Result<LoopRV> Schedule::one_of(const std::vector<LoopRV>& loops, const char* name, Step step) {
  std::vector<Id> ids;
  for (const LoopRV& loop : loops) ids.push_back(TRY(find(loop))->id);
  const std::string function = loops.empty() ? working_on_ : handles_[loops[0].index].function;
  Edit edit = TRY(step(program(function), ids));
  const Id created = edit.created.at(0);
  accept(function, std::move(edit));
  const LoopRV one = add_loop(function, created);
  record(name, {loops.begin(), loops.end()}, {}, {one});
  return one;
}

Result<LoopRV> Schedule::merge(const std::vector<LoopRV>& loops) { return one_of(loops, "merge", primitives::merge); }
Result<LoopRV> Schedule::join(const std::vector<LoopRV>& loops) { return one_of(loops, "join", primitives::join); }

Status Schedule::bind(LoopRV loop, const std::string& thread_axis) {
  const Handle handle = *TRY(find(loop));
  accept(handle.function, TRY(primitives::bind(program(handle.function), handle.id, thread_axis)));
  record("bind", {loop, thread_axis}, {}, {});
  return support::success();
}

Status Schedule::parallel(LoopRV loop) {
  const Handle handle = *TRY(find(loop));
  accept(handle.function, TRY(primitives::parallel(program(handle.function), handle.id)));
  record("parallel", {loop}, {}, {});
  return support::success();
}

Status Schedule::vectorize(LoopRV loop) {
  const Handle handle = *TRY(find(loop));
  accept(handle.function, TRY(primitives::vectorize(program(handle.function), handle.id)));
  record("vectorize", {loop}, {}, {});
  return support::success();
}

Status Schedule::unroll(LoopRV loop) {
  const Handle handle = *TRY(find(loop));
  accept(handle.function, TRY(primitives::unroll(program(handle.function), handle.id)));
  record("unroll", {loop}, {}, {});
  return support::success();
}

Status Schedule::compute_at(BlockRV block, LoopRV loop, bool preserve_unit_loops, int64_t index) {
  const Handle handle = *TRY(find(block));
  const Id target = TRY(find_place(loop))->id;
  if (target == inline_id)
    accept(handle.function, TRY(primitives::compute_inline(program(handle.function), handle.id)));
  else if (target != root_id)
    accept(handle.function,
           TRY(primitives::compute_at(program(handle.function), handle.id, target, preserve_unit_loops, index)));
  record("compute_at", {block, loop}, of_placing(preserve_unit_loops, index), {});
  return support::success();
}

Status Schedule::reverse_compute_at(BlockRV block, LoopRV loop, bool preserve_unit_loops, int64_t index) {
  const Handle handle = *TRY(find(block));
  const Id target = TRY(find_place(loop))->id;
  if (target == inline_id)
    accept(handle.function, TRY(primitives::reverse_compute_inline(program(handle.function), handle.id)));
  else if (target != root_id)
    accept(handle.function, TRY(primitives::reverse_compute_at(program(handle.function), handle.id, target,
                                                               preserve_unit_loops, index)));
  record("reverse_compute_at", {block, loop}, of_placing(preserve_unit_loops, index), {});
  return support::success();
}

Status Schedule::compute_inline(BlockRV block) {
  const Handle handle = *TRY(find(block));
  accept(handle.function, TRY(primitives::compute_inline(program(handle.function), handle.id)));
  record("compute_inline", {block}, {}, {});
  return support::success();
}

Status Schedule::reverse_compute_inline(BlockRV block) {
  const Handle handle = *TRY(find(block));
  accept(handle.function, TRY(primitives::reverse_compute_inline(program(handle.function), handle.id)));
  record("reverse_compute_inline", {block}, {}, {});
  return support::success();
}

Result<BlockRV> Schedule::decompose_reduction(BlockRV block, LoopRV loop) {
  const Handle handle = *TRY(find(block));
  const Id target = TRY(find(loop))->id;
  Edit edit = TRY(primitives::decompose_reduction(program(handle.function), handle.id, target));
  const Id created = edit.created.at(0);
  accept(handle.function, std::move(edit));
  const BlockRV init = add_block(handle.function, created);
  record("decompose_reduction", {block, loop}, {}, {init});
  return init;
}

Status Schedule::fuse_reduction_epilogue(BlockRV reduction, BlockRV epilogue) {
  const Handle handle = *TRY(find(reduction)), other = *TRY(find(epilogue));
  accept(handle.function, TRY(primitives::fuse_reduction_epilogue(program(handle.function), handle.id, other.id)));
  record("fuse_reduction_epilogue", {reduction, epilogue}, {}, {});
  return support::success();
}

Result<BlockRV> Schedule::rfactor(LoopRV loop, int64_t factor_axis) {
  const Handle handle = *TRY(find(loop));
  Edit edit = TRY(primitives::rfactor(program(handle.function), handle.id, factor_axis));
  const Id created = edit.created.at(0);
  accept(handle.function, std::move(edit));
  const BlockRV partial = add_block(handle.function, created);
  record("rfactor", {loop}, {{"factor_axis", factor_axis}}, {partial});
  return partial;
}

}  // namespace lathe::schedule
