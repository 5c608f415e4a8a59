// Panels: copies of a product's second operand in pieces as wide as its tiles, each a row for every term of the sum, so
// that a tile walks memory side by side.
#pragma once

#include "schedule/rules/tile/contraction.h"

namespace lathe::schedule {

// What a product's block reads of a tensor, as its own variables: one that the panels are cut along, those that are
// summed over, and others, outermost first.
struct PanelAxes {
  std::vector<Expr> around, terms;
  Expr column;
};

// A copy of the tensor that the block reads, in panels of `width` columns ([around, column // width, terms, column %
// width]) or, where `width` is 0, as one; what is given makes it, before everything that the block is in.
Result<BlockRV> copy_into_panels(Schedule& schedule, const Work& work, const Buffer& tensor, const PanelAxes& axes,
                                 int64_t width);

// Gives the copy its loops: columns of a panel innermost, in vectors, or in squares where the tensor lies the other
// way; what is left over of whole panels by itself. `parallel`: threads share it, where there is enough.
Status schedule_panels(Schedule& schedule, const RuleContext& context, BlockRV copy, int64_t width, bool parallel);

// Has weights that lie in plain rows copied into panels as wide as a tile, as the answer to `panels` says: 0, not; 1,
// all of them before the tiles; 2, each before those that read it, and the plan names the copy, which register_tile
// puts there. Gives the plan that goes with the copies, nothing where there are none. Nothing is asked where extents
// are not known, or the weights are one panel.
Result<std::optional<TilePlan>> ask_for_panels(Schedule& schedule, const RuleContext& context, std::string_view rule,
                                               const Contraction& found, TilePlan plan);

// Puts the copy that the plan names into the loop over panels.
Status place_panels(Schedule& schedule, const RuleContext& context, const TilePlan& plan, LoopRV panel);

}  // namespace lathe::schedule
