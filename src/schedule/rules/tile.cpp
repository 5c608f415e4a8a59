#include "schedule/rules/tile.h"

#include "schedule/analysis/access.h"
#include "schedule/codes.h"
#include "schedule/rules/tile_cut.h"
#include "schedule/rules/tile_registers.h"

namespace lathe::schedule {

int64_t largest_divisor(int64_t extent, int64_t limit) {
  for (int64_t d = std::min(extent, limit); d > 1; --d)
    if (extent % d == 0) return d;
  return 1;
}

namespace {

// Runs the loops in parallel, as one where they are several; leaves them as they are where that is refused.
void try_parallel(Schedule& schedule, const std::vector<LoopRV>& loops) {
  if (loops.empty()) return;
  Schedule attempt = schedule;
  const Result<LoopRV> fused = loops.size() > 1 ? attempt.fuse(loops) : Result<LoopRV>(loops[0]);
  if (fused.ok() && attempt.parallel(*fused)) schedule = std::move(attempt);
}

// The nest of a reduction while it is cut into tiles.
class TileNest {
 public:
  TileNest(Schedule& schedule, const TilePlan& plan, const std::string& epilogue)
      : schedule_(schedule), plan_(plan), epilogue_(epilogue) {}

  Status run() {
    const BlockRV block = TRY(schedule_.get_block(plan_.block));
    TRY(look(block));
    TRY(put_in_order());
    // An epilogue that the plan divides exactly takes the tile straight from its registers; another one is cut first.
    if (!epilogue_.empty() && !exact_)
      behind_ = TRY(cut_epilogue(schedule_, plan_, epilogue_, written_, lane_dimension_, row_dimension_));
    const std::vector<Part> lanes = TRY(lane_parts(schedule_, block, lane_, plan_));
    std::vector<BlockRV> blocks;
    for (size_t l = 0; l < lanes.size(); ++l) blocks.push_back(TRY(tile_lanes(lanes[l], l)));
    return share_among_threads(blocks);
  }

 private:
  // Notes what the nest looks like before anything moves.
  Status look(BlockRV block) {
    loops_ = TRY(schedule_.get_loops(block));
    const Ref<Block> node = TRY(schedule_.get(block));
    const auto* store = node->body.as<BufferStore>();
    if (!store) return refuse(codes::not_inlinable, fmt::format("{} is not one store", name_of(*node)));
    written_ = store->buffer;
    rank_ = store->indices.size();
    std::vector<Ref<For>> kept;
    std::vector<const For*> nodes;
    for (const LoopRV& loop : loops_) nodes.push_back(kept.emplace_back(TRY(schedule_.get(loop))).get());
    const auto total = constant_product({nodes.begin() + static_cast<ptrdiff_t>(plan_.outer), nodes.end()});
    enough_ = !total || *total >= 8 * parallel_work;
    const auto width = as_int(nodes.at(plan_.lane)->extent);
    const auto height = plan_.row ? as_int(nodes.at(*plan_.row)->extent) : std::optional<int64_t>(1);
    exact_ = width && height && *height % plan_.rows == 0 && *width % (plan_.lanes * plan_.vectors) == 0;
    lane_dimension_ = dimension_of(schedule_.function(), plan_.block, *nodes[plan_.lane]);
    row_dimension_ = plan_.row ? dimension_of(schedule_.function(), plan_.block, *nodes[*plan_.row]) : rank_;
    return support::success();
  }

  // Batch, lanes, what runs between, rows, sums.
  Status put_in_order() {
    lane_ = loops_[plan_.lane];
    std::vector<size_t> order = plan_.batch;
    order.push_back(plan_.lane);
    order.insert(order.end(), plan_.between.begin(), plan_.between.end());
    if (plan_.row) order.push_back(*plan_.row);
    order.insert(order.end(), plan_.reduce.begin(), plan_.reduce.end());
    std::vector<LoopRV> loops;
    for (const size_t position : order) loops.push_back(loops_.at(position));
    if (loops.size() > 1) TRY(schedule_.reorder(loops));
    return support::success();
  }

