#include "schedule/rules/tile/tile_model.h"

#include "arith/analyzer.h"

namespace lathe::schedule {

int64_t nearest_ways(const target::Target& target) { return target.cache_bytes(1, 32 << 10) / way_bytes; }

namespace {

int64_t elements_of(const Buffer& buffer) {
  int64_t elements = 1;
  for (const Expr& extent : buffer->shape) elements *= as_int(extent).value_or(1);
  return elements;
}

int64_t bytes_of(const Buffer& buffer) { return elements_of(buffer) * buffer->dtype.storage_bits() / 8; }

// What a byte costs that is read again and again from a piece of memory so large, in time of the second cache: nothing
// from the nearest, which feeds the tile as fast as it computes; the others in the ratio of their usual bandwidths.
// Half of a cache is left to what else passes through it.
double cost_of_a_byte(int64_t footprint, const target::Target& target) {
  if (2 * footprint <= target.cache_bytes(1, 32 << 10)) return 0;
  return 2 * footprint <= target.cache_bytes(2, 512 << 10) ? 1 : 4;
}

}  // namespace

TileWork tile_work(const PrimFunc& function, const Work& work, const Contraction& found, const TilePlan& plan) {
  const auto extent = [&](size_t loop) { return as_int(work.loops[loop]->extent).value_or(1); };
  const auto tiles_of = [&](size_t loop, int64_t size) { return (extent(loop) + size - 1) / size; };
  int64_t batches = 1;
  for (const size_t loop : found.batch) batches *= std::max<int64_t>(extent(loop), 1);
  TileWork result;
  // Windows read elements again; steps of more than one pass some by.
  int64_t reads = found.first->dtype.storage_bits() / 8;
  for (const auto* loops : {&found.between, &found.reduce})
    for (const size_t loop : *loops) reads *= extent(loop);
  if (found.row) reads *= extent(*found.row);
  result.first = std::min(bytes_of(found.first) / batches, reads);
  result.cut = found.weights->dtype.storage_bits() / 8 * plan.lanes * plan.vectors;
  for (const size_t loop : found.reduce) result.cut *= extent(loop);
  result.lane_tiles = tiles_of(found.lane, plan.lanes * plan.vectors);
  result.weights = result.cut * result.lane_tiles;
  if (found.row) result.row_tiles = tiles_of(*found.row, plan.rows);
  if (found.row && found.between.empty())
    result.row_rest = static_cast<double>(extent(*found.row) % plan.rows) / static_cast<double>(plan.rows);
  result.batches = batches;
  result.cuts = result.lane_tiles;
  if (const int64_t rest = extent(found.lane) % (plan.lanes * plan.vectors); rest > 0 && result.cuts > 1) {
    --result.cuts;
    const int64_t vectors = (rest + plan.lanes - 1) / plan.lanes;
    result.cut_rest = static_cast<double>(vectors) / static_cast<double>(plan.vectors);
  }
  for (const size_t loop : found.between)
    if (plan.tall == 1 || loop != found.between.back()) result.cut_shares *= extent(loop);
  for (const size_t loop : found.between)
    result.row_tiles *= loop == found.between.back() ? tiles_of(loop, plan.tall) : extent(loop);
  result.products = plan.vectors * result.lane_tiles * plan.rows * plan.tall * result.row_tiles;
  for (const size_t loop : found.reduce) result.products *= extent(loop);
  const int64_t elements = elements_of(work.block().body.as<BufferStore>()->buffer);
  for (const auto& [param, buffer] : function.buffer_map) {
    if (elements_of(buffer) >= elements && buffer != found.first && buffer != found.weights)
      result.outputs += bytes_of(buffer) / batches;
  }
  return result;
}

std::optional<int64_t> most_iterations(const std::vector<const For*>& around, const For& loop) {
  arith::Analyzer known;
  for (const For* each : around) known.bind(each->loop_var, Range{each->min, each->extent});
  const int64_t most = known.const_int_bound(known.simplify(loop.extent)).max_value;
  return most < std::numeric_limits<int64_t>::max() / 2 ? std::optional(most) : std::nullopt;
}

int64_t tiles_by_halves(int64_t most) { return most >= 8 ? 8 : most >= 4 ? 4 : most; }

int64_t tiles_of_unknown(int64_t most) { return most == 6 || most == 7 ? 6 : tiles_by_halves(most); }

int64_t equal_tiles(std::optional<int64_t> rows, int64_t most) {
  if (!rows || *rows == 0) return most;
  if (*rows <= most) return *rows;
  const int64_t divisor = largest_divisor(*rows, most);
  const int64_t tiles = (*rows + most - 1) / most;
  // A divisor avoids a second body, unless it leaves too many registers idle.
  return divisor * 4 >= most * 3 ? divisor : (*rows + tiles - 1) / tiles;
}

namespace {

// Rows of the first tensor whose lines meet in one set of the nearest cache: how many sets they spread over, and the
// lines that a set has.
struct Meeting {
  int64_t sets = 1, ways = 1;
};
std::optional<Meeting> meeting_rows(const Contraction& found, const target::Target& target) {
  const int64_t apart = found.row_stride * found.first->dtype.storage_bits() / 8;
  const Meeting meeting{apart > 0 ? way_bytes / std::gcd(apart, way_bytes) : 1, nearest_ways(target)};
  return apart > 0 && meeting.ways > 1 ? std::optional(meeting) : std::nullopt;
}

// Rows of so many vectors that the registers hold: beside a row of weights, what multiplies it and one to spare; or, of
// fewer rows than vectors, beside what multiplies each of them and one vector of weights.
int64_t held_rows(int64_t vectors, const target::Target& target) {
  const int64_t over_weights = (target.vector_registers - 2 - vectors) / vectors;
  const int64_t over_rows = (target.vector_registers - 1) / (vectors + 1);
  return std::clamp<int64_t>(std::max(over_weights, std::min(over_rows, vectors - 1)), 1, 14);
}

// Code without the products of zeros has to be worth its size: one in so many of them at least.
bool worth_leaving_out(const Touching& touching) {
  constexpr int64_t one_in = 32;
  return touching.zeros * one_in >= touching.products;
}

// Whether tiles of `rows` hold whole rows, of which those at the sides touch zeros.
bool leaves_out_sides(const Contraction& found, std::optional<int64_t> height, int64_t rows) {
  constexpr int64_t most_bodies = 5;  // beside one another they have to fit what holds decoded instructions
  return found.rows.window && height == rows && found.rows.products <= most_bodies * rows && found.rows.zeros > 0 &&
         worth_leaving_out(found.rows);
}

}  // namespace

TileShape tile_shape(int64_t vectors, int64_t most_vectors, const Contraction& found, std::optional<int64_t> height,
                     const target::Target& target) {
  const auto held = [&](int64_t wide) { return held_rows(wide, target); };
  const TileShape tall{vectors, held(vectors)};
  const auto meeting = meeting_rows(found, target);
  const int64_t rows = equal_tiles(height, tall.rows);
  // Short rows share a tile.
  const int64_t together =
      found.shares_weights && height == rows ? tall.rows / std::max<int64_t>(rows, 1) * rows : rows;
  if (!meeting || together <= meeting->sets * meeting->ways) return tall;
  // One way is left to what else passes. Panels of weights are two vectors wide, so widths are doubled, for a tenth
  // more sums at least.
  const int64_t apart = meeting->sets * (meeting->ways - 1);
  const auto sums = [&](const TileShape& shape) { return equal_tiles(height, shape.rows) * shape.vectors; };
  TileShape wide{vectors, std::min(apart, tall.rows)};
  for (int64_t v = 2 * vectors; v <= most_vectors && held(v) >= 4; v *= 2)
    if (const TileShape wider{v, std::min(apart, held(v))}; sums(wider) * 10 >= sums(wide) * 11) wide = wider;
  return sums(wide) * 3 >= sums({vectors, rows}) * 2 ? wide : TileShape{vectors, tall.rows};
}

int64_t shared_width(int64_t vectors, int64_t lanes, int64_t width, const target::Target& target) {
  constexpr int64_t least = 4;  // sums side by side, that one addition need not wait for the last
  const auto time = [&](int64_t wide) {
    const int64_t cuts = (width + wide * lanes - 1) / (wide * lanes);
    return (cuts + target.cores - 1) / target.cores * wide;
  };
  int64_t best = vectors;
  for (int64_t v = vectors / 2; v >= least; v /= 2)
    if (4 * time(v) <= 3 * time(best)) best = v;
  return best;
}

bool wide_cuts_pay(const TileWork& tiles, int64_t vectors, int64_t lanes, std::optional<int64_t> width,
                   std::optional<int64_t> height, const Contraction& found, const target::Target& target) {
  constexpr int64_t enough_rows = 64;    // that what tiles of fewer rows leave over is little
  constexpr int64_t enough_chains = 20;  // that loads stay few beside what they feed
  // That what they leave over is little, too: less where windows read the first tensor again and again for each cut.
  const int64_t enough_cuts = found.windows ? 2 : 4;
  const int64_t wide = 2 * vectors;
  if (!width || (*width % (wide * lanes) != 0 && *width < enough_cuts * wide * lanes)) return false;
  const int64_t near = target.cache_bytes(2, 512 << 10);
  // Images of any size are large.
  if (!height) return found.windows && held_rows(wide, target) >= 4 && tiles.cut * wide <= near;
  if (tiles.row_tiles < enough_rows) return false;
  if (equal_tiles(height, held_rows(wide, target)) * wide < enough_chains) return false;
  if (leaves_out_sides(found, height, equal_tiles(height, held_rows(vectors, target)))) return false;
  return 2 * (tiles.first + tiles.outputs) > near && tiles.cut * wide <= near;
}

double cycles_of_step(int64_t rows, int64_t vectors, int64_t parts) {
  const double additions = static_cast<double>(rows * vectors) / 2, loads = static_cast<double>(rows + vectors) / 2;
  return std::max({additions, loads, 4.0 / static_cast<double>(parts)});
}

namespace {

// Cycles that a step of the sums of all tiles over `height` rows by `width` vectors takes. A load costs half as much
// again: it is one more instruction to a core that another thread uses at the same time.
double cycles_of_tiles(int64_t height, int64_t width, const TileShape& shape) {
  const auto cycles = [](int64_t rows, int64_t vectors) {
    return cycles_of_step(rows, vectors, 1) + static_cast<double>(rows + vectors) / 4;
  };
  const auto across = [&](int64_t rows) {
    const int64_t cuts = width / shape.vectors, rest = width % shape.vectors;
    return static_cast<double>(cuts) * cycles(rows, shape.vectors) + (rest > 0 ? cycles(rows, rest) : 0);
  };
  const int64_t tiles = (height + shape.rows - 1) / shape.rows;
  const int64_t low = height / tiles, high = height % tiles;  // so many tiles have a row more
  return static_cast<double>(tiles - high) * across(low) + static_cast<double>(high) * across(low + 1);
}

}  // namespace

bool low_tiles_pay(const TileWork& tiles, int64_t vectors, int64_t lanes, std::optional<int64_t> width,
                   std::optional<int64_t> height, const Contraction& found, const target::Target& target) {
  constexpr int64_t many_registers = 32;  // tall tiles have few loads beside their products
  const int64_t wide = 2 * vectors;
  const TileShape tall{vectors, held_rows(vectors, target)}, low{wide, held_rows(wide, target)};
  const bool as_many_sums = low.rows * low.vectors >= tall.rows * tall.vectors;
  if (target.vector_registers >= many_registers || !target.has("fma") || low.rows >= wide || !as_many_sums)
    return false;
  if (!width || *width < wide * lanes || (height && *height <= tall.rows)) return false;
  if (leaves_out_sides(found, height, equal_tiles(height, tall.rows))) return false;
  if (tiles.cut * wide > target.cache_bytes(2, 512 << 10)) return false;
  constexpr int64_t many_rows = 1024;  // of any number
  const int64_t rows = height.value_or(many_rows), across = (*width + lanes - 1) / lanes;
  return cycles_of_tiles(rows, across, low) < cycles_of_tiles(rows, across, tall);
}

int64_t most_short_rows(const Contraction& found, int64_t rows, int64_t most, const target::Target& target) {
  const auto meeting = meeting_rows(found, target);
  return meeting ? std::min(most, std::max<int64_t>(meeting->sets * meeting->ways / rows, 1)) : most;
}

std::vector<int64_t> up_to(int64_t most, std::optional<int64_t> rows) {
  std::vector<int64_t> choices;
  for (int64_t r = 1; r <= most; ++r)
    if (!rows || r <= std::max<int64_t>(*rows, 1)) choices.push_back(r);
  return choices;
}

BorderCode border_code(const Contraction& found, const TilePlan& plan, std::optional<int64_t> height) {
  constexpr int64_t enough_chains = 12;  // that hide the latency of an addition, with some to spare for what is loaded
  const Touching& between = found.between_rows;
  BorderCode code;
  code.sides = leaves_out_sides(found, height, plan.rows);
  code.ends =
      plan.tall > 1 && between.zeros > 0 && worth_leaving_out(between) && plan.rows * plan.vectors >= enough_chains;
  return code;
}

namespace {

// How much longer than their equal part threads take for so many pieces of the work, and behind them for a rest: `rest`
// of a piece for each of `rests` others.
double unevenness(int64_t pieces, const target::Target& target, double rest = 0, int64_t rests = 1) {
  const auto rounds = [&](int64_t count) {
    const int64_t turns = (count + target.cores - 1) / target.cores;
    return static_cast<double>(turns);
  };
  const double all = static_cast<double>(pieces) + rest * static_cast<double>(rests);
  return all > 0 ? (rounds(pieces) + rest * rounds(rests)) * static_cast<double>(target.cores) / all : 1;
}

// Where threads share the cuts of the lanes, and where they share all of the tiles of these.
double unevenness_by_cuts(const TileWork& tiles, const target::Target& target) {
  const int64_t shares = tiles.batches * tiles.cut_shares;
  return unevenness(shares * tiles.cuts, target, tiles.cut_rest, shares);
}
double unevenness_by_tiles(const TileWork& tiles, const target::Target& target) {
  const int64_t shares = tiles.batches * tiles.row_tiles;
  return unevenness(shares * tiles.cuts, target, tiles.cut_rest, shares);
}

}  // namespace

bool shares_unevenly(const TileWork& tiles, const target::Target& target) {
  constexpr double noticed = 1.2;
  return tiles.batches % target.cores != 0 && unevenness_by_cuts(tiles, target) >= noticed;
}

bool grid_is_evener(const TileWork& tiles, const target::Target& target) {
  constexpr double noticed = 1.05;
  return unevenness_by_cuts(tiles, target) >= noticed * unevenness_by_tiles(tiles, target);
}

bool rows_go_first(const TileWork& tiles, bool threads, bool uneven, const target::Target& target) {
  constexpr double bytes_a_product = 64;  // that the second cache gives meanwhile, half of them unnoticed
  const auto again = [&](int64_t bytes, int64_t times) {
    return static_cast<double>(bytes) * static_cast<double>(times - 1) * cost_of_a_byte(bytes, target);
  };
  const auto idle = [&](double unevenness) {
    return (unevenness - 1) * static_cast<double>(tiles.products) * bytes_a_product;
  };
  const bool rest = tiles.row_rest > 0 && tiles.batches == 1;
  const double by_rows = rest ? unevenness(tiles.row_tiles - 1, target, tiles.row_rest)
                              : unevenness(tiles.batches * tiles.row_tiles, target);
  const double idle_by_rows = threads ? idle(by_rows) : 0;
  const double by_cuts = unevenness_by_cuts(tiles, target), by_tiles = unevenness_by_tiles(tiles, target);
  // Tiles of one cut ask for the next step's weights where the rows are outside.
  if (tiles.lane_tiles < 2) return uneven && by_rows < by_cuts;
  const double idle_by_lanes = uneven ? idle(std::min(by_cuts, by_tiles)) : 0;
  // Pieces of a row that the second cache does not keep until their neighbours come cost their lines a second time.
  const int64_t passing = tiles.first + tiles.outputs;
  const double pieces = passing > target.cache_bytes(2, 512 << 10) ? 4.0 * static_cast<double>(tiles.outputs) : 0;
  return again(tiles.weights, tiles.row_tiles) + idle_by_rows <
         again(tiles.first, tiles.lane_tiles) + pieces + idle_by_lanes;
}

std::optional<size_t> shared_loop(const Contraction& found, const Work& work) {
  for (const size_t loop : found.between)
    if (!is_int(work.loops[loop]->extent, 1)) return loop;
  return found.row;
}

namespace {

// How many iterations of the loop that can be cut into pieces a tile takes.
int64_t shared_by_a_tile(const TilePlan& plan) {
  if (plan.shared == plan.row) return plan.rows;
  return *plan.shared == plan.between.back() ? plan.tall : 1;
}

}  // namespace

std::vector<int64_t> row_shares(const Work& work, const TilePlan& plan, const target::Target& target) {
  std::vector<int64_t> choices{1};
  if (!plan.shared || plan.rows_first || target.cores < 2) return choices;
  const auto extent = as_int(work.loops[*plan.shared]->extent);
  for (int64_t share = target.cores; extent && share <= 4 * target.cores; share += target.cores)
    if (*extent > 0 && *extent % (share * shared_by_a_tile(plan)) == 0) choices.push_back(share);
  return choices;
}

int64_t rows_shared(const TileWork& tiles, const std::vector<int64_t>& choices, const target::Target& target) {
  if (choices.size() < 2 || tiles.batches % target.cores == 0) return 1;
  return shares_unevenly(tiles, target) || tiles.weights <= tiles.first + tiles.outputs ? choices[1] : 1;
}

namespace {

int64_t group_bytes(const Contraction& found) {
  return std::max<int64_t>(found.group_stride * found.first->dtype.storage_bits() / 8, 1);
}

}  // namespace

bool groups_share_lines(const Contraction& found) {
  return found.interleaved > 0 && group_bytes(found) < target::cache_line_bytes;
}

std::vector<int64_t> group_pieces(const Work& work, const TilePlan& plan) {
  std::vector<int64_t> choices{1};
  if (!plan.shared || plan.rows_first) return choices;
  const int64_t extent = as_int(work.loops[*plan.shared]->extent).value_or(0), tile = shared_by_a_tile(plan);
  for (int64_t pieces = 2; pieces * tile <= extent; ++pieces)
    if (extent % (pieces * tile) == 0) choices.push_back(pieces);
  return choices;
}

int64_t pieces_for_groups(const Work& work, const Contraction& found, const TileWork& tiles,
                          const std::vector<int64_t>& choices, const target::Target& target) {
  int64_t groups = 1;
  for (size_t i = found.batch.size() - found.interleaved; i < found.batch.size(); ++i)
    groups *= as_int(work.loops[found.batch[i]]->extent).value_or(1);
  const int64_t rows = (tiles.first + tiles.outputs) * groups, weights = tiles.weights * groups;
  const int64_t in_a_line = target::cache_line_bytes / group_bytes(found);
  const auto cost = [&](int64_t pieces) {
    return static_cast<double>(in_a_line * rows) * cost_of_a_byte(rows / pieces, target) +
           static_cast<double>(weights * (pieces - 1)) * cost_of_a_byte(weights, target);
  };
  return *std::min_element(choices.begin(), choices.end(), [&](int64_t a, int64_t b) { return cost(a) < cost(b); });
}

int64_t weights_ahead(const TilePlan& plan, const TileWork& tiles, const target::Target& target) {
  const int64_t near = target.cache_bytes(1, 32 << 10);
  constexpr int64_t few_rows = 3, few_sums = 8;  // fewer than three rows of four vectors, four of two
  const int64_t rows = plan.rows * plan.tall;
  if (tiles.weights <= near || rows < few_rows || rows * std::max<int64_t>(plan.vectors, 2) < few_sums) return 0;
  return 2 * tiles.cut > near || plan.rows_first ? 2 : 1;
}

}  // namespace lathe::schedule
