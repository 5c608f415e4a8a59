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

// Whether the access, where it is made at all, lies in both regions: asked element by element. It is in the loops
// `around`.
bool lies_in(const Access& access, const Region& region, const Region& bounds, const std::vector<const For*>& around) {
  Expr beyond = boolean(false);
  for (size_t d = 0; d < access.region.size(); ++d) {
    const Expr low = access.region[d].min, end = low + access.region[d].extent;
    for (const Interval& part : {region.dimensions[d], bounds.dimensions[d]})
      beyond = logical_or(beyond, logical_or(low<part.low, end> part.high + 1));
  }
  Expr condition = logical_and(in_range(around), logical_and(in_range(access.loops), beyond));
  for (const Expr& known : {access.predicate, access.guard})
    if (known) condition = logical_and(condition, known);
  return arith::find_point(condition).outcome == arith::PointSearch::none;
}

// Why the block at the end of `reader` may not read what path[at] leaves in the cache, which is `region` inside of
// `bounds`.
std::optional<Diagnostic> refuse_consumer(const Program& program, const Path& path, size_t at, const Path& reader,
                                          const Buffer& buffer, const Region& region, const Region& bounds) {
  const Block& block = *reader.back().as<BlockRealize>()->block;
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("{} cannot read the cache of '{}': {}", name_of(block), buffer->name, why));
  };
  const auto* sequence = at > 0 ? path[at - 1].as<SeqStmt>() : nullptr;
  if (scope_of(reader) != scope_of(path) || !sequence || reader.size() <= at || reader[at - 1] != path[at - 1])
    return problem(codes::not_nested, "it does not follow in the same loops");
  const auto end = sequence->seq.end();
  const auto writer = std::find(sequence->seq.begin(), end, path[at]), use = std::find(writer, end, reader[at]);
  if (use == end || use == writer) return problem(codes::not_nested, "it does not follow in the same loops");
  for (auto s = writer + 1; s != use + 1; ++s) {
    const std::vector<Buffer> written = buffers_written(*s);
    if (std::find(written.begin(), written.end(), buffer) != written.end())
      return problem(codes::dependence, "it is written once more before that");
  }
  const std::vector<Access> all = accesses(reader[at]);
  const auto mine = [&](const Access& access) { return access.buffer == buffer && is_inside(access.block, block); };
  for (const Access& access : all)
    if (mine(access) && access.opaque) return problem(codes::region, "its address is taken");
  const auto read = touched(all, mine);
  const std::vector<Buffer> names = outer_buffers(reader, false);
  if (std::find(names.begin(), names.end(), buffer) == names.end())
    return problem(codes::bad_argument, "it does not read it");
  if (!program.proves) return std::nullopt;
  // More than all of the buffer nobody reads, whatever an index alone says.
  const Region everything{whole(buffer)};
  if (holds(region, everything) && holds(bounds, everything)) return std::nullopt;
  std::vector<const For*> around;
  for (size_t i = 0; i < at; ++i)
    if (const auto* loop = path[i].as<For>()) around.push_back(loop);
  const bool all_there = (read && holds(region, *read, around) && holds(bounds, *read, around)) ||
                         std::all_of(all.begin(), all.end(),
                                     [&](const Access& a) { return !mine(a) || lies_in(a, region, bounds, around); });
  if (!all_there) return problem(codes::region, "could not show that all that it reads was written there");
  return std::nullopt;
}

// `root`, in which the blocks on the path no longer say that they read the buffer where nothing in them does.
Stmt without_reads(Stmt root, const Path& path, const Buffer& buffer) {
  for (size_t at = path.size(); at-- > 0;) {
    const auto* realize = path[at].as<BlockRealize>();
    if (!realize) continue;
    const std::vector<Buffer> read = buffers_read(path[at]);
    if (std::find(read.begin(), read.end(), buffer) != read.end()) break;
    const Stmt found = path_to(root, realize->block->id).back();
    root = replace(root, found, with(*found.as<BlockRealize>(), [&](BlockRealize& copy) {
                     copy.block = with(*copy.block, [&](Block& block) {
                       std::erase_if(block.reads, [&](const BufferRegion& region) { return region->buffer == buffer; });
                     });
                   }));
  }
  return root;
}

// The block at the path's end writes to a buffer in another scope, which is written back behind path[at]; the consumers
// read it there.
Result<Edit> write_through(const Program& program, const Path& path, size_t at, const Buffer& buffer,
                           const std::string& scope_name, const std::vector<Id>& consumers = {}) {
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
        if (const auto* loop = path[j].as<For>(); loop && !is_int(loop->extent, 1) &&
                                                  block.iter_vars[i]->type != IterType::spatial &&
                                                  uses_var(realized.iter_values[i], loop->loop_var))
          return problem(codes::region,
                         fmt::format("{} of its reduction is around other uses of '{}'", name_of(*loop), buffer->name));
  }
  auto region = touched(all, [&](const Access& access) { return access.buffer == buffer && access.writes; });
  const auto bounds = bounds_of(path, at, buffer);
  if (!region || !region->exact || !predicate_is_domain(path) || !bounds || is_partial(block))
    return problem(codes::region, fmt::format("which elements of '{}' it writes is not an exact region", buffer->name));
  std::vector<Path> readers;
  for (const Id consumer : consumers) {
    readers.push_back(TRY(block_path(program, consumer)));
    if (auto refused = refuse_consumer(program, path, at, readers.back(), buffer, *region, {*bounds}))
      return *std::move(refused);
  }
  if (support::flip(cache_write_shifts_region) && !region->dimensions.empty())
    region->dimensions.back().low = region->dimensions.back().low + 1;

  const Buffer cache = cache_of(buffer, scope_name);
  Id next = program.next, copy_id = 0;
  const Path where(path.begin(), path.begin() + static_cast<ptrdiff_t>(at));
  const Stmt copy = copy_nest(block.name + "_" + scope_name, cache, buffer, *region, *bounds, where, next, copy_id);
  std::vector<std::pair<Stmt, Stmt>> edits{{around, seq({with_buffer(around, buffer, cache), copy})}};
  for (const Path& reader : readers) edits.emplace_back(reader.back(), with_buffer(reader.back(), buffer, cache));
  Stmt body = replace_all(program.function->body, edits);
  const Path changed = path_to(body, scope->block->id);
  body = with_allocation(body, *changed.back().as<BlockRealize>(), cache);
  if (reads_own) body = without_reads(body, path_to(body, scope->block->id), buffer);
  const Function after = with_body(program.function, body);
  if (auto refused = refuse_parallel_above(program, after, where, "cache a block's writes")) return *std::move(refused);
  return edited(program, after, next, {copy_id});
}

}  // namespace

Result<Edit> cache_write(const Program& program, Id id, int64_t index, const std::string& scope_name,
                         const std::vector<Id>& consumers) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(written_buffer(path, index));
  return write_through(program, path, alone_around(path, buffer), buffer, scope_name, consumers);
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
