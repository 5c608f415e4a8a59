// gemm, conv: one sum of products of two tensors, without and with windows.
#include "schedule/rules/tile/contraction.h"

#include "ir/visit.h"
#include "schedule/codes.h"
#include "schedule/rules/nest/transposed.h"
#include "schedule/rules/tile/apart.h"
#include "schedule/rules/tile/panels.h"
#include "schedule/rules/tile/tile_model.h"
#include "tir/analysis/zero_border.h"
#include "tir/rewrite.h"

namespace lathe::schedule {

namespace {

// How an access's memory moves with a loop: elements; 0 where it does not; nothing where it is not a plain distance.
// An index v // n, v % n of packed weights counts as lanes of stride 1.
struct Walk {
  bool uses = false;
  std::optional<int64_t> stride;
  int64_t packed = 0;
};

Walk walk(const Access& access, const For& loop) {
  Walk result;
  result.uses = moves_with(access, loop);
  result.stride = stride_of(access, loop);
  if (!access.region.empty())
    if (const auto* digit = access.region.back().min.as<FloorMod>(); digit && digit->a == Expr(loop.loop_var)) {
      result.stride = 1;
      result.packed = as_int(digit->b).value_or(0);
    }
  return result;
}

// Whether the value is the variable of that loop, plus what loops outside of the first `outer` do not move.
bool is_bound_to(const Expr& value, const std::vector<const For*>& loops, size_t loop, size_t outer) {
  const Var& v = loops[loop]->loop_var;
  if (value == Expr(v)) return true;
  Linear rest = linear(value);
  const Linear own = rest.extract([&](const Expr& atom) { return uses_var(atom, v); });
  if (own.terms.size() != 1 || !(own.terms[0].atom == Expr(v)) || own.terms[0].coefficient != 1) return false;
  return std::none_of(loops.begin() + static_cast<ptrdiff_t>(outer), loops.end(),
                      [&](const For* other) { return uses_var(rest.expr(), other->loop_var); });
}

// Counts the windows along a loop of constant extent that touch zeros.
Touching touching(const Access& access, const tir::ZeroBorder& border, const Work& work, const Contraction& found,
                  size_t along) {
  Touching result;
  const auto extent = as_int(work.loops[along]->extent);
  for (size_t d = 0; extent && d < access.region.size(); ++d) {
    const Expr& index = access.region[d].min;
    const Var& position = work.loops[along]->loop_var;
    const auto size = as_int(access.buffer->shape[d]);
    if (!uses_var(index, position) || !size || border.before[d] + border.after[d] == 0) continue;
    std::optional<size_t> window;
    for (size_t k = 0; k < found.reduce.size(); ++k)
      if (uses_var(index, work.loops[found.reduce[k]]->loop_var)) {
        if (window) return {};
        window = k;
      }
    const For* cells = window ? work.loops[found.reduce[*window]] : nullptr;
    const auto steps = cells ? as_int(cells->extent) : std::optional<int64_t>(1);
    if (!steps || *extent * *steps > 1 << 16) return {};
    result.window = window;
    result.products = *extent * *steps;
    const auto touches = [&](int64_t at) {
      bool any = false;
      for (int64_t k = 0; k < *steps; ++k) {
        VarMap point{{position, int64(at)}};
        if (cells) point[cells->loop_var] = int64(k);
        const auto element = as_int(tir::fold_constants(substitute(index, point)));
        if (!element) return std::optional<bool>();
        const bool is_zero = *element < border.before[d] || *element >= *size - border.after[d];
        result.zeros += is_zero;
        any = any || is_zero;
      }
      return std::optional(any);
    };
    for (int64_t at = 0; at < *extent; ++at) {
      const auto any = touches(at);
      if (!any) return {};
      if (*any && result.first == at) ++result.first;
      result.last = *any ? result.last + 1 : 0;
    }
    return result;
  }
  return result;
}

}  // namespace

Result<SumOfProducts> sum_of_products(const PrimFunc& function, const Work& work, size_t outer) {
  const Block& block = work.block();
  const auto declined = [&](std::string why) { return refuse(codes::not_inlinable, name_of(block) + " " + why); };
  const auto* store = block.body.as<BufferStore>();
  const auto* sum = store ? store->value.as<Add>() : nullptr;
  if (!sum || !has_reduce_iters(block)) return declined("does not sum");
  const auto is_own = [&](const Expr& e) {
    const auto* load = e.as<BufferLoad>();
    return load && load->buffer == store->buffer;
  };
  if (!is_own(sum->a) && !is_own(sum->b)) return declined("does not sum");
  const Expr product_expr = without_casts(is_own(sum->a) ? sum->b : sum->a);
  const auto* product = product_expr.as<Mul>();
  const auto* a = product ? without_casts(product->a).as<BufferLoad>() : nullptr;
  const auto* b = product ? without_casts(product->b).as<BufferLoad>() : nullptr;
  if (!a || !b) return declined("does not sum products of two tensors' elements");

  // The accesses in loop variables.
  std::optional<Access> first, second;
  for (const Access& access : accesses(function.body)) {
    if (access.block != &block || access.writes) continue;
    if (access.buffer == a->buffer && !first)
      first = access;
    else if (access.buffer == b->buffer)
      second = access;
  }
  if (!first || !second) return declined("multiplies a tensor with itself");
  SumOfProducts found{*std::move(first), *std::move(second), {}, {}};
  for (size_t i = outer; i < work.loops.size(); ++i) {
    bool reduces = false, known = false;
    for (size_t v = 0; v < block.iter_vars.size(); ++v)
      if (is_bound_to(work.realize->iter_values[v], work.loops, i, outer)) {
        known = true;
        reduces = block.iter_vars[v]->type == IterType::reduce;
      }
    if (!known) return declined("is not bound to its loops one to one");
    (reduces ? found.reduce : found.spatial).push_back(i);
  }
  return found;
}

Result<Contraction> contraction(const PrimFunc& function, const Work& work, size_t outer) {
  const Block& block = work.block();
  const auto declined = [&](std::string why) { return refuse(codes::not_inlinable, name_of(block) + " " + why); };
  const SumOfProducts sum = TRY(sum_of_products(function, work, outer));
  const Access *first = &sum.first, *second = &sum.second;
  const std::vector<size_t>& spatial = sum.spatial;
  Contraction found;
  found.block = block.name;
  found.reduce = sum.reduce;
  // The lanes: a spatial loop that one tensor walks with stride 1 and the other does not use; packed weights first.
  std::optional<size_t> lane;
  for (const bool packed : {true, false})
    for (const auto& [weights, other] : {std::pair{second, first}, std::pair{first, second}})
      for (size_t i = spatial.size(); i-- > 0 && !lane;) {
        const Walk own = walk(*weights, *work.loops[spatial[i]]), theirs = walk(*other, *work.loops[spatial[i]]);
        if (!own.uses || theirs.uses || own.stride != 1 || (own.packed > 0) != packed) continue;
        lane = spatial[i];
        found.packed = own.packed;
        if (weights == first) std::swap(first, second);
        break;
      }
  if (!lane) return declined("has no spatial axis along which one tensor is contiguous and the other constant");
  constexpr int64_t long_sum = 64;  // several vectors on any target
  const auto sums_along_both = [&](size_t i) {
    return as_int(work.loops[i]->extent).value_or(0) >= long_sum && walk(*first, *work.loops[i]).stride == 1 &&
           walk(*second, *work.loops[i]).stride == 1;
  };
  if (is_int(work.loops[*lane]->extent, 1) && std::any_of(found.reduce.begin(), found.reduce.end(), sums_along_both))
    return declined("has one column, and sums along what is contiguous in both tensors");
  found.lane = *lane;
  const auto is_row = [&](size_t i) {
    return i != *lane && walk(*first, *work.loops[i]).uses && !walk(*second, *work.loops[i]).uses;
  };
  const auto is_longer = [&](size_t i) { return is_row(i) && !is_int(work.loops[i]->extent, 1); };
  const bool has_longer = std::any_of(spatial.begin(), spatial.end(), is_longer);
  for (size_t n = spatial.size(); n-- > 0;) {
    const size_t i = spatial[n];
    if (i == *lane) continue;
    const Walk in_first = walk(*first, *work.loops[i]), in_second = walk(*second, *work.loops[i]);
    if (is_row(i) && !found.row) {
      // A single row inside of many is in nobody's way outside.
      if (has_longer && !is_longer(i)) {
        found.batch.insert(found.batch.begin(), i);
        continue;
      }
      found.row = i;
      found.row_stride = in_first.stride.value_or(0);
    } else if (in_first.uses && in_second.uses) {
      found.batch.insert(found.batch.begin(), i);
    } else {
      found.between.insert(found.between.begin(), i);
    }
    if (found.between.size() == 1 && found.between[0] == i) found.shares_weights = in_first.uses && !in_second.uses;
  }
  // An outermost axis of one tensor alone stays outermost: of a batch of images, weights are read again for each; of
  // weights, the images are.
  if (!found.between.empty() && found.between.front() == 0 && (found.between.size() > 1 || !found.shares_weights)) {
    found.batch.insert(found.batch.begin(), 0);
    found.between.erase(found.between.begin());
  }
  const auto lies_inside_rows = [&](size_t i) {
    const int64_t stride = walk(*first, *work.loops[i]).stride.value_or(0);
    return 0 < stride && stride < found.row_stride;
  };
  found.interleaved = static_cast<size_t>(std::find_if_not(found.batch.rbegin(), found.batch.rend(), lies_inside_rows) -
                                          found.batch.rbegin());
  if (found.interleaved > 0) found.group_stride = *walk(*first, *work.loops[found.batch.back()]).stride;
  const auto moves = [&](const Linear::Term& term) {
    return std::any_of(work.loops.begin() + static_cast<ptrdiff_t>(outer), work.loops.end(),
                       [&](const For* loop) { return uses_var(term.atom, loop->loop_var); });
  };
  for (const Access* access : {first, second})
    for (const Range& range : access->region) {
      const Linear index = linear(range.min);
      found.windows = found.windows || std::count_if(index.terms.begin(), index.terms.end(), moves) > 1;
    }
  found.updates = !block.init;
  found.first = first->buffer;
  found.weights = second->buffer;
  if (found.windows && !found.row) return declined("reads windows, and no axis of its output shares weights");
  // Reduce loops in the order of the weights' memory, so that they stream; those that run once innermost, where they
  // are in nobody's way.
  std::vector<std::pair<int64_t, size_t>> order;
  for (const size_t i : found.reduce)
    order.emplace_back(
        is_int(work.loops[i]->extent, 1) ? 1 : -std::abs(walk(*second, *work.loops[i]).stride.value_or(1)), i);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) found.reduce[i] = order[i].second;
  for (const size_t i : found.reduce) found.strides.push_back(walk(*first, *work.loops[i]).stride.value_or(0));
  if (const auto read = tir::bordered_read(block); read && read->load->buffer == first->buffer) {
    if (found.row) found.rows = touching(*first, read->border, work, found, *found.row);
    if (!found.between.empty()) found.between_rows = touching(*first, read->border, work, found, found.between.back());
  }
  return found;
}

