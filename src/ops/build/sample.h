// Reading between elements the way PyTorch does.
#pragma once

#include "ops/build.h"

namespace lathe::ops::build {

// As `grid_sample`, but where Outside::border holds, it is the elements around a place that are brought inside, not the
// place: between the border and what repeats it a cubic curve overshoots.
Value grid_sample_by_elements(BlockBuilder& b, const Value& x, const Value& grid, const GridSampling& how);

}  // namespace lathe::ops::build
