// The plainest of nests: serial loops from zero, in one another, around one block.
#pragma once

#include <optional>
#include <vector>

#include "tir/stmt.h"

namespace lathe::tir {

struct PlainNest {
  std::vector<Ref<For>> loops;  // the outermost first
  Ref<BlockRealize> realize;
};

// The nest that `s` is. Nothing where a loop has a kind, a start or annotations of its own, or the block has a
// predicate or makes buffers.
std::optional<PlainNest> as_plain_nest(const Stmt& s);

// The statement that a nest is.
Stmt to_stmt(const PlainNest& nest);

}  // namespace lathe::tir
