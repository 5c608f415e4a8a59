// The model of cost behind a register tile: which bytes its loops move, from which level of the memory, in each order.
#pragma once

#include "schedule/rules/tile/contraction.h"

namespace lathe::schedule {

// Bytes of a way of a nearest cache that is indexed by the page's offset, whatever its size; how many ways it has.
constexpr int64_t way_bytes = 4096;
int64_t nearest_ways(const target::Target& target);

// What the loops around a tile move for one element of the batch, in bytes; extents that are not known count as one.
struct TileWork {
  int64_t first = 0;       // the tensor that the rows walk
  int64_t weights = 0;     // the tensor that the lanes walk
  int64_t cut = 0;         // what one cut of the lanes reads of the weights
  int64_t outputs = 0;     // the output, and what is read beside it element by element (a residual)
  int64_t lane_tiles = 1;  // cuts of the lanes
  int64_t row_tiles = 1;   // tiles of rows, over all loops that walk the first tensor alone
  double row_rest = 0;     // where that is one loop: the height of a last, lower tile, one thread's alone, in tiles
  int64_t batches = 1;     // elements of the batch
  int64_t cuts = 1;        // of the lanes: whole ones
  double cut_rest = 0;     // what is left for a last, narrower one, in cuts; threads begin it after these
  int64_t cut_shares = 1;  // of each: iterations that threads can share without cutting the rows for them
  int64_t products = 0;    // of vectors
};
TileWork tile_work(const PrimFunc& function, const Work& work, const Contraction& found, const TilePlan& plan);

// The most iterations of a loop inside others, outermost first; nothing where there is no bound.
std::optional<int64_t> most_iterations(const std::vector<const For*>& around, const For& loop);

// The height of tiles of at most `most` rows: equal ones, all rows where they are few.
int64_t equal_tiles(std::optional<int64_t> rows, int64_t most);
// The same of an unknown number of rows where each part of the rest is to divide the one before: more often than not
// the number is a multiple of four or eight, and what tiles of eight leave over comes by fours.
int64_t tiles_by_halves(int64_t most);
// The same where the rest need not divide them: six where the registers hold no eight. Each step loads as many vectors
// of the weights for four rows as for six.
int64_t tiles_of_unknown(int64_t most);

// A tile of rows by vectors: as high as the registers hold, at most 14, beside `vectors` a row. Where so many rows
// would meet in one set of the nearest cache, short rows that share a tile included, as many as do not, and wider, up
// to `most_vectors`; a tile that would become much smaller for that stays as it is.
struct TileShape {
  int64_t vectors = 1, rows = 1;  // rows: at most; tiles are equal
};
TileShape tile_shape(int64_t vectors, int64_t most_vectors, const Contraction& found, std::optional<int64_t> height,
                     const target::Target& target);

// How many vectors a cut of the lanes has where tiles have few rows and threads share the cuts: `vectors`, or fewer
// where a quarter less time passes then until the last thread has done its cuts, but enough to keep the additions busy.
int64_t shared_width(int64_t vectors, int64_t lanes, int64_t width, const target::Target& target);

// Whether cuts of the lanes are better twice as wide, and tiles lower for it. `tiles` is the work in tiles of one row
// and one vector. Each cut passes over the first tensor and over what is written, in pieces of its width; where the
// second cache keeps little of these, half as many cuts save more than it costs that each weight is loaded for fewer
// rows. Not where tall tiles do without the products of zeros, nor where the second cache would not hold the weights of
// a cut: these come for every tile, and low tiles ask for more bytes a product than what lies behind that cache may
// give.
bool wide_cuts_pay(const TileWork& tiles, int64_t vectors, int64_t lanes, std::optional<int64_t> width,
                   std::optional<int64_t> height, const Contraction& found, const target::Target& target);

// Cycles that a step of the sums takes where `rows` rows of so many vectors are taken in so many parts at once: two
// additions and two loads go at a time, and an addition ends after four cycles.
double cycles_of_step(int64_t rows, int64_t vectors, int64_t parts);

// The same as wide_cuts_pay for another reason, where registers are few: a tile of twice as many vectors and half as
// many rows has as many sums, but fewer loads for them (3 rows by 4 vectors 7 for 12 products, 6 by 2 8), if a step
// keeps its rows' elements in registers and goes over the weights one vector at a time (TilePlan::waits_by_rows). Takes
// an instruction that multiplies and adds, as there is no register for a product.
bool low_tiles_pay(const TileWork& tiles, int64_t vectors, int64_t lanes, std::optional<int64_t> width,
                   std::optional<int64_t> height, const Contraction& found, const target::Target& target);

// How many short rows of `rows` elements may share a tile, `most` at most: those that do not meet, either.
int64_t most_short_rows(const Contraction& found, int64_t rows, int64_t most, const target::Target& target);

// The heights of tiles to choose from.
std::vector<int64_t> up_to(int64_t most, std::optional<int64_t> rows);

// Where windows that touch zeros get code of their own, which does without the products of these: where a tile holds
// whole rows, for each step of the window along them; and where tiles hold several rows, for those at the ends.
struct BorderCode {
  bool sides = false, ends = false;
};
BorderCode border_code(const Contraction& found, const TilePlan& plan, std::optional<int64_t> height);

// Whether the loops of rows are better outside the lane loop. Inside it, the weights come once and the first tensor
// again for each cut of the lanes; what is written lies in pieces of a cut's width, which no prefetching of the machine
// follows. Outside it, the weights come again for each tile of rows. `threads`: they share the tiles of rows then, be
// these as few as they may; `uneven`: otherwise the cuts of the lanes, which leaves some of them idle, or the tiles of
// all of these, where there are several.
bool rows_go_first(const TileWork& tiles, bool threads, bool uneven, const target::Target& target);

// Whether threads are better given the tiles of all cuts of the lanes than these cuts: a twentieth of their time is
// won.
bool grid_is_evener(const TileWork& tiles, const target::Target& target);

// Whether threads share the cuts of the lanes so badly that a sixth of their time is lost or more.
bool shares_unevenly(const TileWork& tiles, const target::Target& target);

// The loop that threads can have in pieces: the outermost that walks the first tensor alone.
std::optional<size_t> shared_loop(const Contraction& found, const Work& work);

// Into how many pieces it can be cut so that tiles divide each: 1, and multiples of the cores.
std::vector<int64_t> row_shares(const Work& work, const TilePlan& plan, const target::Target& target);

// How many pieces of the rows threads take. With pieces, each thread reads all weights, but of the first tensor only
// its own rows, which it often wrote itself; without them, threads share the cuts of the lanes, and each reads all
// rows. One piece (no cut) where the weights are the larger part, unless the cuts of the lanes cannot be shared evenly.
int64_t rows_shared(const TileWork& tiles, const std::vector<int64_t>& choices, const target::Target& target);

// Whether groups lie inside the rows of the first tensor, several of them in a line of the caches.
bool groups_share_lines(const Contraction& found);

// Into how many pieces the rows can be cut outside such groups, so that tiles divide each.
std::vector<int64_t> group_pieces(const Work& work, const TilePlan& plan);

// Into how many they are. A group by itself passes over all rows for its part of each line; in pieces that the second
// cache holds, the lines are still there when the next group comes, but the weights of all groups come again for each
// piece.
int64_t pieces_for_groups(const Work& work, const Contraction& found, const TileWork& tiles,
                          const std::vector<int64_t>& choices, const target::Target& target);

// How much of the weights is asked for ahead. Those that the nearest cache holds are there already, and those of a few
// rows come no faster than they are used: none (0). Else those of the next cut of the lanes (1), which come from far
// away; and where one cut is too large for the nearest cache, those of the next step too (2).
int64_t weights_ahead(const TilePlan& plan, const TileWork& tiles, const target::Target& target);

}  // namespace lathe::schedule
