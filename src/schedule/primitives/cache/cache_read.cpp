#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(cache_read_shifts_region, "schedule_test", "cache_read: the copy is one element short");

Result<Edit> cache_read(const Program& program, Id id, int64_t index, const std::string& scope_name) {
  const Path path = TRY(block_path(program, id));
  const Block& block = *path.back().as<BlockRealize>()->block;
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot cache what {} reads: {}", name_of(block), why));
  };
  const BlockRealize* scope = scope_of(path);
  if (!scope) return problem(codes::bad_argument, "it is the root block");
  // A reduction's own output does not count among what it reads.
  std::vector<Buffer> read = buffers_read(path.back());
  for (const Buffer& own : buffers_written(path.back())) std::erase(read, own);
  if (index < 0 || index >= static_cast<int64_t>(read.size()))
    return problem(codes::bad_argument, fmt::format("it reads {} buffers, there is no number {}", read.size(), index));
  const Buffer buffer = read[static_cast<size_t>(index)];

  // The largest statement around the block in which nothing writes the buffer.
  const auto untouched = [&](const Stmt& s) {
    const std::vector<Buffer> written = buffers_written(s);
    return std::find(written.begin(), written.end(), buffer) == written.end();
  };
  size_t at = path.size() - 1;
  while (at > 0 && !path[at - 1].is<Block>() && !path[at - 1].is<BlockRealize>() && untouched(path[at - 1])) --at;
  while (at + 1 < path.size() && path[at].is<SeqStmt>()) ++at;
  const Stmt around = path[at];

  const std::vector<Access> all = accesses(around);
  for (const Access& access : all)
    if (access.buffer == buffer && access.opaque)
      return problem(codes::region, fmt::format("the address of '{}' is taken", buffer->name));
  auto region = touched(all, [&](const Access& access) { return access.buffer == buffer && access.block == &block; });
  const bool parameter = !allocating_block(*program.function, buffer);
  if (!region || (!region->exact && !parameter))
    return problem(codes::region, fmt::format("which elements of '{}' it reads is not an exact region", buffer->name));
  if (support::flip(cache_read_shifts_region) && !region->dimensions.empty())
    region->dimensions.back().low = region->dimensions.back().low + 1;

  const Buffer cache = with(*buffer, [&](BufferNode& copy) {
    copy.name += "_" + scope_name;
    copy.scope = scope_name;
    copy.data = buffer->data ? var(copy.name, buffer->data->dtype) : Var();
    copy.strides.clear();
    copy.elem_offset = Expr();
  });
  Id next = program.next, copy_id = 0;
  const Path where(path.begin(), path.begin() + static_cast<ptrdiff_t>(at));
  const Stmt copy = copy_nest(buffer->name + "_" + scope_name, buffer, cache, *region, where, next, copy_id);
  const Stmt reading = replace(around, path.back(), with_buffer(path.back(), buffer, cache));
  Stmt body = replace(program.function->body, around, seq({copy, reading}));
  const Path changed = path_to(body, scope->block->id);
  body = with_allocation(body, *changed.back().as<BlockRealize>(), cache);
  const Function after = with_body(program.function, body);
  if (auto refused = refuse_parallel_above(program, after, where, "cache a block's reads")) return *std::move(refused);
  return edited(program, after, next, {copy_id});
}

}  // namespace lathe::schedule::primitives
