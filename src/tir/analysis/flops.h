// How much arithmetic a tensor function does.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// The arithmetic operations that `s` does: each operator and each call of a scalar function counts one a lane, where
// its value is data; subscripts, bounds and conditions of blocks are free. Of a branch, the dearer case counts; an
// init counts as often as it runs. A loop whose extent is not a constant counts once and sets `symbolic`.
double estimate_flops(const Stmt& s, bool* symbolic = nullptr);

// The block that decides how a function is scheduled: of those that reduce, the one that does most; where none
// reduces, the last that writes what the function gives. Null where there is no block.
Ref<Block> find_anchor_block(const PrimFunc& function);

// For every buffer, in order of first access, the innermost loop or block around all its accesses; null where only the
// function is. An access in the bounds, bindings or predicate of a loop or block is outside it.
std::vector<std::pair<Buffer, Stmt>> buffer_access_lca(const PrimFunc& function);

}  // namespace lathe::tir
