// pool: one reduction whose elements are contiguous along its last spatial axis: windows (pooling, depthwise
// convolution), and reductions over axes other than the last. Vectors run along that axis, and the accumulators stay in
// registers.
#include "ir/visit.h"
#include "schedule/analysis/linear.h"
#include "schedule/rules/nest/rows.h"
#include "schedule/rules/tile/tile_model.h"

namespace lathe::schedule {

namespace {

// Elements of a window that are written out at most; and of one of its rows, where these are written out alone.
constexpr int64_t most_steps = 36, most_in_row = 128;

// How windows move along an axis: elements from one to the next, and from the first to the last of one.
struct Slide {
  int64_t stride = 0, reach = 0;
  std::vector<size_t> along;  // the sums that move along the same axis, by position among the loops
};

// The elements of a window, `most` at most; nothing where there are more, or their number is not known.
std::optional<int64_t> window_steps(const Work& work, const TilePlan& plan, int64_t most) {
  int64_t steps = 1;
  for (const size_t i : plan.reduce) {
    const auto extent = as_int(work.loops[i]->extent);
    if (!extent || *extent > most) return std::nullopt;
    steps *= *extent;
    if (steps > most) return std::nullopt;
  }
  return steps;
}

// How windows of neighbours along `row` overlap, where they have at most so many elements, and none is asked whether it
// is inside.
std::optional<Slide> slides(const Work& work, const std::vector<Access>& all, const For& row, const TilePlan& plan,
                            int64_t most = most_steps) {
  if (!window_steps(work, plan, most)) return std::nullopt;
  if (is_conditional(work.block())) return std::nullopt;
  for (const Access& access : all) {
    if (access.block != &work.block() || access.writes) continue;
    for (const Range& range : access.region) {
      const Linear index = linear(range.min);
      Slide slide;
      for (const Linear::Term& term : index.terms) {
        if (term.atom == Expr(row.loop_var)) slide.stride = std::abs(term.coefficient);
        for (const size_t i : plan.reduce)
          if (term.atom == Expr(work.loops[i]->loop_var)) {
            slide.reach += std::abs(term.coefficient) * (as_int(work.loops[i]->extent).value_or(1) - 1);
            slide.along.push_back(i);
          }
      }
      if (slide.stride > 0 && slide.reach >= slide.stride) return slide;
    }
  }
  return std::nullopt;
}

// Whether what the block reads is contiguous along its innermost sum, which is long enough for vectors.
bool sums_along_row(const PrimFunc& function, const Work& work, const target::Target& target) {
  const std::vector<const For*> sums = loops_of(work, IterType::reduce);
  const auto extent = sums.empty() ? std::nullopt : as_int(sums.back()->extent);
  if (!extent || *extent < 2 * target.lanes(widest_bits(work.block()))) return false;
  for (const Access& access : accesses(function.body))
    if (access.block == &work.block() && !access.writes && access.buffer != work.block().body.as<BufferStore>()->buffer)
      if (const auto stride = stride_of(access, *sums.back()); !stride || *stride < 0 || *stride > 1) return false;
  return true;
}

// Whether the block sums products.
bool sums_products(const Work& work) {
  const auto* store = work.block().body.as<BufferStore>();
  const auto* sum = store ? store->value.as<Add>() : nullptr;
  return sum && (sum->a.is<Mul>() || sum->b.is<Mul>());
}

// How many neighbours of a row go down an image together, so that registers hold their sums, what they read of all rows
// of a window, and the weights: each row of the image is then read once for all windows that reach it. At most `most`;
// 1 where there is no room for two.
int64_t neighbours_going_down(const Work& work, const Slide& along, const Slide& down, int64_t most,
                              const target::Target& target) {
  const int64_t weights = sums_products(work) ? (along.reach + 1) * (down.reach + 1) : 0;
  const auto registers = [&](int64_t count) {
    return ((count - 1) * along.stride + along.reach + 1) * (down.reach + 1) + count + weights;
  };
  while (most > 1 && registers(most) > target.vector_registers) --most;
  return most;
}

// Rows that a tile of neighbours goes down: about four. Where threads share the tiles, so many that these come out even
// among them, two for each at best; one where none do.
int64_t rows_going_down(std::optional<int64_t> rows, bool threads, const target::Target& target) {
  if (!threads || target.cores < 2) return equal_tiles(rows, 4);
  for (const int64_t each : {2, 1})
    for (const int64_t tall : {4, 5, 6, 7, 8, 3, 2}) {
      const int64_t tiles = rows && *rows % tall == 0 ? *rows / tall : 0;
      const bool is_even = tiles % target.cores == 0 && tiles >= each * target.cores;
      if (is_even || tiles >= 4 * target.cores) return tall;
    }
  return 1;
}

// Whether threads share the vectors rather than the tiles of rows: these do not come out even among them, and vectors
// do.
bool shares_lanes(const Work& work, const TilePlan& plan, const target::Target& target) {
  if (target.cores < 2 || !enough_for_threads(work, plan)) return false;
  const auto is_even = [&](int64_t turns) { return turns % target.cores == 0 || turns >= 4 * target.cores; };
  std::vector<const For*> around;
  for (const size_t loop : plan.batch) around.push_back(work.loops[loop]);
  const auto batches = constant_product(around);
  const auto lanes = as_int(work.loops[plan.lane]->extent);
  const auto rows = as_int(work.loops[*plan.row]->extent);
  const auto down = plan.between.empty() ? std::optional<int64_t>(1) : as_int(work.loops[plan.between[0]]->extent);
  if (!batches || !lanes || !rows || !down) return false;
  const auto tiles = [](int64_t extent, int64_t each) { return (extent + each - 1) / each; };
  return !is_even(*batches * tiles(*down, plan.tall) * tiles(*rows, plan.rows)) &&
         is_even(*batches * tiles(*lanes, plan.lanes * plan.vectors));
}

// Into how many pieces the rows of an image can be cut so that tiles of the plan divide each.
std::vector<int64_t> row_pieces(std::optional<int64_t> height, const TilePlan& plan) {
  std::vector<int64_t> choices{1};
  for (int64_t pieces = 2; height && pieces * plan.rows <= *height; ++pieces)
    if (*height % (pieces * plan.rows) == 0) choices.push_back(pieces);
  return choices;
}

// The pieces of which each is padded, and then read: the smallest, so that reading from memory and computing take turns
// quickly, of which neighbours share no more than a quarter. One where the image fills no quarter of the nearest cache.
int64_t preferred_pieces(const std::vector<int64_t>& choices, int64_t height, int64_t row_bytes, const Slide& slide,
                         const target::Target& target) {
  int64_t preferred = 1;
  if (4 * height * slide.stride * row_bytes <= target.cache_bytes(1, 32 << 10)) return preferred;
  for (const int64_t pieces : choices)
    if (4 * (slide.reach + 1 - slide.stride) <= height / pieces * slide.stride) preferred = pieces;
  return preferred;
}

// What a block that pads asks of its indices, or null.
Expr padding_condition(const Work& work) {
  const Call* choice = choice_of(work.block());
  return choice && !work.block().body.as<BufferStore>()->indices.empty() ? choice->args[0] : Expr();
}

// A block that pads along the axis that vectors run along: asked element by element, each vector would have to be put
// together.
bool pads_lanes(const Work& work) {
  const Expr condition = padding_condition(work);
  if (!condition) return false;
  const Expr& last = work.block().body.as<BufferStore>()->indices.back();
  return last.is<VarNode>() && uses_var(condition, cast<VarNode>(last));
}

// A block that pads across the vectors, for windows of so many elements that asking for each costs more than a copy of
// the image: of fewer products than other elements, whose windows are written out without a copy.
bool pads_wide_windows(const Work& work, const Work& reduction) {
  const int64_t wide = sums_products(reduction) ? 25 : most_steps + 1;
  const auto steps = constant_product(loops_of(reduction, IterType::reduce));
  return padding_condition(work) && !pads_lanes(work) && steps && *steps >= wide;
}

// Whether the block reads overlapping windows of the buffer along its last axis.
bool reads_windows(const PrimFunc& function, const Block& block, const Buffer& buffer) {
  for (const Access& access : accesses(function.body))
    if (access.block == &block && !access.writes && access.buffer == buffer && !access.region.empty() &&
        linear(access.region.back().min).terms.size() > 1)
      return true;
  return false;
}

// Vectors along the rows of the padded image, and what is left over as a vector of its own.
Status vectorize_padding(Schedule& schedule, const RuleContext& context, BlockRV padding) {
  const LoopRV row = TRY(schedule.get_loops(padding)).back();
  const auto extent = as_int(TRY(schedule.get(row))->extent);
  const int64_t lanes = context.target.lanes(widest_bits(*TRY(schedule.get(padding))));
  if (lanes < 2) return support::success();
  if (extent && *extent < lanes) return *extent > 1 ? schedule.vectorize(row) : support::success();
  const std::vector<LoopRV> parts = TRY(schedule.peel(row, lanes));
  TRY(schedule.vectorize(TRY(schedule.split(parts[0], {Factor(), lanes}))[1]));
  const auto rest = parts.size() > 1 ? as_int(TRY(schedule.get(parts[1]))->extent) : std::nullopt;
  return rest.value_or(1) > 1 ? schedule.vectorize(parts[1]) : support::success();
}

// The padded image comes into memory of its own, one piece of it before the tiles that read it: it is in the nearest
// caches then.
Status place_padding(Schedule& schedule, const RuleContext& context, const TilePlan& plan, BlockRV block,
                     const std::vector<std::string>& before) {
  const size_t around = plan.batch.size() + (plan.share > 1 ? 1 : 0);
  for (const std::string& name : before) {
    const BlockRV padding = TRY(schedule.get_block(name));
    const std::vector<LoopRV> loops = TRY(schedule.get_loops(block));
    Schedule attempt = schedule;
    if (around > 0 && attempt.compute_at(padding, loops.at(around - 1))) schedule = std::move(attempt);
    TRY(vectorize_padding(schedule, context, padding));
  }
  return support::success();
}

// Windows of so many elements that only one of their rows is written out: neighbours along it share what they read and
// the weights. One vector of lanes at a time goes over a piece of the image, of which it has a copy of its own, so that
// what rows of windows read again lies side by side in a near cache.
class LargeWindows {
 public:
  // Takes the loop over the neighbours, those around it, and the order of the sums.
  LargeWindows(const Work& work, const std::vector<Access>& all, const std::vector<size_t>& spatial, const Slide& slide,
               const RuleContext& context, TilePlan& plan)
      : context_(context), plan_(plan) {
    std::vector<size_t> order;
    for (const size_t loop : plan.reduce)
      if (loop != slide.along[0]) order.push_back(loop);
    order.push_back(slide.along[0]);
    plan.reduce = std::move(order);
    plan.row = spatial.back();
    Image image{.bytes = plan.lanes * widest_bits(work.block()) / 8};
    take_axis(image, as_int(work.loops[*plan.row]->extent), slide);
    std::vector<const For*> around;
    for (size_t i = 0; i + 1 < spatial.size(); ++i) {
      const For& loop = *work.loops[spatial[i]];
      const std::optional<Slide> own = slides(work, all, loop, plan, most_elements);
      if (!own) around.push_back(&loop);
      (own ? plan.between : plan.batch).push_back(spatial[i]);
      if (!own) continue;
      if (plan.between.size() == 1) image.rows = as_int(loop.extent), image.first = *own;
      take_axis(image, as_int(loop.extent), *own);
    }
    plan.slides = plan.within_thread = true;
    enough_ = enough_for_threads(work, plan);
    const auto lanes = as_int(work.loops[plan.lane]->extent);
    const auto batches = constant_product(around);
    if (lanes && batches) turns_ = *batches * ((*lanes + plan.lanes - 1) / plan.lanes);
    look_for_pieces(image);
  }

