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

// Of what the edit made, the first alone has a handle.
Result<Edit> with_first(Result<Edit> edit) {
  if (!edit.ok()) return edit;
  edit->created = {edit->created.at(0)};
  return edit;
}

}  // namespace

// ---- what every primitive does with its edit ----

Status Schedule::changed(const std::string& function, Result<Edit> edit, const char* kind, std::vector<Argument> inputs,
                         NamedArguments attributes) {
  accept(function, TRY(std::move(edit)));
  record(kind, std::move(inputs), std::move(attributes), {});
  return support::success();
}

template <class Rv>
Result<std::vector<Rv>> Schedule::made(const std::string& function, Result<Edit> edit, const char* kind,
                                       std::vector<Argument> inputs, NamedArguments attributes) {
  Edit taken = TRY(std::move(edit));
  const std::vector<Id> created = taken.created;
  accept(function, std::move(taken));
  std::vector<Rv> handles;
  for (const Id id : created) {
    if constexpr (std::is_same_v<Rv, LoopRV>)
      handles.push_back(add_loop(function, id));
    else
      handles.push_back(add_block(function, id));
  }
  record(kind, std::move(inputs), std::move(attributes), {handles.begin(), handles.end()});
  return handles;
}

Result<std::vector<LoopRV>> Schedule::made_loops(const std::string& function, Result<Edit> edit, const char* kind,
                                                 std::vector<Argument> inputs, NamedArguments attributes) {
  return made<LoopRV>(function, std::move(edit), kind, std::move(inputs), std::move(attributes));
}
Result<std::vector<BlockRV>> Schedule::made_blocks(const std::string& function, Result<Edit> edit, const char* kind,
                                                   std::vector<Argument> inputs, NamedArguments attributes) {
  return made<BlockRV>(function, std::move(edit), kind, std::move(inputs), std::move(attributes));
}
Result<LoopRV> Schedule::made_loop(const std::string& function, Result<Edit> edit, const char* kind,
                                   std::vector<Argument> inputs, NamedArguments attributes) {
  return TRY(made_loops(function, with_first(std::move(edit)), kind, std::move(inputs), std::move(attributes)))[0];
}
Result<BlockRV> Schedule::made_block(const std::string& function, Result<Edit> edit, const char* kind,
                                     std::vector<Argument> inputs, NamedArguments attributes) {
  return TRY(made_blocks(function, with_first(std::move(edit)), kind, std::move(inputs), std::move(attributes)))[0];
}

Result<std::vector<Id>> Schedule::ids_of(const std::vector<LoopRV>& loops) const {
  std::vector<Id> ids;
  for (const LoopRV& loop : loops) ids.push_back(TRY(find(loop))->id);
  return ids;
}

Result<std::vector<Expr>> Schedule::sizes_of(const std::vector<Factor>& factors) const {
  std::vector<Expr> sizes;
  for (const Factor& factor : factors) sizes.push_back(factor ? int64(TRY(number_of(factor))) : Expr());
  return sizes;
}

// ---- the primitives ----

Result<std::vector<LoopRV>> Schedule::split(LoopRV loop, const std::vector<Factor>& factors, bool disable_predication,
                                            bool preserve_unit_iters) {
  const Handle handle = *TRY(find(loop));
  const std::vector<Expr> sizes = TRY(sizes_of(factors));
  NamedArguments attributes = unless_preserved(preserve_unit_iters);
  attributes.insert(attributes.begin(), {"factors", arguments(factors)});
  if (disable_predication) attributes.emplace_back("disable_predication", true);
  return made_loops(
      handle.function,
      primitives::split(program(handle.function), handle.id, sizes, disable_predication, preserve_unit_iters), "split",
      {loop}, std::move(attributes));
}

Result<LoopRV> Schedule::fuse(const std::vector<LoopRV>& loops, bool preserve_unit_iters) {
  if (loops.empty()) return refuse(codes::bad_argument, "fuse needs at least one loop");
  const std::vector<Id> ids = TRY(ids_of(loops));
  const std::string function = handles_[loops[0].index].function;
  return made_loop(function, primitives::fuse(program(function), ids, preserve_unit_iters), "fuse",
                   {loops.begin(), loops.end()}, unless_preserved(preserve_unit_iters));
}

Status Schedule::reorder(const std::vector<LoopRV>& loops) {
  if (loops.empty()) return refuse(codes::bad_argument, "reorder needs at least one loop");
  const std::vector<Id> ids = TRY(ids_of(loops));
  const std::string function = handles_[loops[0].index].function;
  return changed(function, primitives::reorder(program(function), ids), "reorder", {loops.begin(), loops.end()});
}

