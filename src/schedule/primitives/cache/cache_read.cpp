// cache_read, read_at: blocks read a copy of a buffer in another scope.
#include <set>

#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "schedule/primitives/compute/place.h"
#include "support/mutation.h"
#include "tir/analysis/zero_border.h"

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

// The blocks that read the copy, in statements that follow one another; it is made before the first of these.
struct Readers {
  std::vector<Path> paths;
  size_t at = 0;  // of those statements on the paths, which are the same above
  std::vector<Stmt> stretch;

  Path above() const { return Path(paths[0].begin(), paths[0].begin() + static_cast<ptrdiff_t>(at)); }
};

// The largest stretch with all the readers in which nothing writes the buffer; none where it is written between them.
std::optional<Readers> readers_of(std::vector<Path> paths, const Buffer& buffer) {
  const Path& path = paths[0];
  size_t shared = path.size();
  for (const Path& other : paths) {
    size_t same = 0;
    while (same < std::min(shared, other.size()) && other[same] == path[same]) ++same;
    shared = same;
  }
  size_t at = shared - 1;
  if (paths.size() == 1 || !written_in(path[at], buffer)) {
    while (at > 0 && !path[at - 1].is<Block>() && !path[at - 1].is<BlockRealize>() && !written_in(path[at - 1], buffer))
      --at;
    while (at + 1 < shared && path[at].is<SeqStmt>()) ++at;
    if (!path[at].is<SeqStmt>()) return Readers{paths, at, {path[at]}};
  }
  const auto* sequence = path[at].as<SeqStmt>();
  if (!sequence) return std::nullopt;
  size_t first = sequence->seq.size(), last = 0;
  for (const Path& other : paths) {
    const auto found = std::find(sequence->seq.begin(), sequence->seq.end(), other[at + 1]) - sequence->seq.begin();
    first = std::min(first, static_cast<size_t>(found));
    last = std::max(last, static_cast<size_t>(found));
  }
  const auto begin = sequence->seq.begin();
  Readers readers{paths, at + 1, {begin + static_cast<ptrdiff_t>(first), begin + static_cast<ptrdiff_t>(last) + 1}};
  for (const Stmt& s : readers.stretch)
    if (written_in(s, buffer)) return std::nullopt;
  return readers;
}

// The paths to all blocks that read the values that the block at the path's end reads; its own first.
std::vector<Path> all_that_read(const Program& program, const Path& path, const Buffer& buffer) {
  const Readers own = *readers_of({path}, buffer);
  std::vector<Stmt> around = own.stretch;
  if (const auto* sequence = own.at > 0 ? path[own.at - 1].as<SeqStmt>() : nullptr) {
    const auto here = std::find(sequence->seq.begin(), sequence->seq.end(), path[own.at]);
    const auto writes = [&](const Stmt& s) { return written_in(s, buffer); };
    const auto end = std::find_if(here, sequence->seq.end(), writes);
    const auto begin = std::find_if(std::reverse_iterator(here), sequence->seq.rend(), writes).base();
    around.assign(begin, end);
  }
  std::vector<Path> paths{path};
  for (const Stmt& s : around)
    for (const Ref<BlockRealize>& realize : outer_blocks(s)) {
      const std::vector<Buffer> read = buffers_read(realize);
      if (Stmt(realize) != path.back() && std::find(read.begin(), read.end(), buffer) != read.end())
        paths.push_back(path_to(program.function->body, realize->block->id));
    }
  return paths;
}

