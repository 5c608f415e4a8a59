// The methods of Schedule that change blocks and buffers: copies, layouts, annotations (schedule_primitives.cpp has the
// others).
#include "ir/build.h"
#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "schedule/primitives/primitives.h"
#include "schedule/schedule.h"

namespace lathe::schedule {

namespace {

// A padding's value as a trace can hold it.
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

Argument argument(BufferIndex buffer) { return Argument::List{buffer.writes ? "write" : "read", buffer.number}; }

Result<bool> is_write(const std::string& buf_type) {
  if (buf_type != "read" && buf_type != "write")
    return refuse(codes::bad_argument, fmt::format("an access is \"read\" or \"write\", not \"{}\"", buf_type));
  return buf_type == "write";
}

NamedArguments consumers_attribute(const std::vector<BlockRV>& consumers) {
  if (consumers.empty()) return {};
  return {{"consumer_blocks", Argument::List(consumers.begin(), consumers.end())}};
}

}  // namespace

Result<std::vector<Id>> Schedule::ids_of(const std::vector<BlockRV>& blocks) const {
  std::vector<Id> ids;
  for (const BlockRV& block : blocks) ids.push_back(TRY(find(block))->id);
  return ids;
}

Result<BlockRV> Schedule::cache_read(BlockRV block, int64_t read_buffer_index, const std::string& scope,
                                     const std::vector<BlockRV>& consumer_blocks) {
  const Handle handle = *TRY(find(block));
  const std::vector<Id> consumers = TRY(ids_of(consumer_blocks));
  return made_block(handle.function,
                    primitives::cache_read(program(handle.function), handle.id, read_buffer_index, scope, consumers),
                    "cache_read", {block, read_buffer_index, scope}, consumers_attribute(consumer_blocks));
}

Result<BlockRV> Schedule::cache_write(BlockRV block, int64_t write_buffer_index, const std::string& scope,
                                      const std::vector<BlockRV>& consumer_blocks) {
  const Handle handle = *TRY(find(block));
  const std::vector<Id> consumers = TRY(ids_of(consumer_blocks));
  return made_block(handle.function,
                    primitives::cache_write(program(handle.function), handle.id, write_buffer_index, scope, consumers),
                    "cache_write", {block, write_buffer_index, scope}, consumers_attribute(consumer_blocks));
}

Result<BlockRV> Schedule::read_at(LoopRV loop, BlockRV block, int64_t read_buffer_index, const std::string& scope) {
  const Handle handle = *TRY(find(block));
  const Id at = TRY(find(loop))->id;
  return made_block(handle.function,
                    primitives::read_at(program(handle.function), at, handle.id, read_buffer_index, scope), "read_at",
                    {loop, block, read_buffer_index, scope});
}

Result<BlockRV> Schedule::write_at(LoopRV loop, BlockRV block, int64_t write_buffer_index, const std::string& scope) {
  const Handle handle = *TRY(find(block));
  const Id at = TRY(find(loop))->id;
  return made_block(handle.function,
                    primitives::write_at(program(handle.function), at, handle.id, write_buffer_index, scope),
                    "write_at", {loop, block, write_buffer_index, scope});
}

Result<std::vector<BlockRV>> Schedule::cache_inplace(BlockRV block, int64_t write_buffer_index,
                                                     const std::string& scope) {
  const Handle handle = *TRY(find(block));
  return made_blocks(handle.function,
                     primitives::cache_inplace(program(handle.function), handle.id, write_buffer_index, scope),
                     "cache_inplace", {block, write_buffer_index, scope});
}

Result<BlockRV> Schedule::reindex(BlockRV block, BufferIndex buffer) {
  const Handle handle = *TRY(find(block));
  return made_block(handle.function, primitives::reindex(program(handle.function), handle.id, buffer), "reindex",
                    {block, argument(buffer)});
}

Result<BlockRV> Schedule::reindex_cache_read(BlockRV block, int64_t read_buffer_index, const std::string& scope,
                                             const IndexMap& index_map) {
  const Handle handle = *TRY(find(block));
  const BufferIndex buffer{.number = read_buffer_index};
  return made_block(handle.function,
                    primitives::reindex_cache(program(handle.function), handle.id, buffer, scope, index_map),
                    "reindex_cache_read", {block, read_buffer_index, scope}, {{"index_map", index_map}});
}

Result<BlockRV> Schedule::reindex_cache_write(BlockRV block, int64_t write_buffer_index, const std::string& scope,
                                              const IndexMap& index_map) {
  const Handle handle = *TRY(find(block));
  const BufferIndex buffer{.writes = true, .number = write_buffer_index};
  return made_block(handle.function,
                    primitives::reindex_cache(program(handle.function), handle.id, buffer, scope, index_map),
                    "reindex_cache_write", {block, write_buffer_index, scope}, {{"index_map", index_map}});
}

Result<BlockRV> Schedule::decompose_padding(BlockRV block, LoopRV loop) {
  const Handle handle = *TRY(find(block));
  const Id target = TRY(find(loop))->id;
  return made_block(handle.function, primitives::decompose_padding(program(handle.function), handle.id, target),
                    "decompose_padding", {block, loop});
}

Result<std::vector<BlockRV>> Schedule::split_padding(BlockRV block) {
  const Handle handle = *TRY(find(block));
  return made_blocks(handle.function, primitives::split_padding(program(handle.function), handle.id), "split_padding",
                     {block});
}

Status Schedule::pad_einsum(BlockRV block, const std::vector<int64_t>& padding) {
  const Handle handle = *TRY(find(block));
  return changed(handle.function, primitives::pad_einsum(program(handle.function), handle.id, padding), "pad_einsum",
                 {block}, {{"padding", Argument::List(padding.begin(), padding.end())}});
}

Status Schedule::storage_align(BlockRV block, int64_t write_buffer_index, int64_t axis, int64_t factor,
                               int64_t offset) {
  const Handle handle = *TRY(find(block));
  return changed(
      handle.function,
      primitives::storage_align(program(handle.function), handle.id, write_buffer_index, axis, factor, offset),
      "storage_align", {block, write_buffer_index}, {{"axis", axis}, {"factor", factor}, {"offset", offset}});
}

Result<BlockRV> Schedule::prefetch(BlockRV block, int64_t read_buffer_index, LoopRV loop, LoopRV at,
                                   const Prefetch& what) {
  const Handle handle = *TRY(find(block));
  const Id outer = TRY(find(loop))->id, inner = TRY(find(at))->id;
  return made_block(handle.function,
                    primitives::prefetch(program(handle.function), handle.id, read_buffer_index, outer, inner, what),
                    "prefetch", {block, read_buffer_index, loop, at},
                    {{"begin", what.begin},
                     {"end", what.end},
                     {"of", what.of},
                     {"level", what.level},
                     {"in_turn", what.in_turn},
                     {"turns", what.turns}});
}

Status Schedule::unsafe_set_dtype(BlockRV block, int64_t write_buffer_index, const std::string& dtype) {
  const Handle handle = *TRY(find(block));
  const auto wanted = DType::parse(dtype);
  if (!wanted) return refuse(codes::bad_argument, fmt::format("there is no type '{}'", dtype));
  return changed(handle.function,
                 primitives::unsafe_set_dtype(program(handle.function), handle.id, write_buffer_index, *wanted),
                 "unsafe_set_dtype", {block, write_buffer_index, dtype});
}

Status Schedule::transform_layout(BlockRV block, BufferIndex buffer, const IndexMap& index_map,
                                  const ir::Value& pad_value, bool assume_injective_transform) {
  const Handle handle = *TRY(find(block));
  NamedArguments attributes{{"index_map", index_map}, {"pad_value", argument(pad_value)}};
  if (assume_injective_transform) attributes.emplace_back("assume_injective_transform", true);
  return changed(handle.function,
                 primitives::transform_layout(program(handle.function), handle.id, buffer, index_map, pad_value,
                                              assume_injective_transform),
                 "transform_layout", {block, argument(buffer)}, std::move(attributes));
}

Status Schedule::transform_block_layout(BlockRV block, const IndexMap& index_map) {
  const Handle handle = *TRY(find(block));
  return changed(handle.function, primitives::transform_block_layout(program(handle.function), handle.id, index_map),
                 "transform_block_layout", {block}, {{"index_map", index_map}});
}

Status Schedule::set_scope(BlockRV block, int64_t write_buffer_index, const std::string& scope) {
  const Handle handle = *TRY(find(block));
  return changed(handle.function, primitives::set_scope(program(handle.function), handle.id, write_buffer_index, scope),
                 "set_scope", {block, write_buffer_index, scope});
}

Status Schedule::set_axis_separator(BlockRV block, BufferIndex buffer, const std::vector<int64_t>& axis_separators) {
  const Handle handle = *TRY(find(block));
  return changed(handle.function,
                 primitives::set_axis_separator(program(handle.function), handle.id, buffer, axis_separators),
                 "set_axis_separator", {block, argument(buffer)},
                 {{"axis_separators", Argument::List(axis_separators.begin(), axis_separators.end())}});
}

Result<std::vector<BlockRV>> Schedule::cache_index(BlockRV block, const std::string& storage_scope,
                                                   int64_t cse_thresh) {
  const Handle handle = *TRY(find(block));
  return made_blocks(handle.function,
                     primitives::cache_index(program(handle.function), handle.id, storage_scope, cse_thresh),
                     "cache_index", {block, storage_scope}, {{"cse_thresh", cse_thresh}});
}

Status Schedule::rolling_buffer(BlockRV block, int64_t write_buffer_index) {
  const Handle handle = *TRY(find(block));
  return changed(handle.function, primitives::rolling_buffer(program(handle.function), handle.id, write_buffer_index),
                 "rolling_buffer", {block, write_buffer_index});
}

Status Schedule::annotate_buffer_access(BlockRV block, int64_t buffer_index, const std::string& buf_type,
                                        const IndexMap& gen_new_ranges) {
  const Handle handle = *TRY(find(block));
  const BufferIndex buffer{.writes = TRY(is_write(buf_type)), .number = buffer_index};
  return changed(handle.function,
                 primitives::annotate_buffer_access(program(handle.function), handle.id, buffer, gen_new_ranges),
                 "annotate_buffer_access", {block, buffer_index, buf_type}, {{"gen_new_ranges", gen_new_ranges}});
}

Status Schedule::unsafe_hide_buffer_access(BlockRV block, const std::string& buf_type,
                                           const std::vector<int64_t>& buffers) {
  const Handle handle = *TRY(find(block));
  const bool writes = TRY(is_write(buf_type));
  return changed(handle.function,
                 primitives::unsafe_hide_buffer_access(program(handle.function), handle.id, writes, buffers),
                 "unsafe_hide_buffer_access", {block, buf_type, Argument::List(buffers.begin(), buffers.end())});
}

Status Schedule::reorder_block_iter_var(BlockRV block, const std::vector<int64_t>& new_order) {
  const Handle handle = *TRY(find(block));
  return changed(handle.function, primitives::reorder_block_iter_var(program(handle.function), handle.id, new_order),
                 "reorder_block_iter_var", {block},
                 {{"new_order", Argument::List(new_order.begin(), new_order.end())}});
}

Result<BlockRV> Schedule::blockize(LoopRV loop, bool preserve_unit_iters) {
  const Handle handle = *TRY(find(loop));
  return made_block(handle.function, primitives::blockize(program(handle.function), handle.id, preserve_unit_iters),
                    "blockize", {loop}, {{"preserve_unit_iters", preserve_unit_iters}});
}

Result<BlockRV> Schedule::blockize(const std::vector<BlockRV>& blocks, bool preserve_unit_iters) {
  const std::vector<Id> ids = TRY(ids_of(blocks));
  const std::string function = blocks.empty() ? working_on_ : handles_[blocks[0].index].function;
  const Argument list = Argument::List(blocks.begin(), blocks.end());
  return made_block(function, primitives::blockize_blocks(program(function), ids, preserve_unit_iters), "blockize",
                    std::vector<Argument>(1, list), {{"preserve_unit_iters", preserve_unit_iters}});
}

template <class Rv>
Status Schedule::tensorized(Rv target, const std::string& tensor_intrin, bool preserve_unit_iters) {
  const Handle handle = *TRY(find(target));
  const auto intrin = options_.context ? options_.context->find(tensor_intrin) : std::nullopt;
  if (!intrin) {
    Diagnostic problem =
        refuse(codes::bad_argument, fmt::format("no intrinsic is registered under the name '{}'", tensor_intrin));
    if (options_.context && !options_.context->names().empty())
      problem.note(fmt::format("there are {}", fmt::join(options_.context->names(), ", ")));
    return problem;
  }
  return changed(
      handle.function,
      primitives::tensorize(program(handle.function), handle.id, tensor_intrin, *intrin, preserve_unit_iters),
      "tensorize", {target, tensor_intrin}, {{"preserve_unit_iters", preserve_unit_iters}});
}

Status Schedule::tensorize(BlockRV block, const std::string& tensor_intrin, bool preserve_unit_iters) {
  return tensorized(block, tensor_intrin, preserve_unit_iters);
}

Status Schedule::tensorize(LoopRV loop, const std::string& tensor_intrin, bool preserve_unit_iters) {
  return tensorized(loop, tensor_intrin, preserve_unit_iters);
}

Result<ir::Value> Schedule::annotation_of(const Argument& value) const {
  if (const auto* flag = value.get<bool>()) return ir::Value(*flag);
  if (const auto* integer = value.get<int64_t>()) return ir::Value(*integer);
  if (const auto* real = value.get<double>()) return ir::Value(*real);
  if (const auto* text = value.get<std::string>()) return ir::Value(*text);
  if (const auto* decided = value.get<ExprRV>()) return ir::Value(TRY(get(*decided)));
  const auto* items = value.get<Argument::List>();
  if (!items) return refuse(codes::bad_argument, "an annotation is a number, a text or a list of them");
  ir::Value::List list;
  for (const Argument& item : *items) list.push_back(TRY(annotation_of(item)));
  return ir::Value(std::move(list));
}

Status Schedule::annotate(LoopRV loop, const std::string& key, const Argument& value) {
  const Handle handle = *TRY(find(loop));
  return changed(handle.function,
                 primitives::annotate(program(handle.function), handle.id, key, TRY(annotation_of(value))), "annotate",
                 {loop, key, value});
}

Status Schedule::annotate(BlockRV block, const std::string& key, const Argument& value) {
  const Handle handle = *TRY(find(block));
  return changed(handle.function,
                 primitives::annotate(program(handle.function), handle.id, key, TRY(annotation_of(value))), "annotate",
                 {block, key, value});
}

Status Schedule::unannotate(LoopRV loop, const std::string& key) {
  const Handle handle = *TRY(find(loop));
  return changed(handle.function, primitives::annotate(program(handle.function), handle.id, key, {}), "unannotate",
                 {loop, key});
}

Status Schedule::unannotate(BlockRV block, const std::string& key) {
  const Handle handle = *TRY(find(block));
  return changed(handle.function, primitives::annotate(program(handle.function), handle.id, key, {}), "unannotate",
                 {block, key});
}

}  // namespace lathe::schedule
