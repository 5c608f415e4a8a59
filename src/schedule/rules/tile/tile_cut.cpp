#include "schedule/rules/tile/tile_cut.h"

#include <array>

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "schedule/codes.h"
#include "schedule/rules/tile/tile_model.h"

namespace lathe::schedule {

namespace {

// The most iterations of a loop around the block, if there is a bound.
Result<std::optional<int64_t>> most_of(Schedule& schedule, BlockRV block, LoopRV loop) {
  const Ref<For> node = TRY(schedule.get(loop));
  std::vector<Ref<For>> kept;
  std::vector<const For*> around;
  for (const LoopRV& each : TRY(schedule.get_loops(block))) {
    kept.push_back(TRY(schedule.get(each)));
    if (kept.back()->id == node->id) break;
    around.push_back(kept.back().get());
  }
  return most_iterations(around, *node);
}

// A loop of unknown extent in parts of whole pieces: as many of the first size as fit, of what is left as many of the
// second, and so on to pieces of one. Where that is asked for, sizes are such that two may fit, also of the next.
Result<std::vector<Part>> parts_of_unknown(Schedule& schedule, BlockRV block, LoopRV loop,
                                           const std::vector<int64_t>& sizes, bool twice = false) {
  std::vector<Part> parts;
  for (int64_t size : sizes) {
    const auto most = twice ? TRY(most_of(schedule, block, loop)) : std::nullopt;
    if (most) size = std::min(size, *most / 2);
    if (size <= (most ? 2 : 1)) break;
    const std::vector<LoopRV> loops = TRY(schedule.peel(loop, size));
    parts.push_back({block, loops[0], size, 1});
    if (loops.size() == 1) return parts;  // it divides
    loop = loops[1];
    block = TRY(schedule.get_child_blocks(loop))[0];
  }
  parts.push_back({block, loop, 1, 1});
  return parts;
}

Result<std::vector<Part>> lane_parts(Schedule& schedule, BlockRV block, LoopRV loop, const TilePlan& plan) {
  const auto extent = as_int(TRY(schedule.get(loop))->extent);
  const int64_t width = plan.lanes * plan.vectors;
  std::vector<Part> parts;
  if (!extent) {
    // A rest of single lanes would be as many sums that wait for themselves; a quarter of a vector is enough for most.
    std::vector<int64_t> sizes{width};
    if (plan.vectors > 1) sizes.push_back(plan.lanes);
    if (plan.lanes >= 8) sizes.push_back(plan.lanes / 4);
    parts = TRY(parts_of_unknown(schedule, block, loop, sizes));
    for (Part& part : parts)
      if (part.size == width) part = {part.block, part.loop, plan.lanes, plan.vectors};
    return parts;
  }
  const int64_t tiles = *extent / width, vectors = *extent % width / plan.lanes, rest = *extent % plan.lanes;
  std::vector<Factor> extents;
  if (tiles) extents.emplace_back(tiles * width);
  if (vectors) extents.emplace_back(vectors * plan.lanes);
  if (rest) extents.emplace_back(rest);
  if (extents.size() == 1) {
    const bool whole = tiles > 0;
    return std::vector<Part>{
        {block, loop, whole || vectors ? plan.lanes : rest, whole ? plan.vectors : std::max<int64_t>(vectors, 1)}};
  }
  const std::vector<LoopRV> loops = TRY(schedule.loop_partition(loop, extents));
  for (size_t i = 0; i < loops.size(); ++i) {
    const bool is_tiles = tiles && i == 0, is_rest = rest && i + 1 == loops.size();
    const BlockRV own = i == 0 ? block : TRY(schedule.get_child_blocks(loops[i]))[0];
    parts.push_back({own, loops[i], is_rest ? rest : plan.lanes, is_tiles ? plan.vectors : is_rest ? 1 : vectors});
  }
  return parts;
}

Result<std::vector<Part>> row_parts(Schedule& schedule, BlockRV block, LoopRV loop, int64_t rows, int64_t rest) {
  const auto extent = as_int(TRY(schedule.get(loop))->extent);
  std::vector<Part> parts;
  // A row by itself reads all weights for one sum a lane: of the rest, few rows are single.
  if (!extent) {
    // Of the last of some blocks, which is shorter, proofs lose that what fits once at most does.
    if (TRY(most_of(schedule, block, loop)))
      return parts_of_unknown(schedule, block, loop, {rows, rows >= 8 ? 4 : 2}, true);
    return parts_of_unknown(schedule, block, loop, {rows, rest, rest / 2});
  }
  if (*extent % rows == 0) return std::vector<Part>{{block, loop, rows, 1}};
  const int64_t tiles = (*extent + rows - 1) / rows;
  const int64_t small = *extent / tiles, large = *extent - tiles * small;  // `large` tiles have a row more
  if (large == 0) return std::vector<Part>{{block, loop, small, 1}};
  const std::vector<LoopRV> loops = TRY(schedule.loop_partition(loop, {Factor(large * (small + 1)), Factor()}));
  parts.push_back({block, loops[0], small + 1, 1});
  parts.push_back({TRY(schedule.get_child_blocks(loops[1]))[0], loops[1], small, 1});
  return parts;
}

// Rows whose windows touch zeros stand alone: the first, then whole tiles, then single ones to the end.
Result<std::vector<Part>> parts_with_ends_alone(Schedule& schedule, BlockRV block, LoopRV loop, const TilePlan& plan) {
  const auto extent = as_int(TRY(schedule.get(loop))->extent);
  const int64_t inside = extent ? *extent - plan.first_alone - plan.last_alone : 0;
  if (inside < plan.tall) return row_parts(schedule, block, loop, plan.tall, plan.tall / 2);
  const std::array<std::pair<int64_t, int64_t>, 3> wanted{
      {{plan.first_alone, 1}, {inside / plan.tall * plan.tall, plan.tall}, {inside % plan.tall + plan.last_alone, 1}}};
  std::vector<Factor> extents;
  std::vector<int64_t> sizes;
  for (const auto& [rows, size] : wanted)
    if (rows > 0) extents.emplace_back(rows), sizes.push_back(size);
  if (extents.size() == 1) return std::vector<Part>{{block, loop, sizes[0], 1}};
  const std::vector<LoopRV> loops = TRY(schedule.loop_partition(loop, extents));
  std::vector<Part> parts;
  for (size_t i = 0; i < loops.size(); ++i)
    parts.push_back({i == 0 ? block : TRY(schedule.get_child_blocks(loops[i]))[0], loops[i], sizes[i], 1});
  return parts;
}

}  // namespace

Result<std::vector<Part>> axis_parts(Schedule& schedule, BlockRV block, LoopRV loop, const TileAxis& axis,
                                     const TilePlan& plan) {
  if (axis.kind == TileAxis::lanes) return lane_parts(schedule, block, loop, plan);
  if (axis.kind == TileAxis::tall && plan.has_rows_alone()) return parts_with_ends_alone(schedule, block, loop, plan);
  const bool has_rest = axis.kind == TileAxis::rows && plan.rest > 0;
  return row_parts(schedule, block, loop, axis.size(plan), has_rest ? plan.rest : axis.size(plan) / 2);
}

namespace {

// Whether the value grows by one with the variable.
bool walks(const Expr& value, const Var& variable) {
  const Linear sum = linear(value);
  return std::any_of(sum.terms.begin(), sum.terms.end(),
                     [&](const Linear::Term& term) { return term.atom == Expr(variable) && term.coefficient == 1; });
}

}  // namespace

size_t dimension_of(const PrimFunc& function, const std::string& block, const For& loop) {
  const std::vector<Work> list = works(function);
  const Work& work = *find(list, block);
  const auto& indices = work.block().body.as<BufferStore>()->indices;
  for (size_t i = 0; i < work.realize->iter_values.size(); ++i)
    if (walks(work.realize->iter_values[i], loop.loop_var))
      for (size_t d = 0; d < indices.size(); ++d)
        if (walks(indices[d], work.block().iter_vars[i]->var)) return d;
  return indices.size();
}

namespace {

// The position among the loops of `consumer` of the one that walks that dimension of `buffer`, from its beginning: the
// index may be reckoned from where the consumer writes, as in what lies inside a padding.
std::optional<size_t> loop_along(const PrimFunc& function, const std::string& consumer, const Buffer& buffer,
                                 size_t dimension) {
  const std::vector<Work> list = works(function);
  const Work& work = *find(list, consumer);
  Expr index;
  post_order(work.block().body, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    if (load && load->buffer == buffer && dimension < load->indices.size()) index = load->indices[dimension];
  });
  if (!index) return std::nullopt;
  VarMap values;
  for (size_t i = 0; i < work.block().iter_vars.size(); ++i)
    values[work.block().iter_vars[i]->var] = work.realize->iter_values[i];
  arith::Analyzer analyzer;
  index = analyzer.simplify(substitute(index, values));
  for (size_t l = 0; l < work.loops.size(); ++l)
    if (index == Expr(work.loops[l]->loop_var)) return l;
  return std::nullopt;
}

// The blocks that `block` falls into where the loops of the axes from number `k` on, outermost in the nest, are cut.
Result<std::vector<BlockRV>> cut_along(Schedule& schedule, const TilePlan& plan, BlockRV block,
                                       const std::vector<TileAxis>& axes, size_t k) {
  if (k == axes.size()) return std::vector<BlockRV>{block};
  std::vector<BlockRV> all;
  const LoopRV loop = TRY(schedule.get_loops(block)).at(k);
  for (const Part& part : TRY(axis_parts(schedule, block, loop, axes[k], plan))) {
    const std::vector<BlockRV> own = TRY(cut_along(schedule, plan, part.block, axes, k + 1));
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace

Result<std::vector<BlockRV>> cut_epilogue(Schedule& schedule, const TilePlan& plan, const std::string& epilogue,
                                          const Buffer& buffer, const std::vector<TileAxis>& axes) {
  const BlockRV block = TRY(schedule.get_block(epilogue));
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block)),
                            nest = TRY(schedule.get_loops(TRY(schedule.get_block(plan.block))));
  std::vector<bool> taken(loops.size(), false);
  std::vector<LoopRV> order, around;
  for (const TileAxis& axis : axes) {
    const auto position = loop_along(schedule.function(), epilogue, buffer, axis.dimension);
    if (!position || taken.at(*position))
      return refuse(codes::not_inlinable, fmt::format("block '{}' does not walk what it reads by loops", epilogue));
    taken[*position] = true;
    order.push_back(loops[*position]);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    // Of a dimension that several loops of the nest make up (groups, and the channels of one) the axis is the
    // innermost.
    const auto all = as_int(TRY(schedule.get(order[i]))->extent),
               own = as_int(TRY(schedule.get(nest.at(axes[i].position)))->extent);
    if (!all || !own || *all == *own || *own == 0 || *all % *own != 0) continue;
    const std::vector<LoopRV> cut = TRY(schedule.split(order[i], {Factor(), Factor(*own)}));
    around.push_back(cut[0]);
    order[i] = cut[1];
  }
  order.insert(order.end(), around.begin(), around.end());
  for (size_t l = 0; l < loops.size(); ++l)
    if (!taken[l]) order.push_back(loops[l]);
  if (order.size() > 1) TRY(schedule.reorder(order));
  return cut_along(schedule, plan, block, axes, 0);
}

}  // namespace lathe::schedule