namespace {

// Whether threads share one turn of the loops around the contraction.
bool is_enough_for_threads(const Contraction& found, const Work& work, const TilePlan& plan) {
  std::vector<const For*> loops{work.loops[found.lane]};
  if (found.row) loops.push_back(work.loops[*found.row]);
  for (const auto* list : {&found.batch, &found.between})
    for (const size_t loop : *list) loops.push_back(work.loops[loop]);
  const auto elements = constant_product(loops);
  for (const size_t loop : found.reduce) loops.push_back(work.loops[loop]);
  return enough_for_threads(constant_product(loops), elements, plan);
}

// Whether the windows of one result are pieces of the first tensor that lie so far apart that the second cache has
// forgotten one when the next window comes to it, as those of neighbouring frames of a film: such pieces are too short
// for the machine to see where they go on.
bool reads_far_apart(const Work& work, const Contraction& found, const target::Target& target) {
  if (!found.windows || found.strides.size() != found.reduce.size()) return false;
  for (size_t k = 0; k < found.reduce.size(); ++k) {
    const bool several = !is_int(work.loops[found.reduce[k]]->extent, 1);
    const int64_t bytes = found.first->dtype.storage_bits() / 8;
    if (several && 2 * found.strides[k] * bytes > target.cache_bytes(2, 256 << 10)) return true;
  }
  return false;
}

// The model of cost asked about one contraction; `threads`: there is enough of it for several.
struct Planning {
  const PrimFunc& function;
  const Work& work;
  const Contraction& found;
  const target::Target& target;
  bool threads;

