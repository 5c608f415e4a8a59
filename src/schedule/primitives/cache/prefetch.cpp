// prefetch: while an iteration of a loop runs, memory is asked for what its next iteration reads of a buffer.
#include "ir/floor.h"
#include "schedule/analysis/access.h"
#include "schedule/primitives/cache/buffers.h"

namespace lathe::schedule::primitives {

namespace {

constexpr int64_t line_bytes = 64;
constexpr int64_t most_lines = 64;  // asked for at once
constexpr int64_t most_points = 1024;

// The position of an element in the buffer's memory, as a sum over its indices; null where the strides are not known.
Expr position(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr sum = int64(0), stride = int64(1);
  for (size_t d = indices.size(); d-- > 0;) {
    if (!buffer->strides.empty()) stride = buffer->strides[d];
    if (!as_int(stride)) return Expr();
    sum = sum + indices[d] * stride;
    if (buffer->strides.empty()) stride = arith::Analyzer().simplify(stride * buffer->shape[d]);
  }
  return sum;
}

// The indices, of which each is a list, at every point of the loops that they use; one for each line of memory that
// these points lie in. Nothing where that is not known or too much.
std::optional<std::vector<std::vector<Expr>>> lines_of(const Buffer& buffer, const std::vector<Expr>& indices,
                                                       const std::vector<const For*>& loops,
                                                       arith::Analyzer& analyzer) {
  const Expr here = position(buffer, indices);
  std::vector<VarMap> points{{}};
  for (const For* loop : loops) {
    if (!uses_var(here, loop->loop_var)) continue;
    const auto extent = as_int(loop->extent);
    if (!extent || *extent < 1 || *extent * std::ssize(points) > most_points) return std::nullopt;
    std::vector<VarMap> all;
    for (int64_t i = 0; i < *extent; ++i)
      for (VarMap point : points) {
        point[loop->loop_var] = loop->min + i;
        all.push_back(std::move(point));
      }
    points = std::move(all);
  }
  const int64_t bytes = buffer->dtype.storage_bits() / 8 * buffer->dtype.lanes;
  std::map<int64_t, const VarMap*> lines;
  for (const VarMap& point : points) {
    const auto distance = as_int(analyzer.simplify(substitute(here, point) - substitute(here, points[0])));
    if (!distance) return std::nullopt;
    lines.emplace(ir::floor_div(*distance * bytes, line_bytes), &point);
  }
  std::vector<std::vector<Expr>> result;
  for (const auto& [line, point] : lines) {
    result.emplace_back();
    for (const Expr& index : indices) result.back().push_back(substitute(index, *point));
  }
  return result;
}

}  // namespace

Result<Edit> prefetch(const Program& program, Id id, int64_t read_buffer_index, Id loop_id, Id at_id,
                      const Prefetch& what) {
  const Path path = TRY(block_path(program, id));
  const auto& realized = *path.back().as<BlockRealize>();
  const Buffer buffer = TRY(buffer_of(path, {.writes = false, .number = read_buffer_index}));
  const auto problem = [&](const support::Code& code, std::string why) {
    return refuse(code, fmt::format("cannot prefetch '{}' for {}: {}", buffer->name, name_of(*realized.block), why));
  };
  const std::vector<const For*> loops = loops_above(path);
  const auto place = [&](Id wanted) {
    return std::find_if(loops.begin(), loops.end(), [&](const For* l) { return l->id == wanted; }) - loops.begin();
  };
  const ptrdiff_t outer = place(loop_id), at = place(at_id), count = std::ssize(loops);
  if (outer == count || at == count) return problem(codes::not_nested, "it is not in both loops");
  if (at < outer)
    return problem(codes::not_nested, fmt::format("{} is around {}", name_of(*loops[at]), name_of(*loops[outer])));
  if (what.level < 1 || what.level > 3)
    return problem(codes::bad_argument, fmt::format("there is no level {} of cache", what.level));
  if (what.of < 1 || what.begin < 0 || what.begin >= what.end || what.end > what.of)
    return problem(codes::bad_argument,
                   fmt::format("there are no pieces {} to {} of {}", what.begin, what.end, what.of));
  if (what.turns < 1)
    return problem(codes::bad_argument, fmt::format("it cannot be asked for in {} turns", what.turns));
  if (buffer->scope != "global") return problem(codes::bad_argument, fmt::format("it is in scope '{}'", buffer->scope));
  if (buffer->dtype.storage_bits() % 8 != 0)
    return problem(codes::bad_argument, fmt::format("elements of type {} lie within bytes", buffer->dtype.str()));

  // Where the block reads, and how that moves with the loops.
  std::vector<Expr> first;
  std::vector<const For*> within;  // loops in the block's body
  for (const Access& access : accesses(path.back())) {
    if (access.writes || access.buffer != buffer) continue;
    std::vector<Expr> corner;
    for (const Range& range : access.region) {
      corner.push_back(range.min);
      if (!is_int(range.extent, 1)) return problem(codes::region, "it reads more than an element at once");
      if (reads_memory(range.min)) return problem(codes::region, "what it reads depends on what memory holds");
    }
    if (!first.empty() && !same(position(buffer, corner), position(buffer, first)))
      return problem(codes::region, "it reads it in several places");
    first = std::move(corner);
    within = access.loops;
  }
  if (first.empty() || !position(buffer, first)) return problem(codes::region, "its rows have no known distance");
  arith::Analyzer analyzer;
  for (const For* loop : loops) analyzer.bind(loop->loop_var, Range(loop->min, loop->extent));
  for (const For* loop : within) analyzer.bind(loop->loop_var, Range(loop->min, loop->extent));
  VarMap start, next{{loops[outer]->loop_var, Expr(loops[outer]->loop_var) + 1}};
  for (ptrdiff_t l = outer + 1; l < count; ++l) start[loops[l]->loop_var] = loops[l]->min;
  for (const For* loop : within) start[loop->loop_var] = substitute(loop->min, start);
  // One block in `at`, with a hint for each of these elements.
  std::vector<IterVar> iters;
  std::vector<Expr> values;
  VarMap own;
  for (ptrdiff_t l = 0; l <= at; ++l) {
    const Var v = var("v_" + loops[l]->loop_var->name, loops[l]->loop_var->dtype);
    iters.push_back(make<IterVarNode>(Range(loops[l]->min, loops[l]->extent), v, IterType::spatial, ""));
    values.emplace_back(loops[l]->loop_var);
    own[loops[l]->loop_var] = v;
  }
  const auto hinted = [&](const std::vector<std::vector<Expr>>& elements) {
    std::vector<Stmt> hints;
    for (std::vector<Expr> indices : elements) {
      for (Expr& index : indices) index = substitute(analyzer.simplify(index), own);
      hints.push_back(
          make<Evaluate>(call(DType::int32(), intrinsic::prefetch,
                              {load(buffer, std::move(indices)), int32(static_cast<int32_t>(what.level))})));
    }
    Id unused = program.next;
    const Id created = unused++;
    const Ref<Block> block =
        make<Block>(iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
                    std::vector<BufferRegion>{}, realized.block->name + "_prefetch", Stmt{}, seq(std::move(hints)),
                    Attributes(), created);
    const Stmt asked =
        with(*loops[at], [&](For& copy) { copy.body = seq({realize(values, boolean(true), block), copy.body}); });
    return edit(program, Stmt(loops[at]), asked, unused, {created});
  };
  if (what.in_turn) {
    std::vector<const For*> inside(loops.begin() + at + 1, loops.end());
    inside.insert(inside.end(), within.begin(), within.end());
    std::vector<Expr> then;
    for (const Expr& index : first) then.push_back(substitute(index, next));
    const auto lines = lines_of(buffer, then, inside, analyzer);
    if (!lines || std::ssize(*lines) > most_lines)
      return problem(codes::region, fmt::format("what an iteration of {} reads lies in too many lines of memory",
                                                name_of(*loops[at])));
    return hinted(*lines);
  }
  const Expr here = position(buffer, first), begins = substitute(here, start);
  const auto step = as_int(analyzer.simplify(substitute(begins, next) - begins));
  if (!step || *step <= 0)
    return problem(codes::region,
                   fmt::format("an iteration of {} does not read a constant distance behind the one before",
                               name_of(*loops[outer])));
  const auto piece = analyzer.const_int_bound(analyzer.simplify(here - begins));
  if (piece.min_value < 0 || piece.max_value >= *step)
    return problem(codes::region,
                   fmt::format("what an iteration of {} reads is not one piece of memory", name_of(*loops[outer])));
  const int64_t size = piece.max_value + 1;
  const int64_t begin = size * what.begin / what.of, end = size * what.end / what.of;

  // An equal share of it for each iteration of the loops inside. A loop of unknown extent may run once: each of its
  // iterations asks for all that one has to ask for, unless some of them take turns.
  int64_t iterations = 1;
  Expr number = int64(0), open;
  for (ptrdiff_t l = outer + 1; l <= at; ++l) {
    const auto extent = as_int(loops[l]->extent);
    const Expr iteration = Expr(loops[l]->loop_var) - loops[l]->min;
    if (extent) {
      iterations *= std::max<int64_t>(*extent, 1);
      number = number * *extent + iteration;
    } else {
      open = open ? open + iteration : iteration;
    }
  }
  if (open && what.turns > 1) {
    number = number + floormod(open, int64(what.turns)) * iterations;
    iterations *= what.turns;
  }
  const int64_t bytes = buffer->dtype.storage_bits() / 8 * buffer->dtype.lanes;
  const int64_t share = (end - begin + iterations - 1) / iterations;
  const int64_t lines = (share * bytes + line_bytes - 1) / line_bytes;
  if (lines > most_lines)
    return problem(codes::bad_argument,
                   fmt::format("{} would ask for {} lines of memory in each iteration", name_of(*loops[at]), lines));
  std::vector<std::vector<Expr>> elements;
  for (int64_t line = 0; line < lines; ++line) {
    std::vector<Expr>& indices = elements.emplace_back();
    for (const Expr& index : first) indices.push_back(substitute(substitute(index, start), next));
    indices.back() = indices.back() + number * share + (begin + line * line_bytes / bytes);
  }
  return hinted(elements);
}

}  // namespace lathe::schedule::primitives
