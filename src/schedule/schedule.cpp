#include "schedule/schedule.h"

#include "schedule/analysis/proofs.h"
#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "schedule/instruction.h"
#include "schedule/primitives/primitives.h"
#include "tir/passes/passes.h"

namespace lathe::schedule {

Result<Schedule> Schedule::create(ir::IRModule module, ScheduleOptions options) {
  Schedule schedule;
  schedule.options_ = std::move(options);
  schedule.proofs_ = std::make_shared<Proofs>();
  support::Diagnostics problems;
  module = TRY(tir::lower_loop_exits(std::move(module), {}));
  for (const auto& [name, base] : std::vector(module.functions())) {
    const auto* function = base.as<PrimFunc>();
    if (!function) continue;
    if (schedule.options_.enable_check)
      for (support::Diagnostic& problem : check_declared_regions(*function)) problems.push_back(std::move(problem));
    Program program = number(Function(function), schedule.next_);
    schedule.next_ = program.next;
    module.set(name, program.function);
    if (schedule.working_on_.empty() || name == "main") schedule.working_on_ = name;
  }
  if (!problems.empty()) return problems;
  if (schedule.working_on_.empty()) return refuse(codes::no_function, "the module has no tensor function to schedule");
  schedule.module_ = std::move(module);
  return schedule;
}

Result<Schedule> Schedule::create(Function function, const std::string& name, ScheduleOptions options) {
  ir::IRModule module;
  module.set(name, std::move(function));
  return create(std::move(module), std::move(options));
}

const PrimFunc& Schedule::function() const { return *module_.find(working_on_).as<PrimFunc>(); }

Program Schedule::program(const std::string& function) const {
  return {module_.find_as<PrimFunc>(function), next_, proofs_.get(), options_.enable_check};
}

void Schedule::accept(const std::string& function, Edit edit) {
  next_ = edit.program.next;
  module_.set(function, edit.program.function);
  for (Handle& handle : handles_)
    if (handle.kind != Handle::number && handle.function == function && handle.id != 0) handle.id = edit.ids(handle.id);
}

LoopRV Schedule::add_loop(const std::string& function, Id id) {
  handles_.push_back({Handle::loop, function, id, 0});
  return {static_cast<uint32_t>(handles_.size() - 1)};
}

BlockRV Schedule::add_block(const std::string& function, Id id) {
  handles_.push_back({Handle::block, function, id, 0});
  return {static_cast<uint32_t>(handles_.size() - 1)};
}

ExprRV Schedule::add_number(int64_t value) {
  handles_.push_back({Handle::number, "", 0, value});
  return {static_cast<uint32_t>(handles_.size() - 1)};
}

Result<const Schedule::Handle*> Schedule::find(uint32_t index, Handle::Kind kind, const char* what) const {
  if (index >= handles_.size() || handles_[index].kind != kind)
    return refuse(codes::gone, fmt::format("handle {} is no {} of this schedule", index, what));
  if (handles_[index].removed) return refuse(codes::gone, fmt::format("handle {} was removed", index));
  if (kind != Handle::number && handles_[index].id == 0)
    return refuse(codes::gone,
                  fmt::format("the {} of handle {} no longer exists: a primitive consumed it", what, index));
  return &handles_[index];
}

Result<const Schedule::Handle*> Schedule::find_place(LoopRV loop) const {
  return find(loop.index, Handle::loop, "loop");
}
Result<const Schedule::Handle*> Schedule::find(LoopRV loop) const {
  const Handle* found = TRY(find_place(loop));
  if (found->id == root_id || found->id == inline_id)
    return refuse(codes::bad_argument,
                  fmt::format("handle {} stands for a place to compute at, not for a loop", loop.index));
  return found;
}
Result<const Schedule::Handle*> Schedule::find(BlockRV block) const {
  return find(block.index, Handle::block, "block");
}

void Schedule::record(const char* kind, std::vector<Argument> inputs, NamedArguments attributes,
                      std::vector<Argument> outputs) {
  trace_.append({find_instruction_kind(kind), std::move(inputs), std::move(attributes), std::move(outputs)});
}

std::string Schedule::function_of(const Argument& handle) const {
  const auto* loop = handle.get<LoopRV>();
  const auto* block = handle.get<BlockRV>();
  const auto found = loop ? find(*loop) : block ? find(*block) : Result<const Handle*>(Diagnostic{});
  return found ? (*found)->function : std::string();
}

Result<Ref<For>> Schedule::get(LoopRV loop) const {
  const Handle* handle = TRY(find(loop));
  const For* node = find_loop(*module_.find(handle->function).as<PrimFunc>(), handle->id);
  support::require(node, "a handle names a loop that is not in its function");
  return Ref<For>(node);
}

Result<Ref<Block>> Schedule::get(BlockRV block) const {
  const Handle* handle = TRY(find(block));
  const Block* node = find_block(*module_.find(handle->function).as<PrimFunc>(), handle->id);
  support::require(node, "a handle names a block that is not in its function");
  return Ref<Block>(node);
}

Result<int64_t> Schedule::get(ExprRV value) const { return TRY(find(value.index, Handle::number, "number"))->value; }

Status Schedule::remove(const Argument& handle) {
  const auto* loop = handle.get<LoopRV>();
  const auto* block = handle.get<BlockRV>();
  const auto* number = handle.get<ExprRV>();
  if (!loop && !block && !number) return refuse(codes::bad_argument, "only a handle can be removed");
  const uint32_t index = loop ? loop->index : block ? block->index : number->index;
  const auto found = loop ? find_place(*loop) : block ? find(*block) : find(index, Handle::number, "number");
  if (!found) return found.diagnostics();
  handles_[index].removed = true;
  return support::success();
}

Status Schedule::work_on(const std::string& function) {
  if (!module_.find_as<PrimFunc>(function))
    return refuse(codes::no_function, fmt::format("the module has no tensor function named '{}'", function));
  working_on_ = function;
  record("work_on", {function}, {}, {});
  return support::success();
}

Result<int64_t> Schedule::number_of(const Factor& factor) const {
  if (const auto* value = std::get_if<int64_t>(&*factor)) return *value;
  return get(std::get<ExprRV>(*factor));
}

namespace {

Result<Id> block_named(const PrimFunc& function, const std::string& name, const std::string& function_name) {
  std::vector<Id> found;
  std::string names;
  each_statement(function.body, [&](const Stmt& s) {
    const auto* block = s.as<Block>();
    if (!block) return;
    if (block->name == name) found.push_back(block->id);
    names += (names.empty() ? "'" : ", '") + block->name + "'";
  });
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    Diagnostic problem =
        refuse(codes::no_block, fmt::format("function '{}' has no block named '{}'", function_name, name));
    problem.note("its blocks are " + names);
    return problem;
  }
  return refuse(codes::no_block,
                fmt::format("function '{}' has {} blocks named '{}'", function_name, found.size(), name));
}

// The blocks of the scope around `id` whose accesses meet: writers of what it reads, or readers of what it writes.
std::vector<Id> neighbours(const PrimFunc& function, Id id, bool producers) {
  const Path path = path_to(function.body, id);
  const BlockRealize* scope = scope_of(path);
  std::vector<Id> found;
  if (!scope) return found;
  const std::vector<Buffer> mine = producers ? buffers_read(path.back()) : buffers_written(path.back());
  for (const Ref<BlockRealize>& other : outer_blocks(scope->block->body)) {
    if (other->block->id == id) continue;
    const std::vector<Buffer> theirs = producers ? buffers_written(other) : buffers_read(other);
    const bool meet = std::any_of(theirs.begin(), theirs.end(), [&](const Buffer& buffer) {
      return std::find(mine.begin(), mine.end(), buffer) != mine.end();
    });
    if (meet) found.push_back(other->block->id);
  }
  return found;
}

Argument::List arguments(const std::vector<BlockRV>& handles) { return {handles.begin(), handles.end()}; }
Argument::List arguments(const std::vector<LoopRV>& handles) { return {handles.begin(), handles.end()}; }

}  // namespace

