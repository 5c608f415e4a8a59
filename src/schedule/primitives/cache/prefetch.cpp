// prefetch: while an iteration of a loop runs, memory is asked for what its next iteration reads of a buffer.
#include "ir/floor.h"
#include "schedule/analysis/access.h"
#include "schedule/primitives/cache/buffers.h"
#include "target/target.h"

namespace lathe::schedule::primitives {

namespace {

constexpr int64_t line_bytes = target::cache_line_bytes;
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

using Elements = std::vector<std::vector<Expr>>;  // by indices

// What is asked for, from the block that reads it to the hints in `at`.
class Asking {
 public:
  Asking(const Program& program, const Path& path, Buffer buffer, const Prefetch& what)
      : program_(program), path_(path), buffer_(std::move(buffer)), what_(what), loops_(loops_above(path)) {}

  Result<Edit> run(Id outer, Id at) {
    TRY(take_loops(outer, at));
    TRY(check_what());
    TRY(find_read());
    for (const auto* loops : {&loops_, &within_})
      for (const For* loop : *loops) analyzer_.bind(loop->loop_var, Range(loop->min, loop->extent));
    return hinted(TRY(what_.in_turn ? lines_in_turn() : lines_of_piece()));
  }

 private:
  Diagnostic problem(const support::Code& code, std::string why) const {
    return refuse(code, fmt::format("cannot prefetch '{}' for {}: {}", buffer_->name, name_of(block()), why));
  }
  const Block& block() const { return *path_.back().as<BlockRealize>()->block; }
  std::string outer_name() const { return name_of(*loops_[outer_]); }
  std::string at_name() const { return name_of(*loops_[at_]); }

  Status take_loops(Id outer, Id at) {
    const auto place = [&](Id wanted) {
      const auto it = std::find_if(loops_.begin(), loops_.end(), [&](const For* l) { return l->id == wanted; });
      return static_cast<size_t>(it - loops_.begin());
    };
    outer_ = place(outer), at_ = place(at);
    if (outer_ == loops_.size() || at_ == loops_.size()) return problem(codes::not_nested, "it is not in both loops");
    if (at_ < outer_) return problem(codes::not_nested, fmt::format("{} is around {}", at_name(), outer_name()));
    return support::success();
  }

  Status check_what() const {
    const auto wrong = [&](std::string why) { return problem(codes::bad_argument, std::move(why)); };
    if (what_.level < 1 || what_.level > 3) return wrong(fmt::format("there is no level {} of cache", what_.level));
    if (what_.of < 1 || what_.begin < 0 || what_.begin >= what_.end || what_.end > what_.of)
      return wrong(fmt::format("there are no pieces {} to {} of {}", what_.begin, what_.end, what_.of));
    if (what_.turns < 1) return wrong(fmt::format("it cannot be asked for in {} turns", what_.turns));
    if (buffer_->scope != "global") return wrong(fmt::format("it is in scope '{}'", buffer_->scope));
    if (buffer_->dtype.storage_bits() % 8 != 0)
      return wrong(fmt::format("elements of type {} lie within bytes", buffer_->dtype.str()));
    return support::success();
  }

  // Where the block reads.
  Status find_read() {
    for (const Access& access : accesses(path_.back())) {
      if (access.writes || access.buffer != buffer_) continue;
      std::vector<Expr> corner;
      for (const Range& range : access.region) {
        corner.push_back(range.min);
        if (!is_int(range.extent, 1)) return problem(codes::region, "it reads more than an element at once");
        if (reads_memory(range.min)) return problem(codes::region, "what it reads depends on what memory holds");
      }
      if (!first_.empty() && !same(position(buffer_, corner), position(buffer_, first_)))
        return problem(codes::region, "it reads it in several places");
      first_ = std::move(corner);
      within_ = access.loops;
    }
    if (first_.empty() || !position(buffer_, first_)) return problem(codes::region, "its rows have no known distance");
    return support::success();
  }

  // The outer loop's variable in its next iteration.
  VarMap next() const {
    const Var& variable = loops_[outer_]->loop_var;
    return {{variable, Expr(variable) + 1}};
  }

  // What the same iteration reads then.
  Result<Elements> lines_in_turn() {
    std::vector<const For*> inside(loops_.begin() + static_cast<ptrdiff_t>(at_) + 1, loops_.end());
    inside.insert(inside.end(), within_.begin(), within_.end());
    std::vector<Expr> then;
    for (const Expr& index : first_) then.push_back(substitute(index, next()));
    auto lines = lines_of(buffer_, then, inside, analyzer_);
    if (!lines || std::ssize(*lines) > most_lines)
      return problem(codes::region,
                     fmt::format("what an iteration of {} reads lies in too many lines of memory", at_name()));
    return *std::move(lines);
  }