  bool rows_outside(const TilePlan& plan) const {
    const TileWork tiles = tile_work(function, work, found, plan);
    const bool uneven =
        threads && tiles.cut_shares == 1 && shares_unevenly(tiles, target) && row_shares(work, plan, target).size() < 2;
    return rows_go_first(tiles, threads, uneven, target);
  }

  // How many vectors a cut has, `most` at most. `plan` knows the lanes and the loop that threads can share.
  int64_t vectors(const TilePlan& plan, int64_t most, std::optional<int64_t> width, std::optional<int64_t> height,
                  bool within_thread) const {
    const int64_t by_width = vectors_by_width(plan, width, height);
    const int64_t preferred = tile_shape(by_width, most, found, height, target).vectors;
    const TileWork thin = tile_work(function, work, found, plan);
    if (within_thread || by_width < 2 || preferred != by_width || 2 * by_width > most) return preferred;
    const bool wide = wide_cuts_pay(thin, by_width, plan.lanes, width, height, found, target) ||
                      low_tiles_pay(thin, by_width, plan.lanes, width, height, found, target);
    return wide ? 2 * by_width : preferred;
  }

 private:
  int64_t vectors_by_width(const TilePlan& plan, std::optional<int64_t> width, std::optional<int64_t> height) const {
    if (!width) return 2;
    const int64_t most = std::max<int64_t>(1, *width / plan.lanes);
    // Rows of three vectors are one cut: low tiles of three keep more sums going than two and one, or one at a time.
    int64_t vectors = *width == 3 * plan.lanes ? 3 : std::min<int64_t>(2, most);
    // Few rows: more vectors keep the additions busy.
    while (height && *height * vectors < 8 && vectors * 2 <= most && vectors < 8) vectors *= 2;
    const auto is_one = [&](size_t loop) { return is_int(work.loops[loop]->extent, 1); };
    const bool by_lanes = threads && std::all_of(found.batch.begin(), found.batch.end(), is_one) &&
                          std::all_of(found.between.begin(), found.between.end(), is_one);
    if (vectors > 3 && by_lanes) vectors = shared_width(vectors, plan.lanes, *width, target);
    // What a wide cut leaves over has few sums to keep going. Many rows make up for that by fewer loads than those of
    // single vectors, which are as many as the products.
    constexpr int64_t many_rows = 16;
    const int64_t least = found.row && height.value_or(many_rows) >= many_rows ? 2 : 1;
    while (vectors > least && *width % (vectors * plan.lanes) != 0 && *width < 2 * vectors * plan.lanes) --vectors;
    return vectors;
  }
};

}  // namespace

