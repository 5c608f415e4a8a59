// What several primitives do to statements: predicates, simplified bindings, checks on the loops they are given.
#pragma once

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "schedule/primitives/primitives.h"

namespace lathe::schedule {

// "parallel", "bound to a thread axis".
std::string_view kind_name(ForKind kind);

// The path to the loop; a diagnostic when it is not serial. `verb` is the primitive: "split".
Result<Path> serial_loop(const Program& program, Id loop, std::string_view verb);
// The path to the block's realize.
Result<Path> block_path(const Program& program, Id block);

// Whether the path leads through a block's init, which runs in the block's first instances only.
bool in_init(const Path& path);
// "inside an if", and the like: why a block's loops do not say when it runs. Of the path from its scope down to it, or
// from the loop `inside` down; nothing where there are loops and sequences only.
std::optional<std::string> undecided_above(const Path& path, const For* inside = nullptr);

// `body` run only where `condition` holds: the condition joins the predicates of its blocks.
Stmt guarded(const Stmt& body, const Expr& condition);

// `root` with the bindings and predicates of its blocks simplified under the loops of `path` and its own. Variables of
// loops of one iteration stay in the bindings where they are preserved.
Stmt simplified(const Stmt& root, const Path& path, bool preserve_unit_iters = false);

// `root` with every mention of a buffer (definition, load, store, region) replaced.
Stmt with_buffer(const Stmt& root, const Buffer& from, const Buffer& to);

// A buffer added to those that the block of `scope` allocates.
Stmt with_allocation(const Stmt& root, const BlockRealize& scope, const Buffer& buffer);

// A block with its regions, run at `values`.
Stmt realize(std::vector<Expr> values, Expr predicate, Ref<Block> block);

// The function with `target` replaced, as an edit.
Edit edit(const Program& program, const Stmt& target, const Stmt& replacement, Id next, std::vector<Id> created = {});

// A serial loop.
Stmt loop_over(const Var& v, Expr extent, Stmt body, Id id);

// The loops once more around `body`, under the variables that `fresh` gives them; those that are parallel are not
// again.
Stmt copied_nest(const std::vector<const For*>& loops, const VarMap& fresh, Stmt body, Id& next);

// Why what the block writes first into the buffer may not go before all of `loop` around it: others touch it before.
std::optional<Diagnostic> refuse_touched_before(const Program& program, const For& loop, const Buffer& buffer,
                                                const Block& block, std::string_view verb);

// Why the loop's iterations may not run at once; nothing when they may, or nothing need be shown.
std::optional<Diagnostic> refuse_dependent(const Program& program, const For& loop, std::string_view verb);

}  // namespace lathe::schedule