  // Of the one piece of memory that the outer loop's next iteration reads, an equal share for each iteration inside.
  Result<Elements> lines_of_piece() {
    VarMap start;
    for (size_t l = outer_ + 1; l < loops_.size(); ++l) start[loops_[l]->loop_var] = loops_[l]->min;
    for (const For* loop : within_) start[loop->loop_var] = substitute(loop->min, start);
    const Expr here = position(buffer_, first_), begins = substitute(here, start);
    const auto step = as_int(analyzer_.simplify(substitute(begins, next()) - begins));
    if (!step || *step <= 0)
      return problem(
          codes::region,
          fmt::format("an iteration of {} does not read a constant distance behind the one before", outer_name()));
    const auto piece = analyzer_.const_int_bound(analyzer_.simplify(here - begins));
    if (piece.min_value < 0 || piece.max_value >= *step)
      return problem(codes::region,
                     fmt::format("what an iteration of {} reads is not one piece of memory", outer_name()));
    const int64_t size = piece.max_value + 1;
    const int64_t begin = size * what_.begin / what_.of, end = size * what_.end / what_.of;
    const auto [number, of] = turn();
    const int64_t bytes = buffer_->dtype.storage_bits() / 8 * buffer_->dtype.lanes;
    const int64_t share = (end - begin + of - 1) / of;
    const int64_t lines = (share * bytes + line_bytes - 1) / line_bytes;
    if (lines > most_lines)
      return problem(codes::bad_argument,
                     fmt::format("{} would ask for {} lines of memory in each iteration", at_name(), lines));
    Elements elements;
    for (int64_t line = 0; line < lines; ++line) {
      std::vector<Expr>& indices = elements.emplace_back();
      for (const Expr& index : first_) indices.push_back(substitute(substitute(index, start), next()));
      indices.back() = indices.back() + number * share + (begin + line * line_bytes / bytes);
    }
    return elements;
  }

  // Which of how many shares an iteration of `at` has. A loop of unknown extent may run once: each of its iterations
  // asks for all that one has to ask for, unless some of them take turns.
  struct Turn {
    Expr number;
    int64_t of = 1;
  };
  Turn turn() const {
    Turn turn{int64(0), 1};
    Expr open;
    for (size_t l = outer_ + 1; l <= at_; ++l) {
      const auto extent = as_int(loops_[l]->extent);
      const Expr iteration = Expr(loops_[l]->loop_var) - loops_[l]->min;
      if (extent) {
        turn.of *= std::max<int64_t>(*extent, 1);
        turn.number = turn.number * *extent + iteration;
      } else {
        open = open ? open + iteration : iteration;
      }
    }
    if (open && what_.turns > 1) {
      turn.number = turn.number + floormod(open, int64(what_.turns)) * turn.of;
      turn.of *= what_.turns;
    }
    return turn;
  }

  // One block in `at`, with a hint for each of these elements.
  Edit hinted(const Elements& elements) {
    std::vector<IterVar> iters;
    std::vector<Expr> values;
    VarMap own;
    for (size_t l = 0; l <= at_; ++l) {
      const Var v = var("v_" + loops_[l]->loop_var->name, loops_[l]->loop_var->dtype);
      iters.push_back(make<IterVarNode>(Range(loops_[l]->min, loops_[l]->extent), v, IterType::spatial, ""));
      values.emplace_back(loops_[l]->loop_var);
      own[loops_[l]->loop_var] = v;
    }
    std::vector<Stmt> hints;
    for (std::vector<Expr> indices : elements) {
      for (Expr& index : indices) index = substitute(analyzer_.simplify(index), own);
      hints.push_back(
          make<Evaluate>(call(DType::int32(), intrinsic::prefetch,
                              {load(buffer_, std::move(indices)), int32(static_cast<int32_t>(what_.level))})));
    }
    Id unused = program_.next;
    const Id created = unused++;
    const Ref<Block> asks = make<Block>(
        iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
        std::vector<BufferRegion>{}, block().name + "_prefetch", Stmt{}, seq(std::move(hints)), Attributes(), created);
    const Stmt asked =
        with(*loops_[at_], [&](For& copy) { copy.body = seq({realize(values, boolean(true), asks), copy.body}); });
    return edit(program_, Stmt(loops_[at_]), asked, unused, {created});
  }

  const Program& program_;
  const Path& path_;
  const Buffer buffer_;
  const Prefetch& what_;
  std::vector<const For*> loops_;   // around the block
  size_t outer_ = 0, at_ = 0;       // among these
  std::vector<Expr> first_;         // the indices that the block reads
  std::vector<const For*> within_;  // loops in the block's body
  arith::Analyzer analyzer_;
};

}  // namespace

Result<Edit> prefetch(const Program& program, Id id, int64_t read_buffer_index, Id loop_id, Id at_id,
                      const Prefetch& what) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(buffer_of(path, {.writes = false, .number = read_buffer_index}));
  return Asking(program, path, buffer, what).run(loop_id, at_id);
}

}  // namespace lathe::schedule::primitives