Result<TilePlan> plan_tile(Schedule& schedule, const RuleContext& context, std::string_view rule,
                           const Contraction& found, bool within_thread) {
  // The model: every step of the reduction loads `vectors` vectors of weights and feeds rows * vectors accumulators
  // from one broadcast each; all of them and a spare must fit the registers, and 8 chains or more hide the latency of
  // an addition. Wider tiles read the first tensor less often, taller ones the weights.
  const Work work = *find(works(schedule.function()), found.block);
  const int bits = widest_bits(work.block());
  const int64_t full = context.target.lanes(bits);
  const auto width = as_int(work.loops[found.lane]->extent);
  const auto height = found.row ? as_int(work.loops[*found.row]->extent) : std::optional<int64_t>(1);
  TilePlan plan{found.block, found.batch, found.lane, found.between, found.row, found.reduce, full, 1, 1};
  plan.updates = found.updates;

  // What is left of the last vector is a narrower one in a body of its own.
  int64_t lanes = width && *width < full ? std::max<int64_t>(*width, 1) : full;
  if (found.packed && found.packed % lanes != 0 && !(width && *width <= found.packed))
    lanes = largest_divisor(found.packed, lanes);
  plan.lanes = TRY(schedule.get(TRY(decide(schedule, context, rule, "lanes", {lanes}, lanes))));

  const bool threads = !within_thread && is_enough_for_threads(found, work, plan);
  if (!within_thread) plan.shared = shared_loop(found, work);
  std::vector<int64_t> choices;
  for (int64_t v = 1; v <= 8; ++v)
    if (v == 1 || !width || v * plan.lanes <= *width) choices.push_back(v);
  const Planning planning{schedule.function(), work, found, context.target, threads};
  const int64_t preferred = planning.vectors(plan, choices.back(), width, height, within_thread);
  plan.vectors = TRY(schedule.get(TRY(decide(schedule, context, rule, "vectors", choices, preferred))));

  const int64_t most_rows = tile_shape(plan.vectors, plan.vectors, found, height, context.target).rows;
  // A height that has a bound is that of blocks which tiles divide, but for the last.
  const bool is_open = found.row && !height &&
                       !most_iterations({work.loops.begin(), work.loops.begin() + static_cast<ptrdiff_t>(*found.row)},
                                        *work.loops[*found.row]);
  // Four rows of an image in wide cuts have sums enough, and divide more images.
  const bool is_image = found.windows || !found.between.empty();
  const int64_t of_any = is_image && plan.vectors > 2 ? tiles_by_halves(most_rows) : tiles_of_unknown(most_rows);
  const int64_t rows = is_open ? of_any : equal_tiles(height, most_rows);
  plan.rows = TRY(schedule.get(TRY(decide(schedule, context, rule, "rows", up_to(most_rows, height), rows))));
  // What sixes leave of a product is all of it where it is small, and four rows read the weights once; of an image,
  // what lies inside a padding is found where each cut divides the one before.
  plan.rest = plan.rows == 3 ? 2 : plan.rows != 6 ? plan.rows / 2 : is_image ? 2 : 4;
  // Short rows: several of them share the weights.
  if (!found.between.empty() && found.shares_weights && height && plan.rows == *height && 2 * plan.rows <= most_rows) {
    const auto count = as_int(work.loops[found.between.back()]->extent);
    const int64_t most = most_rows / plan.rows;
    const int64_t tall = equal_tiles(count, most_short_rows(found, plan.rows, most, context.target));
    plan.tall = TRY(schedule.get(TRY(decide(schedule, context, rule, "tall", up_to(most, count), tall))));
  }
  const BorderCode borders = border_code(found, plan, height);
  if ((borders.sides || borders.ends) &&
      TRY(schedule.get(TRY(decide(schedule, context, rule, "borders", {0, 1}, 1)))) == 1) {
    if (borders.sides) plan.own_bodies = found.rows.window;
    if (borders.ends) plan.first_alone = found.between_rows.first;
    if (borders.ends) plan.last_alone = found.between_rows.last;
  }
  const TileWork tiles = tile_work(schedule.function(), work, found, plan);
  if (found.row) {
    const int64_t first = planning.rows_outside(plan) ? 1 : 0;
    plan.rows_first = 1 == TRY(schedule.get(TRY(decide(schedule, context, rule, "rows_first", {0, 1}, first))));
  }
  plan.within_thread = within_thread;
  if (!within_thread) {
    std::vector<int64_t> shares = row_shares(work, plan, context.target);
    int64_t share = threads ? rows_shared(tiles, shares, context.target) : 1;
    if (groups_share_lines(found)) {
      plan.groups_inside = found.interleaved;
      shares = group_pieces(work, plan);
      share = std::max(share, pieces_for_groups(work, found, tiles, shares, context.target));
    }
    plan.share = TRY(schedule.get(TRY(decide(schedule, context, rule, "share", shares, share))));
    if (plan.share == 1 && !plan.rows_first && found.row) {
      const int64_t grid = threads && grid_is_evener(tiles, context.target) ? 1 : 0;
      plan.grid = 1 == TRY(schedule.get(TRY(decide(schedule, context, rule, "grid", {0, 1}, grid))));
    }
    // Tiles divide the pieces.
    if (plan.share > 1) plan.first_alone = plan.last_alone = 0;
  }
  plan.steps = TRY(schedule.get(TRY(decide(schedule, context, rule, "steps", {1, 2, 4}, 4))));
  plan.chains = TRY(schedule.get(TRY(decide(schedule, context, rule, "chains", {1, 8}, 8))));
  plan.registers = context.target.vector_registers;
  if (within_thread) return plan;
  plan.prefetch = TRY(schedule.get(
      TRY(decide(schedule, context, rule, "prefetch", {0, 1, 2}, weights_ahead(plan, tiles, context.target)))));
  plan.weights = found.weights;
  const int64_t ahead = reads_far_apart(work, found, context.target) ? 1 : 0;
  if (TRY(schedule.get(TRY(decide(schedule, context, rule, "ahead", {0, 1}, ahead)))) == 1) plan.first = found.first;
  const auto apart = planes_to_set_apart(schedule, found, context.target);
  if (apart && TRY(schedule.get(TRY(decide(schedule, context, rule, "apart", {0, 1}, 1)))) == 1) plan.apart = apart;
  return plan;
}

