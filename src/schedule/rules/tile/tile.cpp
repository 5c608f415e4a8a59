#include "schedule/rules/tile/tile.h"

#include "schedule/analysis/access.h"
#include "schedule/codes.h"
#include "schedule/rules/nest/rows.h"
#include "schedule/rules/tile/apart.h"
#include "schedule/rules/tile/panels.h"
#include "schedule/rules/tile/tile_cut.h"
#include "schedule/rules/tile/tile_registers.h"

namespace lathe::schedule {

int64_t largest_divisor(int64_t extent, int64_t limit) {
  for (int64_t d = std::min(extent, limit); d > 1; --d)
    if (extent % d == 0) return d;
  return 1;
}

namespace {

int64_t vectors_in_a_line(int64_t vector_bits) {
  constexpr int64_t line = 8 * target::cache_line_bytes;
  return std::max<int64_t>(line / std::max<int64_t>(vector_bits, 8), 1);
}

}  // namespace

int64_t most_down_columns(int64_t vector_bits, const target::Target& target) {
  constexpr int64_t lines = 4;
  const int64_t most = std::min<int64_t>(lines * vectors_in_a_line(vector_bits), target.vector_registers / 2);
  return std::max(most, least_down_columns);
}

int64_t vectors_down_columns(int64_t count, int64_t vector_bits, const target::Target& target, int64_t fit) {
  const int64_t most = std::min(most_down_columns(vector_bits, target), fit), line = vectors_in_a_line(vector_bits);
  for (int64_t vectors = most / line * line; vectors > least_down_columns; vectors -= line)
    if (count > 0 && count % vectors == 0) return vectors;
  return largest_divisor(std::max<int64_t>(count, 1), std::min(most, least_down_columns));
}

bool enough_for_threads(std::optional<int64_t> terms, std::optional<int64_t> elements, const TilePlan& plan) {
  return !terms || *terms >= (plan.window ? 2 : 8) * parallel_work || elements >= parallel_work;
}

bool enough_for_threads(const Work& work, const TilePlan& plan) {
  return enough_for_threads(constant_product(work.loops), constant_product(loops_of(work, IterType::spatial)), plan);
}

namespace {

// A tile's worth of the nest: the block that sums, and how many tiles of this kind run for one cut of the lanes.
struct Leaf {
  BlockRV block;
  int64_t tiles = 1;
};

// The nest of a reduction while it is cut into tiles.
class TileNest {
 public:
  TileNest(Schedule& schedule, const TilePlan& plan, const std::string& epilogue, const RuleContext& context)
      : schedule_(schedule), plan_(plan), epilogue_(epilogue), context_(context) {}

  Status run() {
    const BlockRV block = TRY(schedule_.get_block(plan_.block));
    TRY(put_in_order(block));
    TRY(look(block));
    // An epilogue that the plan divides exactly takes the tile straight from its registers; another one is cut first.
    if (!epilogue_.empty() && !exact_) behind_ = TRY(cut_epilogue(schedule_, plan_, epilogue_, written_, axes_));
    parts_.resize(axes_.size(), 1);
    TRY(cut(block, 0));
    if (!plan_.panels.empty())
      TRY(place_panels(schedule_, context_, plan_, TRY(schedule_.get_loops(firsts_.at(0))).at(axes_[0].position)));
    return share_among_threads();
  }