  // How windows along a row overlap where they are such.
  static std::optional<Slide> of(const Work& work, const std::vector<Access>& all, const For& row,
                                 const TilePlan& plan) {
    std::optional<Slide> slide = slides(work, all, row, plan, most_elements);
    if (!slide || slide->along.size() != 1) return std::nullopt;
    return as_int(work.loops[slide->along[0]]->extent).value_or(most_in_row + 1) <= most_in_row ? slide : std::nullopt;
  }

  // Neighbours whose sums, and what they read at one step, fit the registers beside the weight.
  static int64_t neighbours(const Slide& slide, const target::Target& target) {
    return std::clamp<int64_t>((target.vector_registers - 2) / (1 + slide.stride), 1, 14);
  }

  // Into how many pieces the image can be cut, 0 for no copies; and the fewest that fit half of the second cache and
  // are enough for the cores.
  const std::vector<int64_t>& pieces() const { return choices_; }
  int64_t preferred_pieces() const { return preferred_; }

  Status run(Schedule& schedule, const Surroundings& around, int64_t pieces) {
    const BlockRV sums = TRY(schedule.get_block(plan_.block));
    std::vector<BlockRV> copies;
    if (pieces > 0) copies = TRY(copy_what_is_read(schedule, sums));
    for (const std::string& other : around.before) copies.push_back(TRY(schedule.get_block(other)));
    if (pieces > 1) plan_.shared = plan_.between.front(), plan_.share = pieces;
    TRY(register_tile(schedule, context_, plan_, around.epilogue));
    const std::vector<LoopRV> loops = TRY(schedule.get_loops(sums));
    const size_t outside = plan_.batch.size() + (pieces > 1 ? 2 : 1);
    for (const BlockRV& copy : copies) {
      Schedule attempt = schedule;
      if (pieces > 0 && attempt.compute_at(copy, loops.at(outside - 1))) {
        schedule = std::move(attempt);
        TRY(vectorize_padding(schedule, context_, copy));
      } else {
        TRY(vectorize_elementwise(schedule, context_, copy));
      }
    }
    if (!enough_) return support::success();
    const size_t shared = pieces > 0 ? outside : outside + plan_.between.size();
    try_parallel(schedule, {loops.begin(), loops.begin() + static_cast<ptrdiff_t>(shared)});
    return support::success();
  }