namespace {

// A variable of which the first digit says which part of a tensor is summed over, as the output channel of a grouped
// convolution does: x[…, (channel // 8) * 4 + k].
struct Digits {
  Var var;
  int64_t base = 0;
};
std::optional<Digits> group_digits(const Block& block) {
  std::optional<Digits> found;
  post_order(block.body, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    if (!load) return;
    for (const Expr& index : load->indices) {
      const Linear sum = linear(index);
      if (sum.terms.size() < 2) continue;
      for (const Linear::Term& term : sum.terms) {
        const auto* digit = term.atom.as<FloorDiv>();
        if (digit && digit->a.is<VarNode>() && as_int(digit->b).value_or(0) > 1)
          found = Digits{cast<VarNode>(digit->a), *as_int(digit->b)};
      }
    }
  });
  return found;
}

// Groups get a loop of their own.
Status set_groups_apart(Schedule& schedule, const std::string& name) {
  const BlockRV block = TRY(schedule.get_block(name));
  const Ref<Block> node = TRY(schedule.get(block));
  const auto digits = group_digits(*node);
  if (!digits) return support::success();
  IndexMap map;
  for (const IterVar& iter : node->iter_vars) {
    const Var v = var(iter->var->name, iter->var->dtype);
    map.from.push_back(v);
    if (iter->var == digits->var) {
      map.to.push_back(floordiv(v, int64(digits->base)));
      map.to.push_back(floormod(v, int64(digits->base)));
    } else {
      map.to.push_back(v);
    }
  }
  return schedule.transform_block_layout(block, map);
}