Result<BlockRV> Schedule::get_block(const std::string& name, const std::string& function) {
  const std::string& where = function.empty() ? working_on_ : function;
  const Function f = module_.find_as<PrimFunc>(where);
  if (!f) return refuse(codes::no_function, fmt::format("the module has no tensor function named '{}'", where));
  const Id id = TRY(block_named(*f, name, where));
  const BlockRV block = add_block(where, id);
  NamedArguments attributes;
  if (!function.empty()) attributes.emplace_back("func_name", function);
  record("get_block", {name}, std::move(attributes), {block});
  return block;
}

Result<std::vector<LoopRV>> Schedule::get_loops(BlockRV block) {
  const Handle handle = *TRY(find(block));
  std::vector<LoopRV> loops;
  for (const For* loop : loops_above(path_to(program(handle.function).function->body, handle.id)))
    loops.push_back(add_loop(handle.function, loop->id));
  record("get_loops", {block}, {}, arguments(loops));
  return loops;
}

template <class Rv>
Result<std::vector<BlockRV>> Schedule::children(Rv parent, const char* instruction) {
  const auto node = TRY(get(parent));
  const std::string function = handles_[parent.index].function;
  std::vector<BlockRV> blocks;
  for (const Ref<BlockRealize>& child : outer_blocks(node->body))
    blocks.push_back(add_block(function, child->block->id));
  record(instruction, {parent}, {}, arguments(blocks));
  return blocks;
}

Result<std::vector<BlockRV>> Schedule::get_child_blocks(BlockRV block) { return children(block, "get_child_blocks"); }
Result<std::vector<BlockRV>> Schedule::get_child_blocks(LoopRV loop) { return children(loop, "get_child_blocks"); }

Result<std::vector<BlockRV>> Schedule::get_producers(BlockRV block) {
  const Handle handle = *TRY(find(block));
  std::vector<BlockRV> blocks;
  for (const Id id : neighbours(*program(handle.function).function, handle.id, true))
    blocks.push_back(add_block(handle.function, id));
  record("get_producers", {block}, {}, arguments(blocks));
  return blocks;
}

Result<std::vector<BlockRV>> Schedule::get_consumers(BlockRV block) {
  const Handle handle = *TRY(find(block));
  std::vector<BlockRV> blocks;
  for (const Id id : neighbours(*program(handle.function).function, handle.id, false))
    blocks.push_back(add_block(handle.function, id));
  record("get_consumers", {block}, {}, arguments(blocks));
  return blocks;
}

Result<std::vector<BlockRV>> Schedule::get_output_blocks(BlockRV scope) {
  const Ref<Block> node = TRY(get(scope));
  const std::string function = handles_[scope.index].function;
  std::vector<BlockRV> blocks;
  for (const Ref<BlockRealize>& child : outer_blocks(node->body))
    for (const Buffer& buffer : buffers_written(child))
      if (std::find(node->alloc_buffers.begin(), node->alloc_buffers.end(), buffer) == node->alloc_buffers.end()) {
        blocks.push_back(add_block(function, child->block->id));
        break;
      }
  record("get_output_blocks", {scope}, {}, arguments(blocks));
  return blocks;
}

}  // namespace lathe::schedule
