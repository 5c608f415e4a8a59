// The parts that a tiled nest falls into where its tile does not divide it.
#pragma once

#include "schedule/rules/tile.h"

namespace lathe::schedule {

// A part of the tiled nest: its own copy of the block, and the loops that matter for it.
struct Part {
  BlockRV block;
  LoopRV loop;       // what remains to be cut
  int64_t size = 1;  // of a tile along it (rows), or lanes
  int64_t vectors = 1;
};

// The lane loop in parts of whole tiles, of whole vectors, and the rest.
Result<std::vector<Part>> lane_parts(Schedule& schedule, BlockRV block, LoopRV loop, const TilePlan& plan);

// The row loop in parts whose tiles divide them: as equal as can be, never a full tile and a small rest.
Result<std::vector<Part>> row_parts(Schedule& schedule, BlockRV block, LoopRV loop, const TilePlan& plan);

// The dimension of the block's output along which the loop runs; the rank where it runs along none.
size_t dimension_of(const PrimFunc& function, const std::string& block, const For& loop);

// An epilogue cut like the reduction before it: a copy for each part of the lanes, whose rows are cut where its turn
// comes.
struct CutEpilogue {
  std::vector<Part> lanes;
  std::optional<size_t> row;  // the position of the row loop in each part
};
Result<CutEpilogue> cut_epilogue(Schedule& schedule, const TilePlan& plan, const std::string& epilogue,
                                 const Buffer& buffer, size_t lane_dimension, size_t row_dimension);

}  // namespace lathe::schedule