// Where the block behind the contraction writes it in another order, the lanes not innermost: it takes what a loop has
// computed of whole rows of its own, which lie in memory of the loop's, in squares that pass through registers.
Status turn_behind(Schedule& schedule, const RuleContext& context, const std::string& behind) {
  const BlockRV turned = TRY(schedule.get_block(behind));
  const auto all = constant_product(find(works(schedule.function()), behind)->loops);
  const auto row = as_int(TRY(schedule.get(TRY(schedule.get_loops(turned)).back()))->extent);
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(TRY(schedule.get_producers(turned)).at(0)));
  for (size_t i = loops.size(); i-- > 0;) {
    Schedule attempt = schedule;
    if (!attempt.reverse_compute_at(turned, loops[i])) continue;
    if (as_int(TRY(attempt.get(TRY(attempt.get_loops(turned)).back()))->extent) != row) continue;
    const std::vector<Work> list = works(attempt.function());
    const Work& work = *find(list, behind);
    const auto inside = constant_product({work.loops.begin() + static_cast<ptrdiff_t>(i) + 1, work.loops.end()});
    if (!all || !inside || 2 * *inside > *all) break;  // by itself, threads share it
    const int64_t lanes = context.target.lanes(widest_bits(work.block()));
    const auto crossing = crossing_loop(attempt.function(), work, lanes);
    if (!crossing || !tile_crossing(attempt, context, turned, *crossing, lanes, false)) break;
    schedule = std::move(attempt);
    return support::success();
  }
  return vectorize_elementwise(schedule, context, turned);
}

