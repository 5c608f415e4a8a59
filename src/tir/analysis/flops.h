// How much arithmetic a tensor function does, and on how much memory.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// The arithmetic operations that `s` does: each operator and each call of a scalar function counts one a lane, where
// its value is data; subscripts, bounds and conditions of blocks are free. Of a branch, the dearer case counts; an
// init counts as often as it runs. A loop whose extent is not a constant counts once and sets `symbolic`.
double estimate_flops(const Stmt& s, bool* symbolic = nullptr);

// The bytes that must move between memory and the function once: of each parameter buffer its size, or what its
// accesses come to where they are fewer (rows taken from a large table). A size that is not a constant counts as
// accessed and sets `symbolic`.
double estimate_traffic(const PrimFunc& function, bool* symbolic = nullptr);

// The block that decides how a function is scheduled: of those that reduce, the one that does most; where none
// reduces, the last that writes what the function gives. Null where there is no block.
Ref<Block> find_anchor_block(const PrimFunc& function);

// For every buffer, in order of first access, the innermost loop or block around all its accesses; null where only the
// function is. An access in the bounds, bindings or predicate of a loop or block is outside it.
std::vector<std::pair<Buffer, Stmt>> buffer_access_lca(const PrimFunc& function);

}  // namespace lathe::tir