  // One part of the lanes, cut into vectors, and its rows into tiles. Gives the block of its first tile.
  Result<BlockRV> tile_lanes(const Part& lane, size_t number) {
    const std::vector<LoopRV> own = TRY(schedule_.get_loops(lane.block));
    const size_t start = own.size() - (loops_.size() - plan_.outer - plan_.batch.size());
    const std::vector<LoopRV> below(own.begin() + static_cast<ptrdiff_t>(start) + 1, own.end());
    const std::vector<LoopRV> cut =
        TRY(schedule_.split(own[start], {Factor(), Factor(lane.vectors), Factor(lane.size)}));
    std::vector<LoopRV> order = below;
    order.insert(order.end(), {cut[1], cut[2]});
    TRY(schedule_.reorder(order));
    std::vector<Part> rows{{lane.block, cut[0], 0, 1}}, rows_behind;
    if (plan_.row) rows = TRY(row_parts(schedule_, lane.block, below[plan_.between.size()], plan_));
    if (behind_) {
      const BlockRV block = behind_->lanes.at(number).block;
      rows_behind.push_back({block, cut[0], 0, 1});
      if (behind_->row)
        rows_behind = TRY(row_parts(schedule_, block, TRY(schedule_.get_loops(block)).at(*behind_->row), plan_));
    }
    std::vector<int64_t> tiles;
    for (const Part& part : rows)
      tiles.push_back(plan_.row ? as_int(TRY(schedule_.get(part.loop))->extent).value_or(0) / part.size : 1);
    std::vector<BlockRV> summing;
    for (size_t r = 0; r < rows.size(); ++r)
      summing.push_back(
          TRY(tile_rows(rows[r], lane.size, behind_ ? std::optional(rows_behind.at(r).block) : std::nullopt)));
    if (plan_.weights && plan_.prefetch) TRY(ask_ahead(cut[0], tiles, summing));
    return rows[0].block;
  }

  // While one cut of the lanes is computed, the next one's weights come nearer: a share with each step of the innermost
  // sums, the parts of the rows in proportion to their tiles. Weights that are no one piece of memory are left alone.
  Status ask_ahead(LoopRV lane, const std::vector<int64_t>& tiles, const std::vector<BlockRV>& summing) {
    if (as_int(TRY(schedule_.get(lane))->extent).value_or(0) < 2) return support::success();
    const int64_t all = std::accumulate(tiles.begin(), tiles.end(), int64_t{0});
    Schedule attempt = schedule_;
    int64_t done = 0;
    for (size_t r = 0; r < tiles.size(); ++r) {
      const Ref<Block> block = TRY(attempt.get(summing[r]));
      std::vector<Buffer> read = buffers_read(block->body);
      for (const Buffer& own : buffers_written(block->body)) std::erase(read, own);
      const auto weights = std::find(read.begin(), read.end(), plan_.weights);
      std::optional<LoopRV> step;
      for (const LoopRV& loop : TRY(attempt.get_loops(summing[r])))
        if (TRY(attempt.get(loop))->kind == ForKind::serial) step = loop;
      if (weights == read.end() || !step || tiles[r] == 0) return support::success();
      const Prefetch share{.begin = done, .end = done + tiles[r], .of = all};
      done += tiles[r];
      if (!attempt.prefetch(summing[r], weights - read.begin(), lane, *step, share)) return support::success();
      if (plan_.prefetch > 1 && !attempt.prefetch(summing[r], weights - read.begin(), *step, *step, {.level = 1}))
        return support::success();
    }
    schedule_ = std::move(attempt);
    return support::success();
  }

  // The tiles of one part: sums in registers, and the block that takes them out (`behind` where the epilogue was cut).
  // Gives the block that sums.
  Result<BlockRV> tile_rows(const Part& row, int64_t lanes, std::optional<BlockRV> behind) {
    // … row, sums…, vectors, lanes
    const std::vector<LoopRV> now = TRY(schedule_.get_loops(row.block));
    const size_t first_sum = now.size() - 2 - plan_.reduce.size();
    const LoopRV vectors = now[now.size() - 2], lane = now.back();
    std::vector<LoopRV> sums(now.begin() + static_cast<ptrdiff_t>(first_sum), now.end() - 2);
    LoopRV tile = now[first_sum - 1];
    std::optional<LoopRV> rows;
    if (plan_.row) {
      const std::vector<LoopRV> cut = TRY(schedule_.split(tile, {Factor(), Factor(row.size)}));
      tile = cut[0];
      rows = cut[1];
      std::vector<LoopRV> order = sums;
      order.insert(order.end(), {cut[1], vectors, lane});
      TRY(schedule_.reorder(order));
    }
    const std::optional<BlockRV> parts = TRY(sum_in_parts(schedule_, row.block, sums, plan_.chain));
    const BlockRV out = TRY(take_out(row.block, parts, tile, behind));
    if (parts) {
      TRY(tile_of_parts(schedule_, row.block, *parts, tile, lanes, plan_.steps));
    } else {
      TRY(schedule_.vectorize(lane));
      TRY(schedule_.unroll(vectors));
      if (rows) TRY(schedule_.unroll(*rows));
      TRY(write_out_steps(schedule_, sums, plan_.steps));
      if (!sums.empty()) TRY(schedule_.decompose_reduction(row.block, sums[0]));
    }
    TRY(finish_tile(schedule_, out, tile, rank_ - 1, lanes));
    return parts ? *parts : row.block;
  }

