// Views inside blocks (match_buffer), told in terms of the memory that they name.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// The block with accesses and regions of its views made those of their sources, and no views. Diagnostic:
// tir-match-buffer-rank where a view has more dimensions than its source.
Ref<Block> without_views(const Block& block);

}  // namespace lathe::tir
