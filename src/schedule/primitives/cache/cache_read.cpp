// cache_read, read_at: a block reads a copy of a buffer in another scope.
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(cache_read_shifts_region, "schedule_test", "cache_read: the copy is one element short");

namespace {

bool written_in(const Stmt& s, const Buffer& buffer) {
  const std::vector<Buffer> written = buffers_written(s);
  return std::find(written.begin(), written.end(), buffer) != written.end();
}

// The buffer that the block reads under that number; a reason where it is the root.
Result<Buffer> read_buffer(const Path& path, int64_t index) {
  const auto problem = [&](std::string why) {
    return refuse(codes::bad_argument,
                  fmt::format("cannot cache what {} reads: {}", name_of(*path.back().as<BlockRealize>()->block), why));
  };
  if (!scope_of(path)) return problem("it is the root block");
  // A reduction's own output does not count among what it reads.
  std::vector<Buffer> read = outer_buffers(path, false);
  for (const Buffer& own : buffers_written(path.back())) std::erase(read, own);
  if (index < 0 || index >= static_cast<int64_t>(read.size()))
    return problem(fmt::format("it reads {} buffers, there is no number {}", read.size(), index));
  return read[static_cast<size_t>(index)];
}

// The block at the path's end reads a copy of the buffer, which is made before path[at].
Result<Edit> read_through(const Program& program, const Path& path, size_t at, const Buffer& buffer,
                          const std::string& scope_name) {
  const Block& block = *path.back().as<BlockRealize>()->block;
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot cache what {} reads: {}", name_of(block), why));
  };
  const BlockRealize* scope = scope_of(path);
  const Stmt around = path[at];

  const std::vector<Access> all = accesses(around);
  for (const Access& access : all)
    if (access.buffer == buffer && access.opaque)
      return problem(codes::region, fmt::format("the address of '{}' is taken", buffer->name));
  auto region =
      touched(all, [&](const Access& access) { return access.buffer == buffer && is_inside(access.block, block); });
  const bool parameter = !allocating_block(*program.function, buffer);
  // Of a parameter, more may be read than the block does.
  auto bounds = bounds_of(path, at, buffer);
  if (parameter) bounds = whole(buffer);
  // Of other memory, what the block does not read need not have a value.
  const bool known = parameter || (region && region->exact && predicate_is_domain(*path.back().as<BlockRealize>()));
  if (!region || !known || !bounds)
    return problem(codes::region, fmt::format("which elements of '{}' it reads is not an exact region", buffer->name));
  if (support::flip(cache_read_shifts_region) && !region->dimensions.empty())
    region->dimensions.back().low = region->dimensions.back().low + 1;

  const Buffer cache = cache_of(buffer, scope_name);
  Id next = program.next, copy_id = 0;
  const Path where(path.begin(), path.begin() + static_cast<ptrdiff_t>(at));
  const Stmt copy = copy_nest(buffer->name + "_" + scope_name, buffer, cache, *region, *bounds, where, next, copy_id);
  const Stmt reading = replace(around, path.back(), with_buffer(path.back(), buffer, cache));
  Stmt body = replace(program.function->body, around, seq({copy, reading}));
  const Path changed = path_to(body, scope->block->id);
  body = with_allocation(body, *changed.back().as<BlockRealize>(), cache);
  const Function after = with_body(program.function, body);
  if (auto refused = refuse_parallel_above(program, after, where, "cache a block's reads")) return *std::move(refused);
  return edited(program, after, next, {copy_id});
}

}  // namespace

Result<Edit> cache_read(const Program& program, Id id, int64_t index, const std::string& scope_name) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(read_buffer(path, index));
  // The largest statement around the block in which nothing writes the buffer.
  size_t at = path.size() - 1;
  while (at > 0 && !path[at - 1].is<Block>() && !path[at - 1].is<BlockRealize>() && !written_in(path[at - 1], buffer))
    --at;
  while (at + 1 < path.size() && path[at].is<SeqStmt>()) ++at;
  return read_through(program, path, at, buffer, scope_name);
}

Result<Edit> read_at(const Program& program, Id loop, Id id, int64_t index, const std::string& scope_name) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(read_buffer(path, index));
  const size_t at = TRY(below_loop(path, loop, "read"));
  if (written_in(path[at], buffer))
    return refuse(codes::dependence, fmt::format("cannot cache what {} reads: '{}' is written in the same statement of "
                                                 "the loop",
                                                 name_of(*path.back().as<BlockRealize>()->block), buffer->name));
  return read_through(program, path, at, buffer, scope_name);
}

}  // namespace lathe::schedule::primitives
