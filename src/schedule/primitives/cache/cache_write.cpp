// cache_write, write_at: a block writes to a copy of its buffer in another scope, which is written back.
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(cache_write_shifts_region, "schedule_test", "cache_write: one element too few is written back");

namespace {

// The buffer that the block writes under that number; a reason where it is the root.
Result<Buffer> written_buffer(const Path& path, int64_t index) {
  const auto problem = [&](std::string why) {
    return refuse(codes::bad_argument,
                  fmt::format("cannot cache what {} writes: {}", name_of(*path.back().as<BlockRealize>()->block), why));
  };
  if (!scope_of(path)) return problem("it is the root block");
  const std::vector<Buffer> written = outer_buffers(path, true);
  if (index < 0 || index >= static_cast<int64_t>(written.size()))
    return problem(fmt::format("it writes {} buffers, there is no number {}", written.size(), index));
  return written[static_cast<size_t>(index)];
}

// Whether a block inside this one leaves out instances.
bool is_partial(const Block& block) {
  bool partial = false;
  each_statement(block.body, [&](const Stmt& s) {
    const auto* inner = s.as<BlockRealize>();
    partial = partial || (inner && !is_int(inner->predicate, 1));
  });
  return partial;
}

// The block at the path's end writes to a buffer in another scope, which is written back behind path[at].
Result<Edit> write_through(const Program& program, const Path& path, size_t at, const Buffer& buffer,
                           const std::string& scope_name) {
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot cache what {} writes: {}", name_of(block), why));
  };
  const BlockRealize* scope = scope_of(path);
  const Stmt around = path[at];

  const std::vector<Access> all = accesses(around);
  bool reads_own = false;
  for (const Access& access : all) {
    if (access.buffer != buffer) continue;
    if (access.opaque) return problem(codes::region, fmt::format("the address of '{}' is taken", buffer->name));
    reads_own = reads_own || !access.writes;
  }
  if (reads_own) {
    // What it accumulates onto must start inside: else the cache would lack it.
    if (!block.init || !is_reduction(block) || runs_init(realized, loops_above(path)) != true)
      return problem(codes::region, fmt::format("it reads '{}' before it writes it", buffer->name));
    for (size_t i = 0; i < block.iter_vars.size(); ++i)
      for (size_t j = 0; j < at; ++j)
        if (const auto* loop = path[j].as<For>();
            loop && block.iter_vars[i]->type != IterType::spatial && uses_var(realized.iter_values[i], loop->loop_var))
          return problem(codes::region,
                         fmt::format("{} of its reduction is around other uses of '{}'", name_of(*loop), buffer->name));
  }
  auto region = touched(all, [&](const Access& access) { return access.buffer == buffer && access.writes; });
  const auto bounds = bounds_of(path, at, buffer);
  if (!region || !region->exact || !predicate_is_domain(realized) || !bounds || is_partial(block))
    return problem(codes::region, fmt::format("which elements of '{}' it writes is not an exact region", buffer->name));
  if (support::flip(cache_write_shifts_region) && !region->dimensions.empty())
    region->dimensions.back().low = region->dimensions.back().low + 1;

  const Buffer cache = cache_of(buffer, scope_name);
  Id next = program.next, copy_id = 0;
  const Path where(path.begin(), path.begin() + static_cast<ptrdiff_t>(at));
  const Stmt copy = copy_nest(block.name + "_" + scope_name, cache, buffer, *region, *bounds, where, next, copy_id);
  Stmt body = replace(program.function->body, around, seq({with_buffer(around, buffer, cache), copy}));
  const Path changed = path_to(body, scope->block->id);
  body = with_allocation(body, *changed.back().as<BlockRealize>(), cache);
  const Function after = with_body(program.function, body);
  if (auto refused = refuse_parallel_above(program, after, where, "cache a block's writes")) return *std::move(refused);
  return edited(program, after, next, {copy_id});
}

}  // namespace

Result<Edit> cache_write(const Program& program, Id id, int64_t index, const std::string& scope_name) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(written_buffer(path, index));
  return write_through(program, path, alone_around(path, buffer), buffer, scope_name);
}

Result<Edit> write_at(const Program& program, Id loop, Id id, int64_t index, const std::string& scope_name) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(written_buffer(path, index));
  const Block& block = *path.back().as<BlockRealize>()->block;
  const size_t at = TRY(below_loop(path, loop, "write"));
  if (touched_by_others(path[at], buffer, block))
    return refuse(codes::region, fmt::format("cannot cache what {} writes: another block touches '{}' in the same "
                                             "statement of the loop",
                                             name_of(block), buffer->name));
  return write_through(program, path, at, buffer, scope_name);
}

}  // namespace lathe::schedule::primitives