 private:
  static constexpr int64_t most_elements = 1 << 12;

  // What one vector of lanes reads of the image, in bytes, where that is known, and how its outermost axis is walked.
  struct Image {
    std::optional<int64_t> bytes, rows = 1;
    Slide first = {.stride = 1};
  };
  static void take_axis(Image& image, std::optional<int64_t> extent, const Slide& slide) {
    if (!extent || !image.bytes)
      image.bytes = std::nullopt;
    else
      *image.bytes *= (*extent - 1) * slide.stride + slide.reach + 1;
  }

  void look_for_pieces(const Image& image) {
    choices_ = {0};
    if (!image.bytes || !image.rows) return;
    const auto rows_read = [&](int64_t rows) { return (rows - 1) * image.first.stride + image.first.reach + 1; };
    const int64_t near = context_.target.cache_bytes(2, 512 << 10) / 2, row = *image.bytes / rows_read(*image.rows);
    for (int64_t count = 1; count <= *image.rows; ++count) {
      const int64_t rows = *image.rows / count;
      // What neighbouring pieces both read is copied twice.
      if (*image.rows % count != 0 || (count > 1 && 2 * rows * image.first.stride < image.first.reach)) continue;
      choices_.push_back(count);
      const bool is_enough = !enough_ || turns_ * count >= context_.target.cores;
      if (preferred_ == 0 && is_enough && row * rows_read(rows) <= near) preferred_ = count;
    }
  }

