// What the primitives that change a buffer share: which buffer of a block is meant, and whether it may change.
#pragma once

#include "schedule/analysis/access.h"
#include "schedule/primitives/rewrite.h"

namespace lathe::schedule {

// The buffer of that number among those that the block at the path's end reads (its own results not counted) or writes.
Result<Buffer> buffer_of(const Path& path, BufferIndex which);

// What the block at the path's end reads (or writes) of memory outside of it, in order of first access.
std::vector<Buffer> outer_buffers(const Path& path, bool writes);

// Why the buffer's shape and elements are not the schedule's to change: it is a parameter, or is seen as memory.
std::optional<Diagnostic> refuse_fixed(const PrimFunc& function, const Buffer& buffer, std::string_view verb);

// A buffer for a copy of `buffer` in another scope, compact: "A_local".
Buffer cache_of(const Buffer& buffer, const std::string& scope_name);

// Whether it is the block, or one inside it.
bool is_inside(const Block* inner, const Block& block);

// Whether a block other than `block` and those inside it touches the buffer in `s`.
bool touched_by_others(const Stmt& s, const Buffer& buffer, const Block& block);

// Where on the path to a block the largest statement is, within its scope, in which the block alone touches the buffer.
// A sequence is left whole only when it is all of the body: copies go right beside the block's own statement.
size_t alone_around(const Path& path, const Buffer& buffer);

// Where on the path to a block the statement of the loop's body is that holds the block. `verb`: "read".
Result<size_t> below_loop(const Path& path, Id loop, std::string_view verb);

// Every access to `from` is one to `to`, at what the map makes of its indices; the regions of blocks follow.
Stmt with_layout(const Stmt& root, const Buffer& from, const Buffer& to, const IndexMap& map);

// A number as a constant of the buffer's type.
Result<Expr> constant_of(const ir::Value& value, DType dtype);

}  // namespace lathe::schedule