 private:
  // Batch, the pieces for threads, lanes, what runs between and rows (or these first and the lanes last), then the
  // sums.
  Status put_in_order(BlockRV block) {
    std::vector<LoopRV> loops = TRY(schedule_.get_loops(block));
    std::vector<LoopRV> ordered;
    const auto add = [&](size_t loop) { ordered.push_back(loops.at(loop)); };
    const auto add_axis = [&](TileAxis::Kind kind, size_t loop) -> Status {
      const Ref<For> node = TRY(schedule_.get(loops.at(loop)));
      axes_.push_back({kind, plan_.outer + ordered.size(), dimension_of(schedule_.function(), plan_.block, *node)});
      add(loop);
      return support::success();
    };
    for (const size_t loop : plan_.batch) add(loop);
    const size_t pieces = ordered.size() - plan_.groups_inside;
    if (!plan_.rows_first) TRY(add_axis(TileAxis::lanes, plan_.lane));
    for (const size_t loop : plan_.between)
      if (plan_.tall > 1 && loop == plan_.between.back())
        TRY(add_axis(TileAxis::tall, loop));
      else
        add(loop);
    if (plan_.row) TRY(add_axis(TileAxis::rows, *plan_.row));
    if (plan_.rows_first) TRY(add_axis(TileAxis::lanes, plan_.lane));
    first_sum_ = plan_.outer + ordered.size();
    cut_bytes_ = plan_.lanes * plan_.vectors;
    if (plan_.weights) cut_bytes_ *= plan_.weights->dtype.storage_bits() / 8;
    for (const size_t loop : plan_.reduce) {
      cut_bytes_ *= as_int(TRY(schedule_.get(loops.at(loop)))->extent).value_or(1);
      add(loop);
    }
    if (plan_.share > 1) TRY(set_pieces_apart(ordered, pieces, loops.at(*plan_.shared)));
    if (ordered.size() > 1) TRY(schedule_.reorder(ordered));
    return support::success();
  }

  // Cuts `loop` into the pieces that threads take, whose loop comes at `position` of the order.
  Status set_pieces_apart(std::vector<LoopRV>& ordered, size_t position, LoopRV loop) {
    const auto place = std::find(ordered.begin(), ordered.end(), loop);
    const std::vector<LoopRV> cut = TRY(schedule_.split(loop, {Factor(plan_.share), Factor()}));
    *place = cut[1];
    ordered.insert(ordered.begin() + static_cast<ptrdiff_t>(position), cut[0]);
    for (TileAxis& axis : axes_) ++axis.position;
    ++first_sum_;
    return support::success();
  }

  // Notes what the nest looks like before it is cut.
  Status look(BlockRV block) {
    const Ref<Block> node = TRY(schedule_.get(block));
    const auto* store = node->body.as<BufferStore>();
    if (!store) return refuse(codes::not_inlinable, fmt::format("{} is not one store", name_of(*node)));
    written_ = store->buffer;
    rank_ = store->indices.size();
    std::vector<Ref<For>> kept;
    std::vector<const For*> nodes;
    for (const LoopRV& loop : TRY(schedule_.get_loops(block)))
      nodes.push_back(kept.emplace_back(TRY(schedule_.get(loop))).get());
    const auto begin = nodes.begin() + static_cast<ptrdiff_t>(plan_.outer);
    const auto elements = constant_product({begin, nodes.begin() + static_cast<ptrdiff_t>(first_sum_)});
    enough_ = !plan_.within_thread && enough_for_threads(constant_product({begin, nodes.end()}), elements, plan_);
    exact_ = true;
    for (const TileAxis& axis : axes_) {
      const For& loop = *nodes.at(axis.position);
      const auto extent = as_int(loop.extent);
      const bool alone = axis.kind == TileAxis::tall && plan_.has_rows_alone();
      exact_ = exact_ && extent && *extent % axis.size(plan_) == 0 && !alone;
      if (axis.kind == TileAxis::lanes) lane_dimension_ = axis.dimension;
    }
    return support::success();
  }