  // The tile's own memory, and the block that takes it out of there, placed under `tile`.
  Result<BlockRV> take_out(BlockRV block, std::optional<BlockRV> parts, LoopRV tile, std::optional<BlockRV> behind) {
    const char* scope = parts ? "local" : "register";
    BlockRV out = block;
    if (exact_ && !epilogue_.empty()) {
      out = TRY(schedule_.get_block(epilogue_));
      TRY(schedule_.set_scope(block, 0, scope));
    } else {
      out = TRY(schedule_.cache_write(block, 0, scope));
    }
    TRY(put_lanes_last(block, parts));
    TRY(schedule_.reverse_compute_at(out, tile));
    if (!behind) return out;
    TRY(schedule_.reverse_compute_at(*behind, tile));
    TRY(schedule_.compute_inline(out));
    return *behind;
  }

  // Lanes lie next to one another in the tile's memory, whatever the output's layout.
  Status put_lanes_last(BlockRV block, std::optional<BlockRV> parts) {
    if (lane_dimension_ + 1 >= rank_) return support::success();
    std::vector<int64_t> axes;
    for (size_t d = 0; d < rank_; ++d)
      if (d != lane_dimension_) axes.push_back(static_cast<int64_t>(d));
    axes.push_back(static_cast<int64_t>(lane_dimension_));
    TRY(schedule_.transform_layout(block, {.writes = true}, permutation(axes)));
    if (!parts) return support::success();
    for (int64_t& axis : axes) ++axis;
    axes.insert(axes.begin(), 0);
    return schedule_.transform_layout(*parts, {.writes = true}, permutation(axes));
  }

  // Threads share the outer loops: all of them where there is one part, those of each part otherwise.
  Status share_among_threads(const std::vector<BlockRV>& parts) {
    if (!enough_) return support::success();
    for (const BlockRV& part : parts) {
      const std::vector<LoopRV> outer = TRY(schedule_.get_loops(part));
      const size_t first = plan_.outer + (parts.size() == 1 ? 0 : plan_.batch.size());
      const size_t last = plan_.outer + plan_.batch.size() + 1 + plan_.between.size();
      try_parallel(schedule_,
                   {outer.begin() + static_cast<ptrdiff_t>(first), outer.begin() + static_cast<ptrdiff_t>(last)});
    }
    return support::success();
  }

  Schedule& schedule_;
  const TilePlan& plan_;
  const std::string& epilogue_;
  std::vector<LoopRV> loops_;  // as they were
  LoopRV lane_;
  Buffer written_;
  size_t rank_ = 0, lane_dimension_ = 0, row_dimension_ = 0;
  bool exact_ = false;   // the tile divides rows and lanes
  bool enough_ = false;  // work for threads
  std::optional<CutEpilogue> behind_;
};

}  // namespace

Status register_tile(Schedule& schedule, const RuleContext& context, const TilePlan& plan,
                     const std::string& epilogue) {
  if (epilogue.empty()) return TileNest(schedule, plan, epilogue).run();
  Schedule attempt = schedule;
  if (TileNest(attempt, plan, epilogue).run()) {
    schedule = std::move(attempt);
    return support::success();
  }
  const std::string none;
  TRY(TileNest(schedule, plan, none).run());
  return vectorize_elementwise(schedule, context, TRY(schedule.get_block(epilogue)));
}

}  // namespace lathe::schedule
