#include "schedule/rules/tile/panels.h"

#include <numeric>

#include "ir/visit.h"
#include "schedule/codes.h"
#include "schedule/rules/nest/transposed.h"

namespace lathe::schedule {

Result<BlockRV> copy_into_panels(Schedule& schedule, const Work& work, const Buffer& tensor, const PanelAxes& axes,
                                 int64_t width) {
  IndexMap map{{}, axes.around};
  for (const IterVar& iter : work.block().iter_vars) map.from.push_back(iter->var);
  if (width) map.to.push_back(floordiv(axes.column, int64(width)));
  map.to.insert(map.to.end(), axes.terms.begin(), axes.terms.end());
  map.to.push_back(width ? floormod(axes.column, int64(width)) : axes.column);
  const std::vector<Buffer> read = operands_of(work.block());
  const auto number = std::find(read.begin(), read.end(), tensor) - read.begin();
  return schedule.reindex_cache_read(TRY(handle(schedule, work)), number, "global", map);
}

namespace {

// Position, among the block's loops, of the one that walks the last dimension of what it writes.
std::optional<size_t> innermost_written(const Work& work) {
  const auto* store = work.block().body.as<BufferStore>();
  for (size_t v = 0; v < work.block().iter_vars.size(); ++v)
    for (size_t l = 0; l < work.loops.size(); ++l)
      if (uses_var(store->indices.back(), work.block().iter_vars[v]->var) &&
          uses_var(work.realize->iter_values[v], work.loops[l]->loop_var))
        return l;
  return std::nullopt;
}

// So many panels, of a number, are copied together: rows are read in longer pieces.
int64_t side_by_side(int64_t panels, int64_t most) { return largest_divisor(panels, std::clamp<int64_t>(most, 1, 4)); }

// The loops of columns innermost, the last of them in vectors, or in squares where the tensor lies the other way.
// Threads share the loops around them.
Status vectorize_copy(Schedule& schedule, const RuleContext& context, BlockRV copy, const std::vector<LoopRV>& columns,
                      bool parallel) {
  std::set<Id> inside;
  for (const LoopRV& loop : columns) inside.insert(TRY(schedule.get(loop))->id);
  std::vector<LoopRV> around, order;
  bool behind = false;
  for (const LoopRV& loop : TRY(schedule.get_loops(copy))) {
    const bool is_column = inside.count(TRY(schedule.get(loop))->id) > 0;
    behind = behind || is_column;
    if (!is_column) (behind ? order : around).push_back(loop);
  }
  order.insert(order.end(), columns.begin(), columns.end());
  if (order.size() > 1) TRY(schedule.reorder(order));
  const Ref<Block> node = TRY(schedule.get(copy));
  const std::vector<Work> list = works(schedule.function());
  const Work& work = *find(list, node->name);
  if (walks_rows(schedule.function(), work)) {
    TRY(vectorize_innermost(schedule, context, work));
    if (parallel && constant_product(work.loops).value_or(parallel_work) >= parallel_work)
      try_parallel(schedule, around);
    return support::success();
  }
  const int64_t lanes = context.target.lanes(widest_bits(*node));
  if (const auto crossing = crossing_loop(schedule.function(), work, lanes))
    return tile_crossing(schedule, context, copy, *crossing, lanes, parallel);
  return support::success();
}

// Whether what the block reads lies side by side along that loop.
bool reads_along(const PrimFunc& function, const Work& work, size_t loop) {
  for (const Access& access : accesses(function.body))
    if (access.block == &work.block() && !access.writes && stride_of(access, *work.loops[loop]) != 1) return false;
  return true;
}

}  // namespace

Status schedule_panels(Schedule& schedule, const RuleContext& context, BlockRV copy, int64_t width, bool parallel) {
  const std::string name = TRY(schedule.get(copy))->name;
  const std::vector<Work> list = works(schedule.function());
  const Work& work = *find(list, name);
  const auto position = innermost_written(work);
  if (!position) return support::success();
  const LoopRV column = TRY(schedule.get_loops(copy)).at(*position);
  const auto columns = as_int(work.loops[*position]->extent);
  if (columns && *columns <= width) return vectorize_copy(schedule, context, copy, {column}, parallel);
  const bool is_along = reads_along(schedule.function(), work, *position);
  const std::vector<LoopRV> pieces = TRY(schedule.peel(column, width));
  if (pieces.size() > 1)
    TRY(vectorize_copy(schedule, context, TRY(schedule.get_child_blocks(pieces[1]))[0], {pieces[1]}, parallel));
  const int64_t together = is_along && columns ? side_by_side(*columns / width, 4) : 1;
  if (together == 1)
    return vectorize_copy(schedule, context, copy, {TRY(schedule.split(pieces[0], {Factor(), width}))[1]}, parallel);
  const std::vector<LoopRV> cut = TRY(schedule.split(pieces[0], {Factor(), together, width}));
  return vectorize_copy(schedule, context, copy, {cut[1], cut[2]}, parallel);
}

namespace {

// Weights that lie in plain rows, one for each term of the sum.
struct PlainRows {
  PanelAxes axes;
  int64_t terms = 0, columns = 0;
  int64_t apart = 0;         // bytes from row to row
  int64_t element = 0;       // bytes
  int64_t readers = 1;       // rows of the product that read them
  bool is_repeated = false;  // a loop around the tiles does not move them
};

// The variable of the block that is the loop's.
std::optional<Expr> variable_of(const Work& work, size_t loop) {
  for (size_t v = 0; v < work.block().iter_vars.size(); ++v)
    if (work.realize->iter_values[v] == Expr(work.loops[loop]->loop_var)) return work.block().iter_vars[v]->var;
  return std::nullopt;
}

std::optional<PlainRows> plain_rows(const PrimFunc& function, const Work& work, const Contraction& found) {
  if (found.packed || found.windows || found.updates || !found.row || found.reduce.size() != 1) return std::nullopt;
  const std::vector<Access> all = accesses(function.body);
  const auto read = std::find_if(all.begin(), all.end(), [&](const Access& access) {
    return access.block == &work.block() && !access.writes && access.buffer == found.weights;
  });
  if (read == all.end()) return std::nullopt;
  const auto moves = [&](size_t loop) { return moves_with(*read, *work.loops[loop]); };
  PlainRows result;
  std::vector<const For*> readers{work.loops[*found.row]};
  for (const size_t loop : found.batch) {
    if (is_int(work.loops[loop]->extent, 1)) continue;
    const auto variable = variable_of(work, loop);
    if (!variable) return std::nullopt;
    if (moves(loop)) {
      result.axes.around.push_back(*variable);
    } else {
      result.is_repeated = true;
      readers.push_back(work.loops[loop]);
    }
  }
  for (const size_t loop : found.between) {
    if (moves(loop)) return std::nullopt;
    readers.push_back(work.loops[loop]);
  }
  const auto term = variable_of(work, found.reduce[0]), column = variable_of(work, found.lane);
  const auto terms = as_int(work.loops[found.reduce[0]]->extent), columns = as_int(work.loops[found.lane]->extent);
  const auto count = constant_product(readers), apart = stride_of(*read, *work.loops[found.reduce[0]]);
  const int64_t bits = found.weights->dtype.storage_bits();
  if (!term || !column || !terms || !columns || !count || !apart || *apart < *columns) return std::nullopt;
  if (bits != widest_bits(work.block()) || bits % 8 != 0) return std::nullopt;
  result.axes.terms = {*term};
  result.axes.column = *column;
  result.terms = *terms;
  result.columns = *columns;
  result.element = bits / 8;
  result.apart = *apart * result.element;
  result.readers = *count;
  return result;
}

// Whether a panel of the weights as they lie is more than half of what those sets of a cache of eight ways hold in
// which its rows meet.
bool meets_itself(const PlainRows& weights, int64_t cache) {
  constexpr int64_t line = target::cache_line_bytes, ways = 8;
  if (weights.apart % line != 0) return false;
  const int64_t sets = std::max<int64_t>(cache / line / ways, 1);
  return 2 * weights.terms > sets / std::gcd(weights.apart / line, sets) * ways;
}

// Whether so many rows read the weights that copying them first takes less time than it saves. Copies of a whole batch
// come from too far away by the time they are read.
bool pays(const PlainRows& weights, bool one_by_one, const target::Target& target) {
  if (!one_by_one && !weights.axes.around.empty()) return false;
  if (weights.terms * weights.columns * weights.element <= target.cache_bytes(1, 32 << 10)) return false;
  constexpr int64_t fewest_that_meet = 24, fewest = 48;
  const bool meets = meets_itself(weights, target.cache_bytes(2, 512 << 10));
  return weights.readers >= (meets ? fewest_that_meet : fewest);
}

}  // namespace

Result<std::optional<TilePlan>> ask_for_panels(Schedule& schedule, const RuleContext& context, std::string_view rule,
                                               const Contraction& found, TilePlan plan) {
  const std::vector<Work> list = works(schedule.function());
  const Work& work = *find(list, found.block);
  const auto weights = plain_rows(schedule.function(), work, found);
  const int64_t width = plan.lanes * plan.vectors;
  if (!weights || weights->columns <= width) return std::optional<TilePlan>();
  // One after the other they stay near, if nothing is outside that reads all of them again.
  const bool one_by_one = !plan.rows_first && plan.share == 1 && !weights->is_repeated && weights->columns % width == 0;
  std::vector<int64_t> choices{0, 1};
  if (one_by_one) choices.push_back(2);
  const int64_t preferred = pays(*weights, one_by_one, context.target) ? choices.back() : 0;
  const int64_t answer = TRY(schedule.get(TRY(decide(schedule, context, rule, "panels", choices, preferred))));
  if (answer == 0) return std::optional<TilePlan>();

  const BlockRV copy = TRY(copy_into_panels(schedule, work, found.weights, weights->axes, width));
  const Ref<Block> block = TRY(schedule.get(copy));
  const auto* store = block->body.as<BufferStore>();
  if (answer == 1) {
    plan.weights = store->buffer;
    TRY(schedule_panels(schedule, context, copy, width, enough_for_threads(work, plan)));
    return std::optional(std::move(plan));
  }
  // Its instances are numbered like the elements of the panels: those of one panel can then be told from the others.
  IndexMap elements{{}, store->indices};
  for (const IterVar& iter : block->iter_vars) elements.from.push_back(iter->var);
  TRY(schedule.transform_block_layout(copy, elements));
  plan.panels = block->name;
  plan.prefetch = 0;
  return std::optional(std::move(plan));
}

Status place_panels(Schedule& schedule, const RuleContext& context, const TilePlan& plan, LoopRV panels) {
  const BlockRV copy = TRY(schedule.get_block(plan.panels));
  const int64_t count = as_int(TRY(schedule.get(panels))->extent).value_or(1);
  const Buffer buffer = TRY(schedule.get(copy))->body.as<BufferStore>()->buffer;
  int64_t bytes = buffer->dtype.storage_bits() / 8;  // of a panel
  for (size_t d = buffer->shape.size() - 2; d < buffer->shape.size(); ++d)
    bytes *= as_int(buffer->shape[d]).value_or(1);
  // Half of the second cache is left to what else passes, and threads still get even pieces.
  const target::Target& target = context.target;
  int64_t together = side_by_side(count, target.cache_bytes(2, 512 << 10) / 2 / bytes);
  while (together > 1 && count / together % target.cores != 0) together = side_by_side(count, together - 1);
  if (together > 1) panels = TRY(schedule.split(panels, {Factor(), together}))[0];
  TRY(schedule.compute_at(copy, panels));
  std::vector<LoopRV> columns = TRY(schedule.get_loops(copy));
  columns.erase(columns.begin(), columns.end() - (together > 1 ? 3 : 1));
  if (together > 1) columns.erase(columns.begin() + 1);  // …, panels, rows, columns
  return vectorize_copy(schedule, context, copy, columns, false);
}

}  // namespace lathe::schedule
