#include "schedule/rules/tile.h"

#include "ir/visit.h"
#include "schedule/codes.h"

namespace lathe::schedule {

int64_t largest_divisor(int64_t extent, int64_t limit) {
  for (int64_t d = std::min(extent, limit); d > 1; --d)
    if (extent % d == 0) return d;
  return 1;
}

const Work* only_reduction(const std::vector<Work>& list, std::string& why) {
  const Work* found = nullptr;
  for (const Work& work : list) {
    if (has_effects(work.block())) {
      why = fmt::format("block '{}' has effects", work.block().name);
      return nullptr;
    }
    if (!work.reduces()) continue;
    if (found) {
      why = fmt::format("blocks '{}' and '{}' are both reductions", found->block().name, work.block().name);
      return nullptr;
    }
    found = &work;
  }
  if (!found) why = "no block is a reduction";
  return found;
}

Result<Surroundings> inline_around(Schedule& schedule, const std::string& reduction,
                                   support::function_ref<bool(const Work&)> keep) {
  // What follows the reduction is computed once an element wherever it stands.
  std::set<std::string> following;
  bool after = false;
  for (const Work& work : works(schedule.function())) {
    if (after) following.insert(work.block().name);
    after = after || work.block().name == reduction;
  }
  TRY(inline_producers(schedule, [&](const Work& work) { return !following.count(work.block().name) && keep(work); }));
  const std::vector<Work> list = works(schedule.function());
  const Work* work = find(list, reduction);
  Surroundings result;
  if (!work) return result;
  for (const Work& other : list)
    if (&other != work) (&other < work ? result.before : result.behind).push_back(other.block().name);
  // With several blocks behind it the value is wanted in memory anyway.
  if (result.behind.size() == 1 && !work->is_output) {
    result.epilogue = result.behind[0];
    result.behind.clear();
  }
  return result;
}

namespace {

// A part of the tiled nest: its own copy of the block, and the loops that matter for it.
struct Part {
  BlockRV block;
  LoopRV loop;       // what remains to be cut
  int64_t size = 1;  // of a tile along it (rows), or lanes
  int64_t vectors = 1;
};

Result<std::vector<LoopRV>> at(const std::vector<LoopRV>& loops, const std::vector<size_t>& positions) {
  std::vector<LoopRV> result;
  for (const size_t position : positions) result.push_back(loops.at(position));
  return result;
}

// The lane loop in parts of whole tiles, of whole vectors, and the rest.
Result<std::vector<Part>> lane_parts(Schedule& schedule, BlockRV block, LoopRV loop, const TilePlan& plan) {
  const auto extent = as_int(TRY(schedule.get(loop))->extent);
  const int64_t width = plan.lanes * plan.vectors;
  std::vector<Part> parts;
  if (!extent) {
    const std::vector<LoopRV> loops = TRY(schedule.peel(loop, plan.lanes));
    parts.push_back({block, loops[0], plan.lanes, 1});
    if (loops.size() > 1) parts.push_back({TRY(schedule.get_child_blocks(loops[1]))[0], loops[1], 1, 1});
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

// The row loop in parts whose tiles divide them: as equal as can be, never a full tile and a small rest.
Result<std::vector<Part>> row_parts(Schedule& schedule, BlockRV block, LoopRV loop, const TilePlan& plan) {
  const auto extent = as_int(TRY(schedule.get(loop))->extent);
  std::vector<Part> parts;
  if (!extent) {
    const std::vector<LoopRV> loops = TRY(schedule.peel(loop, plan.rows));
    parts.push_back({block, loops[0], loops.size() > 1 ? plan.rows : 1, 1});
    if (loops.size() > 1) parts.push_back({TRY(schedule.get_child_blocks(loops[1]))[0], loops[1], 1, 1});
    return parts;
  }
  if (*extent % plan.rows == 0) return std::vector<Part>{{block, loop, plan.rows, 1}};
  const int64_t tiles = (*extent + plan.rows - 1) / plan.rows;
  const int64_t small = *extent / tiles, large = *extent - tiles * small;  // `large` tiles have a row more
  if (large == 0) return std::vector<Part>{{block, loop, small, 1}};
  const std::vector<LoopRV> loops = TRY(schedule.loop_partition(loop, {Factor(large * (small + 1)), Factor()}));
  parts.push_back({block, loops[0], small + 1, 1});
  parts.push_back({TRY(schedule.get_child_blocks(loops[1]))[0], loops[1], small, 1});
  return parts;
}

// The variable of `consumer` with which it indexes that dimension of what lies in registers: its name, or empty.
std::string lane_variable(const Block& consumer, size_t dimension) {
  std::string name;
  post_order(consumer.body, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    if (!load || (load->buffer->scope != "register" && load->buffer->scope != "local") ||
        dimension >= load->indices.size())
      return;
    if (const auto* v = load->indices[dimension].as<VarNode>()) name = v->name;
  });
  return name;
}

// The block that takes a tile out of the registers: every loop inside `tile` written out but the lanes.
Status finish_tile(Schedule& schedule, BlockRV block, LoopRV tile, size_t lane_dimension, int64_t lanes) {
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const std::string lane_name = "ax_" + lane_variable(*TRY(schedule.get(block)), lane_dimension);
  const Id tile_id = TRY(schedule.get(tile))->id;
  std::vector<LoopRV> order;
  std::optional<LoopRV> lane;
  bool inside = false;
  for (const LoopRV& loop : loops) {
    const Ref<For> l = TRY(schedule.get(loop));
    if (inside && l->loop_var->name == lane_name)
      lane = loop;
    else if (inside)
      order.push_back(loop);
    inside = inside || l->id == tile_id;
  }
  if (lane) {
    const auto extent = as_int(TRY(schedule.get(*lane))->extent);
    LoopRV vector = *lane;
    if (extent && *extent > lanes) {
      const std::vector<LoopRV> cut = TRY(schedule.split(*lane, {Factor(), lanes}));
      order.push_back(cut[0]);
      vector = cut[1];
    }
    std::vector<LoopRV> all = order;
    all.push_back(vector);
    if (all.size() > 1) TRY(schedule.reorder(all));
    TRY(schedule.vectorize(vector));
  }
  for (const LoopRV& loop : order) TRY(schedule.unroll(loop));
  return support::success();
}

// A long sum of floats loses accuracy with its length: where the loops `sums` (outermost first) add up more than twice
// `chain` terms, the outermost is cut, and each part gets a sum of its own. Gives the block of these sums and leaves
// adding them up to `block`; nothing where the sum is short, of integers, or of an awkward length.
Result<std::optional<BlockRV>> sum_in_parts(Schedule& schedule, BlockRV block, const std::vector<LoopRV>& sums,
                                            int64_t chain) {
  std::optional<BlockRV> parts;
  const Ref<Block> node = TRY(schedule.get(block));
  const auto* store = node->body.as<BufferStore>();
  if (sums.empty() || !store || !store->value->dtype.is_floating()) return parts;
  int64_t inner = 1;
  const auto outermost = as_int(TRY(schedule.get(sums[0]))->extent);
  for (size_t i = 1; i < sums.size(); ++i) {
    const auto extent = as_int(TRY(schedule.get(sums[i]))->extent);
    if (!extent || *extent == 0) return parts;
    inner = std::min(inner * *extent, 2 * chain);
  }
  if (!outermost || *outermost * inner < 2 * chain) return parts;
  const int64_t step = inner >= chain ? 1 : largest_divisor(*outermost, chain / inner);
  if (step * inner * 4 < chain) return parts;
  LoopRV part = sums[0];
  if (step > 1)
    part = TRY(schedule.split(sums[0], {Factor(), step}))[0];
  else if (sums.size() == 1)
    return parts;
  parts = TRY(schedule.rfactor(part, 0));
  return parts;
}

// The loops of a block inside `outer`: its sums, and the lanes, those that walk the last dimension of what it writes.
struct Inside {
  std::vector<LoopRV> sums, others, lanes;
};
Result<Inside> loops_inside(Schedule& schedule, BlockRV block, LoopRV outer) {
  const Ref<Block> node = TRY(schedule.get(block));
  const Id outer_id = TRY(schedule.get(outer))->id;
  const auto* store = node->body.as<BufferStore>();
  const std::vector<Work> list = works(schedule.function());
  const Work* work = find(list, node->name);
  Inside result;
  bool inside = false;
  for (const LoopRV& loop : TRY(schedule.get_loops(block))) {
    const Ref<For> l = TRY(schedule.get(loop));
    if (inside) {
      bool reduces = false, lanes = false;
      for (size_t i = 0; i < node->iter_vars.size(); ++i) {
        if (!uses_var(work->realize->iter_values[i], l->loop_var)) continue;
        reduces = reduces || node->iter_vars[i]->type == IterType::reduce;
        lanes = lanes || store->indices.back() == Expr(node->iter_vars[i]->var);
      }
      (reduces ? result.sums : lanes ? result.lanes : result.others).push_back(loop);
    }
    inside = inside || l->id == outer_id;
  }
  return result;
}

// Some steps of the innermost of the loops `sums` that runs more than once are written out: fewer jumps, and addresses
// as offsets of one register. A short loop stays as it is.
Status write_out_steps(Schedule& schedule, std::vector<LoopRV>& sums, int64_t steps) {
  for (size_t i = sums.size(); i-- > 0;) {
    const auto extent = as_int(TRY(schedule.get(sums[i]))->extent);
    if (extent == 1) continue;
    const int64_t count = extent ? largest_divisor(*extent, steps) : 1;
    if (count == 1 || *extent < 8 * count) break;
    const std::vector<LoopRV> cut = TRY(schedule.split(sums[i], {Factor(), Factor(count)}));
    sums[i] = cut[0];
    return schedule.unroll(cut[1]);
  }
  return support::success();
}

// Lanes last and vectorised, everything else but the sums written out, the sums' start before them.
Status keep_in_registers(Schedule& schedule, BlockRV block, const Inside& loops, int64_t lanes, int64_t steps) {
  std::vector<LoopRV> order = loops.sums, unrolled = loops.others;
  std::vector<LoopRV> vector = loops.lanes;
  if (vector.size() == 1 && as_int(TRY(schedule.get(vector[0]))->extent).value_or(0) > lanes)
    vector = TRY(schedule.split(vector[0], {Factor(), lanes}));
  if (vector.size() == 2) unrolled.push_back(vector[0]);
  order.insert(order.end(), unrolled.begin(), unrolled.end());
  if (!vector.empty()) order.push_back(vector.back());
  if (order.size() > 1) TRY(schedule.reorder(order));
  if (!vector.empty()) TRY(schedule.vectorize(vector.back()));
  for (const LoopRV& loop : unrolled) TRY(schedule.unroll(loop));
  std::vector<LoopRV> sums = loops.sums;
  TRY(write_out_steps(schedule, sums, steps));
  if (!sums.empty()) TRY(schedule.decompose_reduction(block, sums[0]));
  return support::success();
}

// Inside `tile`: `total` adds up what `parts` sums apart, each part in registers, the total in the tile's memory.
Status tile_of_parts(Schedule& schedule, BlockRV total, BlockRV parts, LoopRV tile, int64_t lanes, int64_t steps) {
  const Inside adding = TRY(loops_inside(schedule, total, tile));
  if (adding.sums.size() != 1) return refuse(codes::not_inlinable, "the parts of a sum are not one loop");
  TRY(keep_in_registers(schedule, total, adding, lanes, 1));
  TRY(schedule.compute_at(parts, adding.sums[0]));
  TRY(schedule.set_scope(parts, 0, "register"));
  return keep_in_registers(schedule, parts, TRY(loops_inside(schedule, parts, adding.sums[0])), lanes, steps);
}

// Runs the loops in parallel, as one where they are several; leaves them as they are where that is refused.
void try_parallel(Schedule& schedule, const std::vector<LoopRV>& loops) {
  if (loops.empty()) return;
  Schedule attempt = schedule;
  const Result<LoopRV> fused = loops.size() > 1 ? attempt.fuse(loops) : Result<LoopRV>(loops[0]);
  if (fused.ok() && attempt.parallel(*fused)) schedule = std::move(attempt);
}

// The dimension of the block's output along which the loop runs; the rank where it runs along none.
size_t dimension_of(const PrimFunc& function, const std::string& block, const For& loop) {
  const std::vector<Work> list = works(function);
  const Work& work = *find(list, block);
  const auto& indices = work.block().body.as<BufferStore>()->indices;
  for (size_t i = 0; i < work.realize->iter_values.size(); ++i)
    if (work.realize->iter_values[i] == Expr(loop.loop_var))
      for (size_t d = 0; d < indices.size(); ++d)
        if (indices[d] == Expr(work.block().iter_vars[i]->var)) return d;
  return indices.size();
}

// The position among the loops of `consumer` of the one that walks that dimension of `buffer`.
std::optional<size_t> loop_along(const PrimFunc& function, const std::string& consumer, const Buffer& buffer,
                                 size_t dimension) {
  const std::vector<Work> list = works(function);
  const Work& work = *find(list, consumer);
  Expr index;
  post_order(work.block().body, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    if (load && load->buffer == buffer && dimension < load->indices.size()) index = load->indices[dimension];
  });
  for (size_t i = 0; index && i < work.block().iter_vars.size(); ++i)
    for (size_t l = 0; l < work.loops.size(); ++l)
      if (index == Expr(work.block().iter_vars[i]->var) &&
          work.realize->iter_values[i] == Expr(work.loops[l]->loop_var))
        return l;
  return std::nullopt;
}

// An epilogue cut like the reduction before it: a copy for each part of the lanes, whose rows are cut where its turn
// comes.
struct CutEpilogue {
  std::vector<Part> lanes;
  std::optional<size_t> row;  // the position of the row loop in each part
};
Result<CutEpilogue> cut_epilogue(Schedule& schedule, const TilePlan& plan, const std::string& epilogue,
                                 const Buffer& buffer, size_t lane_dimension, size_t row_dimension) {
  const auto lane = loop_along(schedule.function(), epilogue, buffer, lane_dimension);
  const auto row = loop_along(schedule.function(), epilogue, buffer, row_dimension);
  if (!lane || (plan.row && !row))
    return refuse(codes::not_inlinable, fmt::format("block '{}' does not walk what it reads by loops", epilogue));
  const BlockRV block = TRY(schedule.get_block(epilogue));
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  std::vector<LoopRV> order{loops[*lane]};
  for (size_t l = 0; l < loops.size(); ++l)
    if (l != *lane) order.push_back(loops[l]);
  if (order.size() > 1) TRY(schedule.reorder(order));
  CutEpilogue cut;
  if (plan.row) cut.row = *row < *lane ? *row + 1 : *row;
  cut.lanes = TRY(lane_parts(schedule, block, order[0], plan));
  return cut;
}

Status tile_nest(Schedule& schedule, const TilePlan& plan, const std::string& epilogue) {
  const BlockRV block = TRY(schedule.get_block(plan.block));
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
  const Ref<Block> node = TRY(schedule.get(block));
  const auto* store = node->body.as<BufferStore>();
  if (!store) return refuse(codes::not_inlinable, fmt::format("{} is not one store", name_of(*node)));

  const size_t rank = store->indices.size();
  const Ref<For> lane_loop = TRY(schedule.get(loops.at(plan.lane)));
  const size_t lane_dimension = dimension_of(schedule.function(), plan.block, *lane_loop);

  const auto row_extent = plan.row ? as_int(TRY(schedule.get(loops[*plan.row]))->extent) : std::optional<int64_t>(1);
  const auto lane_extent = as_int(lane_loop->extent);
  const bool exact =
      row_extent && lane_extent && *row_extent % plan.rows == 0 && *lane_extent % (plan.lanes * plan.vectors) == 0;
  std::vector<const For*> nodes;
  std::vector<Ref<For>> kept;
  for (const LoopRV& loop : loops) kept.push_back(TRY(schedule.get(loop)));
  for (const Ref<For>& loop : kept) nodes.push_back(loop.get());
  const auto total = constant_product(nodes);
  const bool enough = !total || *total >= 8 * parallel_work;

  std::vector<LoopRV> order = TRY(at(loops, plan.batch));
  const std::vector<LoopRV> batch = order, between = TRY(at(loops, plan.between)), reduce = TRY(at(loops, plan.reduce));
  order.push_back(loops[plan.lane]);
  order.insert(order.end(), between.begin(), between.end());
  if (plan.row) order.push_back(loops[*plan.row]);
  order.insert(order.end(), reduce.begin(), reduce.end());
  if (order.size() > 1) TRY(schedule.reorder(order));

  // An epilogue that the plan divides exactly takes the tile straight from its registers; another one is cut first.
  std::optional<CutEpilogue> cut_behind;
  if (!epilogue.empty() && !exact) {
    const size_t row_dimension =
        plan.row ? dimension_of(schedule.function(), plan.block, *TRY(schedule.get(loops[*plan.row]))) : rank;
    cut_behind = TRY(cut_epilogue(schedule, plan, epilogue, store->buffer, lane_dimension, row_dimension));
  }

  const std::vector<Part> lanes = TRY(lane_parts(schedule, block, loops[plan.lane], plan));
  std::vector<BlockRV> blocks;
  for (size_t l = 0; l < lanes.size(); ++l) {
    const Part& lane = lanes[l];
    // The loops of this part, by position below its lane loop.
    const std::vector<LoopRV> own = TRY(schedule.get_loops(lane.block));
    const size_t start = own.size() - (order.size() - batch.size());
    std::vector<LoopRV> below(own.begin() + static_cast<ptrdiff_t>(start) + 1, own.end());
    const std::vector<LoopRV> cut =
        TRY(schedule.split(own[start], {Factor(), Factor(lane.vectors), Factor(lane.size)}));
    std::vector<LoopRV> inner_order = below;
    inner_order.push_back(cut[1]);
    inner_order.push_back(cut[2]);
    TRY(schedule.reorder(inner_order));
    std::vector<Part> rows;
    if (plan.row)
      rows = TRY(row_parts(schedule, lane.block, below[between.size()], plan));
    else
      rows.push_back({lane.block, cut[0], 0, 1});
    std::vector<Part> rows_behind;
    if (cut_behind) {
      const BlockRV own_epilogue = cut_behind->lanes.at(l).block;
      rows_behind.push_back({own_epilogue, cut[0], 0, 1});
      if (cut_behind->row)
        rows_behind =
            TRY(row_parts(schedule, own_epilogue, TRY(schedule.get_loops(own_epilogue)).at(*cut_behind->row), plan));
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      const Part& row = rows[r];
      const std::vector<LoopRV> now = TRY(schedule.get_loops(row.block));
      // … row, reduce…, vectors, lanes
      const size_t count = now.size();
      const LoopRV vectors = now[count - 2], lane_vector = now[count - 1];
      const std::vector<LoopRV> sums(now.end() - 2 - static_cast<ptrdiff_t>(reduce.size()), now.end() - 2);
      LoopRV tile = now[count - 3 - reduce.size()];
      std::optional<LoopRV> tile_rows;
      if (plan.row) {
        const std::vector<LoopRV> split = TRY(schedule.split(tile, {Factor(), Factor(row.size)}));
        tile = split[0];
        tile_rows = split[1];
        std::vector<LoopRV> inner = sums;
        inner.push_back(split[1]);
        inner.push_back(vectors);
        inner.push_back(lane_vector);
        TRY(schedule.reorder(inner));
      }
      const std::optional<BlockRV> parts = TRY(sum_in_parts(schedule, row.block, sums, plan.chain));
      // The tile's own memory, and who takes it out of there.
      const char* scope = parts ? "local" : "register";
      BlockRV out = row.block;
      if (exact && !epilogue.empty()) {
        out = TRY(schedule.get_block(epilogue));
        TRY(schedule.set_scope(row.block, 0, scope));
      } else {
        out = TRY(schedule.cache_write(row.block, 0, scope));
      }
      if (lane_dimension + 1 < rank) {
        // Lanes lie next to one another in registers, whatever the output's layout.
        std::vector<int64_t> axes;
        for (size_t d = 0; d < rank; ++d)
          if (d != lane_dimension) axes.push_back(static_cast<int64_t>(d));
        axes.push_back(static_cast<int64_t>(lane_dimension));
        TRY(schedule.transform_layout(row.block, {.writes = true}, permutation(axes)));
        if (parts) {
          for (int64_t& a : axes) ++a;
          axes.insert(axes.begin(), 0);
          TRY(schedule.transform_layout(*parts, {.writes = true}, permutation(axes)));
        }
      }
      TRY(schedule.reverse_compute_at(out, tile));
      if (cut_behind) {
        const BlockRV copy = out;
        out = rows_behind.at(r).block;
        TRY(schedule.reverse_compute_at(out, tile));
        TRY(schedule.compute_inline(copy));
      }
      if (parts) {
        TRY(tile_of_parts(schedule, row.block, *parts, tile, lane.size, plan.steps));
      } else {
        TRY(schedule.vectorize(lane_vector));
        TRY(schedule.unroll(vectors));
        if (tile_rows) TRY(schedule.unroll(*tile_rows));
        std::vector<LoopRV> outer_sums = sums;
        TRY(write_out_steps(schedule, outer_sums, plan.steps));
        if (!outer_sums.empty()) TRY(schedule.decompose_reduction(row.block, outer_sums[0]));
      }
      TRY(finish_tile(schedule, out, tile, rank - 1, lane.size));
    }
    blocks.push_back(rows[0].block);
  }
  // Threads share the outer loops: all of them where there is one part, those of each part otherwise.
  for (const BlockRV& part : blocks) {
    if (!enough) break;
    const std::vector<LoopRV> outer = TRY(schedule.get_loops(part));
    const size_t first = lanes.size() == 1 ? 0 : batch.size(), last = batch.size() + 1 + between.size();
    try_parallel(schedule,
                 {outer.begin() + static_cast<ptrdiff_t>(first), outer.begin() + static_cast<ptrdiff_t>(last)});
  }
  return support::success();
}

}  // namespace

Status register_tile(Schedule& schedule, const RuleContext& context, const TilePlan& plan,
                     const std::string& epilogue) {
  if (epilogue.empty()) return tile_nest(schedule, plan, epilogue);
  Schedule attempt = schedule;
  if (tile_nest(attempt, plan, epilogue)) {
    schedule = std::move(attempt);
    return support::success();
  }
  TRY(tile_nest(schedule, plan, {}));
  return vectorize_elementwise(schedule, context, TRY(schedule.get_block(epilogue)));
}

}  // namespace lathe::schedule