// The readers read a copy of the buffer.
Result<Edit> read_through(const Program& program, const Readers& readers, const Buffer& buffer,
                          const std::string& scope_name) {
  const Path& path = readers.paths[0];
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code,
                  fmt::format("cannot cache what {} reads: {}", name_of(*path.back().as<BlockRealize>()->block), why));
  };
  const BlockRealize* scope = scope_of(path);

  const std::vector<Access> all = accesses(seq(readers.stretch));
  for (const Access& access : all)
    if (access.buffer == buffer && access.opaque)
      return problem(codes::region, fmt::format("the address of '{}' is taken", buffer->name));
  auto region = touched(all, [&](const Access& access) {
    return access.buffer == buffer && std::any_of(readers.paths.begin(), readers.paths.end(), [&](const Path& reader) {
             return is_inside(access.block, *reader.back().as<BlockRealize>()->block);
           });
  });
  const bool parameter = !allocating_block(*program.function, buffer);
  // Of a parameter, more may be read than the blocks do.
  auto bounds = parameter ? whole(buffer) : bounds_of(path, readers.at, buffer);
  // Of other memory, what the blocks do not read need not have a value.
  bool known = region && (parameter || region->exact);
  for (const Path& reader : readers.paths) {
    if (parameter) continue;
    known = known && predicate_is_domain(reader);
    const auto other = bounds_of(reader, readers.at, buffer);
    for (size_t d = 0; bounds && other && d < bounds->size(); ++d)
      if (!same((*bounds)[d].low, (*other)[d].low) || !same((*bounds)[d].high, (*other)[d].high)) known = false;
    if (!other) known = false;
  }
  if (!region || !known || !bounds)
    return problem(codes::region, fmt::format("which elements of '{}' it reads is not an exact region", buffer->name));
  if (support::flip(cache_read_shifts_region) && !region->dimensions.empty())
    region->dimensions.back().low = region->dimensions.back().low + 1;

  const Buffer cache = cache_of(buffer, scope_name);
  Id next = program.next, copy_id = 0;
  const Path where = readers.above();
  const Stmt copy = copy_nest(buffer->name + "_" + scope_name, buffer, cache, *region, *bounds, where, next, copy_id);
  std::vector<std::pair<Stmt, Stmt>> reading, edits;
  for (const Path& reader : readers.paths)
    reading.emplace_back(reader.back(),
                         tir::with_zero_border_of(with_buffer(reader.back(), buffer, cache), buffer, cache));
  for (const Stmt& s : readers.stretch) {
    const Stmt changed = replace_all(s, reading);
    edits.emplace_back(s, edits.empty() ? seq({copy, changed}) : changed);
  }
  Stmt body = replace_all(program.function->body, edits);
  const Path changed = path_to(body, scope->block->id);
  body = with_allocation(body, *changed.back().as<BlockRealize>(), cache);
  const Function after = with_body(program.function, body);
  if (auto refused = refuse_parallel_above(program, after, where, "cache a block's reads")) return *std::move(refused);
  return edited(program, after, next, {copy_id});
}

}  // namespace

Result<Edit> cache_read(const Program& program, Id id, int64_t index, const std::string& scope_name,
                        const std::vector<Id>& consumers) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(read_buffer(path, index));
  if (consumers.empty()) {
    if (const auto all = readers_of(all_that_read(program, path, buffer), buffer); all && all->paths.size() > 1)
      if (auto made = read_through(program, *all, buffer, scope_name); made.ok()) return made;
    return read_through(program, *readers_of({path}, buffer), buffer, scope_name);
  }
  std::vector<Path> paths;
  for (const Id consumer : std::set<Id>(consumers.begin(), consumers.end())) {
    paths.push_back(TRY(block_path(program, consumer)));
    const Block& block = *paths.back().back().as<BlockRealize>()->block;
    const auto problem = [&](const support::Code& code, std::string why) {
      return refuse(code, fmt::format("cannot cache what {} reads: {}", name_of(block), why));
    };
    if (scope_of(paths.back()) != scope_of(path))
      return problem(codes::not_nested,
                     fmt::format("it is not beside {}", name_of(*find_block(*program.function, id))));
    const std::vector<Buffer> read = outer_buffers(paths.back(), false), written = outer_buffers(paths.back(), true);
    if (std::find(read.begin(), read.end(), buffer) == read.end())
      return problem(codes::bad_argument, fmt::format("it does not read '{}'", buffer->name));
    if (std::find(written.begin(), written.end(), buffer) != written.end())
      return problem(codes::dependence, fmt::format("it writes '{}' as well", buffer->name));
  }
  const auto readers = readers_of(std::move(paths), buffer);
  if (!readers)
    return refuse(codes::dependence,
                  fmt::format("cannot cache what the consumers read: '{}' is written between them", buffer->name));
  return read_through(program, *readers, buffer, scope_name);
}

Result<Edit> read_at(const Program& program, Id loop, Id id, int64_t index, const std::string& scope_name) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(read_buffer(path, index));
  const size_t at = TRY(below_loop(path, loop, "read"));
  if (written_in(path[at], buffer))
    return refuse(codes::dependence, fmt::format("cannot cache what {} reads: '{}' is written in the same statement of "
                                                 "the loop",
                                                 name_of(*path.back().as<BlockRealize>()->block), buffer->name));
  return read_through(program, {{path}, at, {path[at]}}, buffer, scope_name);
}

}  // namespace lathe::schedule::primitives