Result<std::vector<LoopRV>> Schedule::loop_partition(LoopRV loop, const std::vector<Factor>& factors,
                                                     bool preserve_unit_iters) {
  const Handle handle = *TRY(find(loop));
  const std::vector<Expr> sizes = TRY(sizes_of(factors));
  NamedArguments attributes = unless_preserved(preserve_unit_iters);
  attributes.insert(attributes.begin(), {"factors", arguments(factors)});
  return made_loops(handle.function,
                    primitives::loop_partition(program(handle.function), handle.id, sizes, preserve_unit_iters),
                    "loop_partition", {loop}, std::move(attributes));
}

Result<std::vector<LoopRV>> Schedule::peel(LoopRV loop, const Factor& multiple) {
  const Handle handle = *TRY(find(loop));
  if (!multiple) return refuse(codes::bad_argument, "peel needs a multiple");
  return made_loops(handle.function, primitives::peel(program(handle.function), handle.id, TRY(number_of(multiple))),
                    "peel", {loop, argument(multiple)});
}

Result<std::vector<LoopRV>> Schedule::strip_mine(LoopRV loop, const Factor& size) {
  const Handle handle = *TRY(find(loop));
  if (!size) return refuse(codes::bad_argument, "strip_mine needs a size");
  return made_loops(handle.function, primitives::strip_mine(program(handle.function), handle.id, TRY(number_of(size))),
                    "strip_mine", {loop, argument(size)});
}

template <class Rv>
Result<LoopRV> Schedule::within_unit_loop(Rv target) {
  const Handle handle = *TRY(find(target));
  return made_loop(handle.function, primitives::add_unit_loop(program(handle.function), handle.id), "add_unit_loop",
                   {target});
}

Result<LoopRV> Schedule::add_unit_loop(BlockRV block) { return within_unit_loop(block); }
Result<LoopRV> Schedule::add_unit_loop(LoopRV loop) { return within_unit_loop(loop); }

template <class Step>
Result<LoopRV> Schedule::one_of(const std::vector<LoopRV>& loops, const char* name, Step step) {
  const std::vector<Id> ids = TRY(ids_of(loops));
  const std::string function = loops.empty() ? working_on_ : handles_[loops[0].index].function;
  return made_loop(function, step(program(function), ids), name, {loops.begin(), loops.end()});
}

Result<LoopRV> Schedule::merge(const std::vector<LoopRV>& loops) { return one_of(loops, "merge", primitives::merge); }
Result<LoopRV> Schedule::join(const std::vector<LoopRV>& loops) { return one_of(loops, "join", primitives::join); }

Status Schedule::bind(LoopRV loop, const std::string& thread_axis) {
  const Handle handle = *TRY(find(loop));
  return changed(handle.function, primitives::bind(program(handle.function), handle.id, thread_axis), "bind",
                 {loop, thread_axis});
}

Status Schedule::parallel(LoopRV loop) {
  const Handle handle = *TRY(find(loop));
  return changed(handle.function, primitives::parallel(program(handle.function), handle.id), "parallel", {loop});
}

Status Schedule::vectorize(LoopRV loop) {
  const Handle handle = *TRY(find(loop));
  return changed(handle.function, primitives::vectorize(program(handle.function), handle.id), "vectorize", {loop});
}

Status Schedule::unroll(LoopRV loop) {
  const Handle handle = *TRY(find(loop));
  return changed(handle.function, primitives::unroll(program(handle.function), handle.id), "unroll", {loop});
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
  return changed(handle.function, primitives::compute_inline(program(handle.function), handle.id), "compute_inline",
                 {block});
}

Status Schedule::reverse_compute_inline(BlockRV block) {
  const Handle handle = *TRY(find(block));
  return changed(handle.function, primitives::reverse_compute_inline(program(handle.function), handle.id),
                 "reverse_compute_inline", {block});
}

Result<BlockRV> Schedule::decompose_reduction(BlockRV block, LoopRV loop) {
  const Handle handle = *TRY(find(block));
  const Id target = TRY(find(loop))->id;
  return made_block(handle.function, primitives::decompose_reduction(program(handle.function), handle.id, target),
                    "decompose_reduction", {block, loop});
}

Status Schedule::fuse_reduction_epilogue(BlockRV reduction, BlockRV epilogue) {
  const Handle handle = *TRY(find(reduction)), other = *TRY(find(epilogue));
  return changed(handle.function, primitives::fuse_reduction_epilogue(program(handle.function), handle.id, other.id),
                 "fuse_reduction_epilogue", {reduction, epilogue});
}

Result<BlockRV> Schedule::rfactor(LoopRV loop, int64_t factor_axis) {
  const Handle handle = *TRY(find(loop));
  return made_block(handle.function, primitives::rfactor(program(handle.function), handle.id, factor_axis), "rfactor",
                    {loop}, {{"factor_axis", factor_axis}});
}

}  // namespace lathe::schedule