// Schedules a function around its one contraction; declines one that reads windows when they are not wanted, and one
// that does not when they are.
Result<Outcome> schedule_contraction(Schedule& schedule, const RuleContext& context, std::string_view rule,
                                     bool windows) {
  std::string why;
  const std::vector<Work> before = works(schedule.function());
  const Work* reduction = only_reduction(before, why);
  if (!reduction) return Outcome(why);
  const std::string name = reduction->block().name;
  Surroundings around = TRY(inline_around(schedule, name, &is_read_often));
  TRY(set_groups_apart(schedule, name));
  const std::vector<Work> list = works(schedule.function());
  const auto found = contraction(schedule.function(), *find(list, name));
  if (!found) return Outcome(found.diagnostics()[0].message);
  if (found->windows != windows)
    return Outcome(windows ? "it reads no windows of its input" : "it reads windows of its input");
  // Sums of no terms still have their start, which lies in memory, and what follows reads it there.
  if (found->updates && !around.epilogue.empty()) around.behind.push_back(std::exchange(around.epilogue, ""));
  std::string turned;
  if (!around.epilogue.empty()) {
    const Work& epilogue = *find(list, around.epilogue);
    const int64_t lanes = context.target.lanes(widest_bits(epilogue.block()));
    if (crossing_loop(schedule.function(), epilogue, lanes)) turned = std::exchange(around.epilogue, "");
  }
  const TilePlan plan = TRY(plan_tile(schedule, context, rule, *found));
  // Where a primitive refuses the copies, weights are read as they lie.
  Schedule attempt = schedule;
  const auto with_panels = ask_for_panels(attempt, context, rule, *found, plan);
  if (with_panels && !*with_panels) schedule = attempt;
  if (with_panels && *with_panels && register_tile(attempt, context, **with_panels, around.epilogue))
    schedule = std::move(attempt);
  else
    TRY(register_tile(schedule, context, plan, around.epilogue));
  if (!turned.empty()) TRY(turn_behind(schedule, context, turned));
  for (const std::vector<std::string>* list : {&around.before, &around.behind})
    for (const std::string& other : *list)
      TRY(vectorize_elementwise(schedule, context, TRY(schedule.get_block(other))));
  return Outcome();
}

}  // namespace

// Sums of products without windows. A tile of rows by vectors stays in registers over the whole reduction; the weights
// (packed or plain) are read in vectors, the other tensor element by element.
Result<Outcome> gemm(Schedule& schedule, const RuleContext& context) {
  return schedule_contraction(schedule, context, "gemm", false);
}

// Direct convolution as a product of matrices over the taps of the window. Vectors run along output channels (weights
// packed "OHWI{n}o"), rows along the output's last axis; padding is a block of its own before it.
Result<Outcome> conv(Schedule& schedule, const RuleContext& context) {
  return schedule_contraction(schedule, context, "conv", true);
}

}  // namespace lathe::schedule
