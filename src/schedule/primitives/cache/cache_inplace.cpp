// cache_inplace: what a block updates in place is copied into another scope, updated there, and copied back.
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(cache_inplace_skips_first, "schedule_test",
            "cache_inplace: the first element along an axis is not copied back");

Result<Edit> cache_inplace(const Program& program, Id id, int64_t index, const std::string& scope_name) {
  const Path path = TRY(block_path(program, id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Block& block = *realized.block;
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot cache what {} updates: {}", name_of(block), why));
  };
  const BlockRealize* scope = scope_of(path);
  if (!scope) return problem(codes::bad_argument, "it is the root block");
  const Buffer buffer = TRY(buffer_of(path, {.writes = true, .number = index}));
  // Every element is read before it is written for the first time, so that what is copied in has a value.
  bool reads = false;
  const std::vector<Access> own = accesses(path.back());
  const Access* first = nullptr;
  for (const Access& access : own) {
    if (access.buffer != buffer) continue;
    if (access.opaque || !access.certain || access.block != &block)
      return problem(codes::region,
                     fmt::format("'{}' is touched under a condition or by a block inside", buffer->name));
    if (!first) first = &access;
    reads = reads || !access.writes;
    for (size_t d = 0; d < access.region.size(); ++d)
      if (!is_int(access.region[d].extent, 1) || !same(access.region[d].min, first->region[d].min) ||
          access.loops != first->loops)
        return problem(codes::region, fmt::format("it touches different elements of '{}'", buffer->name));
  }
  if (block.init || !reads || first->writes)
    return problem(codes::region, fmt::format("it does not read '{}' before it writes it", buffer->name));

  const size_t at = alone_around(path, buffer);
  const Stmt around = path[at];
  auto region = touched(accesses(around), [&](const Access& access) { return access.buffer == buffer; });
  const auto bounds = bounds_of(path, at, buffer);
  if (!region || !region->exact || !predicate_is_domain(path) || !bounds)
    return problem(codes::region,
                   fmt::format("which elements of '{}' it updates is not an exact region", buffer->name));

  const Buffer cache = cache_of(buffer, scope_name);
  Id next = program.next, in_id = 0, out_id = 0;
  const Path where(path.begin(), path.begin() + static_cast<ptrdiff_t>(at));
  const Stmt in = copy_nest(buffer->name + "_" + scope_name, buffer, cache, *region, *bounds, where, next, in_id);
  if (support::flip(cache_inplace_skips_first) && !region->dimensions.empty())
    region->dimensions.back().low = region->dimensions.back().low + 1;
  const Stmt out = copy_nest(buffer->name + "_out", cache, buffer, *region, *bounds, where, next, out_id);
  Stmt body = replace(program.function->body, around, seq({in, with_buffer(around, buffer, cache), out}));
  body = with_allocation(body, *path_to(body, scope->block->id).back().as<BlockRealize>(), cache);
  const Function after = with_body(program.function, body);
  if (auto refused = refuse_parallel_above(program, after, where, "cache a block's updates"))
    return *std::move(refused);
  return edited(program, after, next, {in_id, out_id});
}

}  // namespace lathe::schedule::primitives