  // Cuts the loops of the axes from number `k` on: in parts whose tiles divide them, each part into tiles, what is
  // inside a tile innermost. Gives the tiles that this comes to.
  Result<std::vector<Leaf>> cut(BlockRV block, size_t k) {
    if (k == axes_.size()) return std::vector<Leaf>{{TRY(finish(block)), 1}};
    const TileAxis& axis = axes_[k];
    const LoopRV loop = TRY(schedule_.get_loops(block)).at(axis.position);
    const std::vector<Part> parts = TRY(axis_parts(schedule_, block, loop, axis, plan_));
    parts_[k] = std::max(parts_[k], parts.size());
    std::vector<Leaf> all;
    for (const Part& part : parts) {
      const auto extent = as_int(TRY(schedule_.get(part.loop))->extent);
      std::vector<LoopRV> order = TRY(schedule_.get_loops(part.block));
      order.erase(order.begin(), order.begin() + static_cast<ptrdiff_t>(axis.position) + 1);
      std::vector<Factor> factors{Factor(), Factor(part.size)};
      if (axis.kind == TileAxis::lanes) factors.insert(factors.begin() + 1, Factor(part.vectors));
      const std::vector<LoopRV> pieces = TRY(schedule_.split(part.loop, factors));
      if (k == 0) seconds_.emplace_back();
      if (k == 1) seconds_.back().push_back(pieces[0]);
      order.insert(order.end(), pieces.begin() + 1, pieces.end());
      if (order.size() > 1) TRY(schedule_.reorder(order));
      std::vector<Leaf> own = TRY(cut(part.block, k + 1));
      if (axis.kind == TileAxis::rows && plan_.first) TRY(ask_for_rows(pieces[0], own));
      if (axis.kind == TileAxis::lanes)
        TRY(ask_ahead(pieces[0], own));
      else
        // Of a number that is not known the whole tiles count, as one: the last few rows ask for nothing.
        for (Leaf& leaf : own) leaf.tiles *= extent ? *extent / part.size : &part == &parts.front();
      if (k == 0) firsts_.push_back(own.at(0).block);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

  // The loops of a tile's sums, outermost first; those that are written out are none.
  Result<std::vector<LoopRV>> serial_sums(Schedule& schedule, BlockRV block) const {
    std::vector<LoopRV> serial;
    const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
    for (size_t i = first_sum_; i < loops.size(); ++i)
      if (TRY(schedule.get(loops[i]))->kind == ForKind::serial) serial.push_back(loops[i]);
    return serial;
  }

  // The innermost of a tile's sums whose iterations ask for each line of the next cut not much more than once; `bytes`
  // of it are asked for inside `lane`. Further out many are asked for at once, and what the tile reads waits behind
  // them; to ask for a line a few times takes a load each.
  Result<LoopRV> asking_step(Schedule& schedule, BlockRV block, LoopRV lane, const std::vector<LoopRV>& sums,
                             int64_t bytes) const {
    constexpr int64_t line = target::cache_line_bytes, often = 4;  // times that a line may be asked for
    const auto turns = [&](const LoopRV& loop) -> Result<int64_t> {
      return std::max<int64_t>(as_int(TRY(schedule.get(loop))->extent).value_or(1), 1);
    };
    const Id lane_id = TRY(schedule.get(lane))->id, last = TRY(schedule.get(sums.back()))->id;
    int64_t iterations = 1;
    bool inside = false;
    for (const LoopRV& loop : TRY(schedule.get_loops(block))) {
      const Id id = TRY(schedule.get(loop))->id;
      if (inside) iterations *= TRY(turns(loop));
      inside = (inside || id == lane_id) && id != last;
    }
    size_t at = sums.size() - 1;
    for (; at > 0 && often * bytes < line * iterations; --at) iterations /= TRY(turns(sums[at]));
    return sums[at];
  }

  // How many tiles share what is asked for where their number is not known: as many as images have at least in all but
  // small ones, fewer of products, whose rows may be few.
  Result<int64_t> turns_of(BlockRV block, LoopRV lane) const {
    const Id lane_id = TRY(schedule_.get(lane))->id;
    size_t open = 0;
    bool inside = false;
    for (const LoopRV& loop : TRY(schedule_.get_loops(block))) {
      const Ref<For> node = TRY(schedule_.get(loop));
      if (inside && !as_int(node->extent)) ++open;
      inside = inside || node->id == lane_id;
    }
    return open == 0 ? 1 : open == 1 ? 4 : 8;
  }

  // While one cut of the lanes is computed, the next one's weights come nearer: a share with each step of the sums, the
  // parts of the rows in proportion to their tiles. Where the rows are outermost the weights are near
  // already, and only the next step's are asked for. Weights that are no one piece of memory are left alone.
  Status ask_ahead(LoopRV lane, const std::vector<Leaf>& leaves) {
    if (!plan_.weights || plan_.prefetch == 0) return support::success();
    if (as_int(TRY(schedule_.get(lane))->extent).value_or(0) < 2 && !plan_.rows_first) return support::success();
    int64_t all = 0, done = 0;
    for (const Leaf& leaf : leaves) all += leaf.tiles;
    const int64_t turns = TRY(turns_of(leaves[0].block, lane));
    Schedule attempt = schedule_;
    for (const Leaf& leaf : leaves) {
      const Ref<Block> block = TRY(attempt.get(leaf.block));
      const std::vector<Buffer> read = operands_of(*block);
      const auto weights = std::find(read.begin(), read.end(), plan_.weights);
      const std::vector<LoopRV> steps = TRY(serial_sums(attempt, leaf.block));
      if (weights == read.end() || steps.empty()) return support::success();
      if (leaf.tiles == 0) continue;
      const int64_t number = weights - read.begin();
      const Prefetch share{.begin = done, .end = done + leaf.tiles, .of = all, .turns = turns};
      done += leaf.tiles;
      if (!plan_.rows_first) {
        const LoopRV at = TRY(asking_step(attempt, leaf.block, lane, steps, cut_bytes_ * leaf.tiles / all / turns));
        if (!attempt.prefetch(leaf.block, number, lane, at, share)) return support::success();
      }
      // Where a tile is as wide as two panels, what they have for a step is not one piece: refused, and left alone.
      if (plan_.prefetch > 1)
        static_cast<void>(attempt.prefetch(leaf.block, number, steps.back(), steps.back(), {.level = 1}));
    }
    schedule_ = std::move(attempt);
    return support::success();
  }

  // While a tile of rows is computed, each step asks for what the next tile reads in it.
  Status ask_for_rows(LoopRV tiles, const std::vector<Leaf>& leaves) {
    if (is_int(TRY(schedule_.get(tiles))->extent, 1)) return support::success();
    for (const Leaf& leaf : leaves) {
      const std::vector<Buffer> read = operands_of(*TRY(schedule_.get(leaf.block)));
      const auto first = std::find(read.begin(), read.end(), plan_.first);
      const std::vector<LoopRV> steps = TRY(serial_sums(schedule_, leaf.block));
      if (first == read.end() || steps.empty()) continue;
      Schedule attempt = schedule_;
      if (attempt.prefetch(leaf.block, first - read.begin(), tiles, steps.back(), {.in_turn = true}))
        schedule_ = std::move(attempt);
    }
    return support::success();
  }

  // One kind of tile, its loops cut: sums in registers, and the block that takes them out. Gives the block that sums.
  Result<BlockRV> finish(BlockRV block) {
    // …, sums, the insides of the axes in the order of their cutting
    const std::vector<LoopRV> now = TRY(schedule_.get_loops(block));
    LoopRV tile = now.at(first_sum_ - 1);
    auto inside = now.begin() + static_cast<ptrdiff_t>(first_sum_);
    std::vector<LoopRV> sums(inside, inside + static_cast<ptrdiff_t>(plan_.reduce.size()));
    inside += static_cast<ptrdiff_t>(plan_.reduce.size());
    std::vector<LoopRV> rows, lanes;
    for (const TileAxis& axis : axes_)
      for (size_t i = 0; i < (axis.kind == TileAxis::lanes ? 2 : 1); ++i)
        (axis.kind == TileAxis::lanes ? lanes : rows).push_back(*inside++);
    std::vector<LoopRV> order = sums;
    // Rows of windows go one by one, written out: what two of them share stays in registers.
    const bool one_by_one = plan_.window && rows.size() > 1;
    if (one_by_one) {
      tile = rows.front();
      order.insert(order.begin(), tile);
      rows.erase(rows.begin());
    }
    const auto by_rows = order.insert(order.end(), lanes.begin(), lanes.end());
    order.insert(plan_.waits_by_rows() ? by_rows + 1 : by_rows, rows.begin(), rows.end());
    TRY(schedule_.reorder(order));
    const int64_t width = as_int(TRY(schedule_.get(lanes[1]))->extent).value_or(plan_.lanes);
    std::optional<SumParts> in_parts;
    if (!plan_.updates) in_parts = TRY(sum_in_parts(schedule_, block, sums, plan_.chain));
    const std::optional<BlockRV> parts = in_parts ? std::optional(in_parts->block) : std::nullopt;
    const BlockRV out = TRY(plan_.updates ? take_in_and_out(block, tile, width) : take_out(block, parts, tile));
    BlockRV multiplies = block;
    if (parts) {
      multiplies = TRY(tile_of_parts(schedule_, block, *in_parts, tile, width, plan_));
    } else if (const auto apart = TRY(sum_side_by_side(schedule_, block, tile, width, plan_))) {
      multiplies = *apart;
    } else {
      TRY(schedule_.vectorize(lanes[1]));
      TRY(schedule_.unroll(lanes[0]));
      for (const LoopRV& row : rows) TRY(schedule_.unroll(row));
      if (!plan_.window) TRY(write_out_steps(schedule_, sums, plan_));
      if (!sums.empty() && !plan_.updates) TRY(schedule_.decompose_reduction(block, sums[0]));
      if (plan_.window)
        for (const LoopRV& sum : sums) TRY(schedule_.unroll(sum));
      else if (plan_.own_bodies)
        TRY(schedule_.unroll(sums[*plan_.own_bodies]));
    }
    TRY(finish_tile(schedule_, out, tile, rank_ - 1, width));
    if (one_by_one) TRY(schedule_.unroll(tile));
    return multiplies;
  }

  // The tile's own memory, and the block that takes it out of there, placed under `tile`.
  Result<BlockRV> take_out(BlockRV block, std::optional<BlockRV> parts, LoopRV tile) {
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
    if (!behind_) return out;
    const BlockRV behind = behind_->at(finished_++);
    TRY(schedule_.reverse_compute_at(behind, tile));
    TRY(schedule_.compute_inline(out));
    return behind;
  }

  // The same where the sums start from what the output holds: a block brings it into the registers.
  Result<BlockRV> take_in_and_out(BlockRV block, LoopRV tile, int64_t width) {
    const std::vector<BlockRV> copies = TRY(schedule_.cache_inplace(block, 0, "register"));
    TRY(put_lanes_last(block, std::nullopt));
    TRY(schedule_.reverse_compute_at(copies[1], tile));
    TRY(schedule_.compute_at(copies[0], tile));
    TRY(finish_tile(schedule_, copies[0], tile, rank_ - 1, width));
    return copies[1];
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

  // Turns of the loops around the outermost axis; 1 where they are not known.
  Result<int64_t> turns_around() {
    int64_t turns = 1;
    const std::vector<LoopRV> loops = TRY(schedule_.get_loops(firsts_.at(0)));
    for (size_t i = plan_.outer; i < axes_[0].position; ++i)
      turns *= as_int(TRY(schedule_.get(loops.at(i)))->extent).value_or(1);
    return turns;
  }

  // Threads share the tiles of every cut of the lanes: those of one height, and then those of another.
  Status share_tiles(Schedule& schedule) {
    const size_t begin = parts_[0] == 1 ? plan_.outer : axes_[0].position;
    for (size_t part = 0; part < seconds_.size(); ++part) {
      const std::vector<LoopRV> loops = TRY(schedule.get_loops(firsts_.at(part)));
      std::vector<LoopRV> shared(loops.begin() + static_cast<ptrdiff_t>(begin),
                                 loops.begin() + static_cast<ptrdiff_t>(axes_[1].position));
      const std::vector<LoopRV>& tiles = seconds_[part];
      shared.push_back(tiles.size() > 1 ? TRY(schedule.join(tiles)) : tiles.at(0));
      TRY(schedule.parallel(TRY(schedule.fuse(shared))));
    }
    return support::success();
  }

  // Threads share the pieces that the rows were cut into for them, or else the outer loops but the innermost of them:
  // all where there is one part; otherwise those around the parts, where they are enough, or those of each part.
  Status share_among_threads() {
    if (!enough_) return support::success();
    if (plan_.grid && axes_.size() > 1 && plan_.panels.empty()) {
      Schedule attempt = schedule_;
      if (share_tiles(attempt)) {
        schedule_ = std::move(attempt);
        return support::success();
      }
    }
    size_t end = axes_.size() == 1 ? first_sum_ : axes_.back().position;
    // A panel is copied once for all that is inside the lanes.
    if (!plan_.panels.empty()) end = axes_[0].position + 1;
    for (size_t k = axes_.size(); k-- > 1;)
      if (parts_[k] > 1) end = std::min(end, axes_[k].position);
    size_t begin = parts_[0] == 1 ? plan_.outer : axes_[0].position;
    if (parts_[0] > 1 && TRY(turns_around()) >= 4 * context_.target.cores) {
      begin = plan_.outer;
      end = axes_[0].position;
      firsts_.resize(1);
    }
    if (plan_.share > 1) {
      begin = plan_.outer;
      end = begin + plan_.batch.size() + 1;
      firsts_.resize(1);
    }
    for (const BlockRV& block : firsts_) {
      const std::vector<LoopRV> loops = TRY(schedule_.get_loops(block));
      try_parallel(schedule_,
                   {loops.begin() + static_cast<ptrdiff_t>(begin), loops.begin() + static_cast<ptrdiff_t>(end)});
    }
    return support::success();
  }

  Schedule& schedule_;
  const TilePlan& plan_;
  const std::string& epilogue_;
  const RuleContext& context_;
  std::vector<TileAxis> axes_;   // outermost first
  size_t first_sum_ = 0;         // position of the outermost loop that sums
  int64_t cut_bytes_ = 0;        // of the weights that a cut of the lanes reads
  std::vector<size_t> parts_;    // how many the axes fell into, at most
  std::vector<BlockRV> firsts_;  // the first block of each part of the outermost axis
  std::vector<std::vector<LoopRV>>
      seconds_;  // in each of these, the loops over the tiles of the next axis, by its parts
  Buffer written_;
  size_t rank_ = 0, lane_dimension_ = 0;
  bool exact_ = false;                          // the tile divides every axis
  bool enough_ = false;                         // work for threads
  std::optional<std::vector<BlockRV>> behind_;  // the epilogue, cut like the tiles, in their order
  size_t finished_ = 0;                         // so many of these are placed
};

// Whether the start of the block's sums is another one for each row of a tile.
bool starts_by_rows(const Schedule& schedule, const TilePlan& plan) {
  const std::vector<Work> list = works(schedule.function());
  const Work& work = *find(list, plan.block);
  std::vector<size_t> rows;
  if (plan.row) rows.push_back(*plan.row);
  if (plan.tall > 1) rows.push_back(plan.between.back());
  for (size_t i = 0; i < work.block().iter_vars.size(); ++i)
    for (const size_t row : rows)
      if (uses_var(work.realize->iter_values[i], work.loops[row]->loop_var) &&
          uses_var(work.block().init.as<BufferStore>()->value, work.block().iter_vars[i]->var))
        return true;
  return false;
}

// The sums start from what is added to them behind the reduction and the rows of a tile share, as a bias is: of what is
// left for a tile's end, whose operations come all at once where products wait for their turn, an addition for each
// vector less. What each row has its own of comes from further away, and the products would wait for it. Gives the
// block that is left behind the reduction, or nothing.
Result<std::string> start_from_shared(Schedule& schedule, const TilePlan& plan, const std::string& behind) {
  if (behind.empty() || plan.updates) return behind;
  for (;;) {
    Schedule attempt = schedule;
    const auto epilogue = attempt.get_block(behind);
    if (!epilogue) return std::string();
    if (!attempt.fuse_reduction_epilogue(TRY(attempt.get_block(plan.block)), *epilogue)) return behind;
    if (starts_by_rows(attempt, plan)) return behind;
    schedule = std::move(attempt);
  }
}

}  // namespace

Status register_tile(Schedule& schedule, const RuleContext& context, const TilePlan& plan, const std::string& behind) {
  if (plan.apart) TRY(set_planes_apart(schedule, *plan.apart));
  const std::string epilogue = TRY(start_from_shared(schedule, plan, behind));
  if (epilogue.empty()) return TileNest(schedule, plan, epilogue, context).run();
  Schedule attempt = schedule;
  if (TileNest(attempt, plan, epilogue, context).run()) {
    schedule = std::move(attempt);
    return support::success();
  }
  const std::string none;
  TRY(TileNest(schedule, plan, none, context).run());
  return vectorize_elementwise(schedule, context, TRY(schedule.get_block(epilogue)), plan.outer == 0);
}

}  // namespace lathe::schedule
