// The parts that a tiled nest falls into where its tile does not divide it.
#pragma once

#include "schedule/rules/tile/tile.h"

namespace lathe::schedule {

// A part of the tiled nest: its own copy of the block, and the loops that matter for it.
struct Part {
  BlockRV block;
  LoopRV loop;       // what remains to be cut
  int64_t size = 1;  // of a tile along it (rows), or lanes
  int64_t vectors = 1;
};

// An axis of the nest that tiles cut: where its loop stands among the nest's loops, and which dimension of the output
// it runs along.
struct TileAxis {
  enum Kind { lanes, rows, tall };
  Kind kind = lanes;
  size_t position = 0;
  size_t dimension = 0;

  int64_t size(const TilePlan& plan) const {
    return kind == lanes ? plan.lanes * plan.vectors : kind == rows ? plan.rows : plan.tall;
  }
};

// The loop of an axis in parts whose tiles divide them. Lanes: whole tiles, whole vectors, and the rest; rows: as equal
// as can be, never a full tile and a small rest.
Result<std::vector<Part>> axis_parts(Schedule& schedule, BlockRV block, LoopRV loop, const TileAxis& axis,
                                     const TilePlan& plan);

// The dimension of the block's output along which the loop runs; the rank where it runs along none.
size_t dimension_of(const PrimFunc& function, const std::string& block, const For& loop);

// An epilogue cut like the reduction before it: a copy for each kind of tile, in the order in which the axes come to
// them.
Result<std::vector<BlockRV>> cut_epilogue(Schedule& schedule, const TilePlan& plan, const std::string& epilogue,
                                          const Buffer& buffer, const std::vector<TileAxis>& axes);

}  // namespace lathe::schedule