  // Parameters that the block reads come into copies.
  static Result<std::vector<BlockRV>> copy_what_is_read(Schedule& schedule, BlockRV block) {
    std::vector<BlockRV> copies;
    for (const Buffer& buffer : operands_of(*TRY(schedule.get(block)))) {
      if (is_written(schedule, buffer)) continue;
      const std::vector<Buffer> now = operands_of(*TRY(schedule.get(block)));
      const int64_t number = std::find(now.begin(), now.end(), buffer) - now.begin();
      copies.push_back(TRY(schedule.cache_read(block, number, "global", {block})));
    }
    return copies;
  }

  // Whether a block of the program writes it.
  static bool is_written(const Schedule& schedule, const Buffer& buffer) {
    for (const Access& access : accesses(schedule.function().body))
      if (access.writes && access.buffer == buffer) return true;
    return false;
  }

  const RuleContext& context_;
  TilePlan& plan_;
  bool enough_ = false;  // for threads
  int64_t turns_ = 1;    // over the image: of vectors, and of the batch
  std::vector<int64_t> choices_;
  int64_t preferred_ = 0;
};

// The axes of the one reduction, as a plan and the spatial ones before the last, along which vectors run; or why it is
// not for this rule.
Outcome plan_axes(const PrimFunc& function, const Work& work, const target::Target& target, TilePlan& plan,
                  std::vector<size_t>& spatial) {
  const std::string& name = plan.block;
  if (!is_reduction(work.block()) || !work.block().body.is<BufferStore>())
    return fmt::format("block '{}' is not a plain reduction", name);
  for (size_t i = 0; i < work.loops.size(); ++i) {
    const auto& values = work.realize->iter_values;
    const auto bound = std::find(values.begin(), values.end(), Expr(work.loops[i]->loop_var));
    if (bound == values.end()) return fmt::format("block '{}' is not bound to its loops one to one", name);
    const IterType type = work.block().iter_vars[static_cast<size_t>(bound - values.begin())]->type;
    (type == IterType::reduce ? plan.reduce : spatial).push_back(i);
  }
  if (spatial.empty()) return fmt::format("block '{}' has no spatial axis", name);
  plan.lane = spatial.back();
  spatial.pop_back();
  const For& lane = *work.loops[plan.lane];
  bool moves = false;
  for (const Access& access : accesses(function.body)) {
    if (access.block != &work.block()) continue;
    const auto stride = stride_of(access, lane);
    if (!stride || *stride < 0 || *stride > 4 || (access.writes && *stride != 1))
      return fmt::format("'{}' is not contiguous along axis '{}'", access.buffer->name, lane.loop_var->name);
    moves = moves || (!access.writes && access.buffer != work.block().body.as<BufferStore>()->buffer && *stride != 0);
  }
  if (!moves) return fmt::format("nothing is read along axis '{}'", lane.loop_var->name);
  if (is_int(lane.extent, 1) && sums_along_row(function, work, target))
    return fmt::format("axis '{}' is one column of what is contiguous along a sum", lane.loop_var->name);
  return std::nullopt;
}

// Vectors as wide as fit the axis evenly, where the machine has vectors of so many elements.
int64_t lanes_along(std::optional<int64_t> width, int64_t full, const target::Target& target) {
  if (!width || *width % full == 0) return full;
  if (*width < full) return std::max<int64_t>(*width, 1);
  if (!target.has("avx512vl")) return full;  // others move such a vector in several pieces
  const int64_t divisor = largest_divisor(*width, full);
  return *width / divisor <= (*width + full - 1) / full ? divisor : full;  // as many, and none of them short
}

// How many neighbours of a row have their sums at once, so that there are four vectors of these if such tiles divide
// it. Of a row whose length is not known two at least: a loop over its tiles stays inside the threads' own then, whose
// index would have to be divided by that length for each of them.
int64_t rows_at_once(std::optional<int64_t> height, int64_t vectors) {
  const int64_t most = std::max<int64_t>(least_down_columns / vectors, 1);
  return height ? largest_divisor(std::max<int64_t>(*height, 1), most) : std::max<int64_t>(most, 2);
}

// What the rule knows of its one reduction.
struct Pooled {
  const Work& work;
  const std::vector<Access> all;  // of the function
  const Surroundings& around;
  bool pads_pieces = false;        // what pads along the lanes is copied, a piece of the image at a time
  bool has_long_epilogue = false;  // which takes the registers for itself
};

// Windows that are written out. One vector of as many neighbours as a quarter of the registers holds: what they read,
// each once, and the weights fit the rest. Lanes innermost, so that memory is walked in its order. Takes the loops that
// it cuts from `spatial`.
Status plan_windows(Schedule& schedule, const RuleContext& context, const Pooled& pooled, const Slide& slide,
                    std::vector<size_t>& spatial, TilePlan& plan) {
  const Work& work = pooled.work;
  const auto choice = [&](const char* question, const std::vector<int64_t>& choices, int64_t preferred) {
    return decide(schedule, context, "pool", question, choices, preferred);
  };
  const auto height = as_int(work.loops[spatial.back()]->extent);
  const int64_t fit = std::max<int64_t>(context.target.vector_registers / 4, 1);
  // What rows share is read by sums that follow one another, so that few vectors wait in registers.
  std::vector<size_t> order, along;
  for (const size_t loop : plan.reduce) {
    const bool moves_along = std::find(slide.along.begin(), slide.along.end(), loop) != slide.along.end();
    (moves_along ? along : order).push_back(loop);
  }
  order.insert(order.end(), along.begin(), along.end());
  plan.reduce = std::move(order);
  plan.row = spatial.back();
  spatial.pop_back();
  const std::optional<Slide> down = spatial.empty() || pooled.pads_pieces
                                        ? std::nullopt
                                        : slides(work, pooled.all, *work.loops[spatial.back()], plan);
  const auto count = down ? as_int(work.loops[spatial.back()]->extent) : std::nullopt;
  int64_t tall =
      down && !pooled.has_long_epilogue ? rows_going_down(count, enough_for_threads(work, plan), context.target) : 1;
  const int64_t narrow = tall > 1 ? neighbours_going_down(work, slide, *down, fit, context.target) : 1;
  if (narrow == 1) tall = 1;
  const int64_t rows = equal_tiles(height, narrow > 1 ? narrow : fit);
  plan.rows = TRY(schedule.get(TRY(choice("rows", up_to(fit, height), rows))));
  if (down) {
    plan.tall = TRY(schedule.get(TRY(choice("tall", up_to(8, count), tall))));
    if (plan.tall > 1) {
      plan.between = {spatial.back()};
      spatial.pop_back();
    }
  }
  if (pooled.pads_pieces) {
    const std::vector<int64_t> choices = row_pieces(height, plan);
    const int64_t row_bytes = as_int(work.loops[plan.lane]->extent).value_or(0) * widest_bits(work.block()) / 8;
    const int64_t pieces = preferred_pieces(choices, height.value_or(0), row_bytes, slide, context.target);
    plan.shared = plan.row;
    plan.share = TRY(schedule.get(TRY(choice("pieces", choices, pieces))));
  }
  plan.batch = spatial;
  const int64_t across = !pooled.pads_pieces && shares_lanes(work, plan, context.target) ? 1 : 0;
  plan.rows_first = TRY(schedule.get(TRY(choice("across", {0, 1}, across)))) == 0;
  return support::success();
}

// Windows of which one row is written out, or what is no window: see LargeWindows.
Result<bool> take_large_windows(Schedule& schedule, const RuleContext& context, const Pooled& pooled,
                                const std::vector<size_t>& spatial, TilePlan& plan) {
  if (spatial.empty()) return false;
  const auto large = LargeWindows::of(pooled.work, pooled.all, *pooled.work.loops[spatial.back()], plan);
  if (!large) return false;
  LargeWindows windows(pooled.work, pooled.all, spatial, *large, context, plan);
  const auto height = as_int(pooled.work.loops[*plan.row]->extent);
  const int64_t fit = LargeWindows::neighbours(*large, context.target);
  const int64_t rows = equal_tiles(height, fit);
  plan.rows = TRY(schedule.get(TRY(decide(schedule, context, "pool", "rows", up_to(fit, height), rows))));
  const ExprRV pieces = TRY(decide(schedule, context, "pool", "pieces", windows.pieces(), windows.preferred_pieces()));
  TRY(windows.run(schedule, pooled.around, TRY(schedule.get(pieces))));
  return true;
}

}  // namespace

Result<Outcome> pool(Schedule& schedule, const RuleContext& context) {
  std::string why;
  const std::vector<Work> before = works(schedule.function());
  const Work* reduction = only_reduction(before, why);
  if (!reduction) return Outcome(why);
  const std::string name = reduction->block().name;
  const PrimFunc& given = *reduction->function;
  const auto keep = [&](const Work& work) {
    if (is_costly(work.block())) return true;
    const auto* store = work.block().body.as<BufferStore>();
    return (pads_lanes(work) && reads_windows(given, reduction->block(), store->buffer)) ||
           pads_wide_windows(work, *reduction);
  };
  const Surroundings around = TRY(inline_around(schedule, name, keep));
  const std::vector<Work> list = works(schedule.function());
  const Work& work = *find(list, name);
  TilePlan plan{name, {}, 0, {}, {}, {}, 1, 1, 1};
  std::vector<size_t> spatial;
  if (Outcome declined = plan_axes(schedule.function(), work, context.target, plan, spatial)) return declined;

  // The model: vectors as wide as fit the axis evenly, and two to four independent chains to hide latencies.
  const auto width = as_int(work.loops[plan.lane]->extent);
  const int64_t lanes = lanes_along(width, context.target.lanes(widest_bits(work.block())), context.target);
  plan.lanes = TRY(schedule.get(TRY(decide(schedule, context, "pool", "lanes", {lanes}, lanes))));
  Pooled pooled{work, accesses(schedule.function().body), around};
  pooled.pads_pieces = std::any_of(around.before.begin(), around.before.end(),
                                   [&](const std::string& other) { return pads_lanes(*find(list, other)); });
  pooled.has_long_epilogue = !around.epilogue.empty() && is_costly(find(list, around.epilogue)->block());
  const std::optional<Slide> slide =
      spatial.empty() ? std::nullopt : slides(work, pooled.all, *work.loops[spatial.back()], plan);
  if (!slide && TRY(take_large_windows(schedule, context, pooled, spatial, plan))) {
    for (const std::string& other : around.behind)
      TRY(vectorize_elementwise(schedule, context, TRY(schedule.get_block(other))));
    return Outcome();
  }
  plan.window = slide.has_value();
  const int64_t bits = plan.lanes * widest_bits(work.block());
  const int64_t vectors = plan.window || !width ? 1 : vectors_down_columns(*width / plan.lanes, bits, context.target);
  const std::set<int64_t> choices{1, largest_divisor(vectors, least_down_columns), vectors};
  plan.vectors =
      TRY(schedule.get(TRY(decide(schedule, context, "pool", "vectors", {choices.begin(), choices.end()}, vectors))));
  if (slide) {
    TRY(plan_windows(schedule, context, pooled, *slide, spatial, plan));
  } else if (!spatial.empty()) {
    const auto height = as_int(work.loops[spatial.back()]->extent);
    const int64_t rows = rows_at_once(height, plan.vectors);
    if (rows > 1) {
      plan.row = spatial.back();
      plan.rows = TRY(schedule.get(TRY(decide(schedule, context, "pool", "rows", {1, rows}, rows))));
      spatial.pop_back();
    }
  }
  plan.batch = spatial;
  plan.within_thread = plan.window && pooled.pads_pieces;
  const BlockRV sums = TRY(schedule.get_block(name));
  const bool enough = enough_for_threads(work, plan);
  TRY(register_tile(schedule, context, plan, around.epilogue));
  if (plan.within_thread) {
    TRY(place_padding(schedule, context, plan, sums, around.before));
    const std::vector<LoopRV> loops = TRY(schedule.get_loops(sums));
    const size_t shared = plan.batch.size() + (plan.share > 1 ? 1 : 0);
    if (enough && shared > 0) try_parallel(schedule, {loops.begin(), loops.begin() + static_cast<ptrdiff_t>(shared)});
  }
  for (const std::vector<std::string>* others : {&around.before, &around.behind})
    if (others != &around.before || !plan.within_thread)
      for (const std::string& other : *others)
        TRY(vectorize_elementwise(schedule, context, TRY(schedule.get_block(other))));
  return Outcome();
}

}  // namespace lathe::schedule
