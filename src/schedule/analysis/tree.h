// Finding and replacing statements of a numbered function.
#pragma once

#include "schedule/program.h"

namespace lathe::schedule {

// Calls `visit` on the statement and those inside it, outer before inner, in program order.
void each_statement(const Stmt& root, support::function_ref<void(const Stmt&)> visit);

// The statements from `root` (first) down to one of its inner statements (last).
using Path = std::vector<Stmt>;
// The path to the loop of that id, or to the BlockRealize of the block of that id; empty when there is none.
Path path_to(const Stmt& root, Id id);

const For* find_loop(const PrimFunc& function, Id id);
const Block* find_block(const PrimFunc& function, Id id);

// The loops on a path below its innermost block that encloses its end; outermost first, the end left out.
std::vector<const For*> loops_above(const Path& path);
// The realize of the innermost block that encloses the path's end (the end itself does not count); null: none.
const BlockRealize* scope_of(const Path& path);

// `root` with `target` (found by identity) replaced. Sequences stay flat; statements left empty vanish.
Stmt replace(const Stmt& root, const Stmt& target, const Stmt& replacement);
// `root` with each statement of `edits` (found by identity) replaced by the second of its pair.
Stmt replace_all(const Stmt& root, const std::vector<std::pair<Stmt, Stmt>>& edits);
Function with_body(const Function& function, Stmt body);

// The blocks in a statement that are not inside another of its blocks, in program order, as realizes.
std::vector<Ref<BlockRealize>> outer_blocks(const Stmt& root);
// The direct children of a loop's or block's body: the items of its sequence, or the one statement.
std::vector<Stmt> items(const Stmt& body);

// "loop 'i'" and "block 'conv'".
std::string name_of(const For& loop);
std::string name_of(const Block& block);
Diagnostic refuse(const support::Code& code, std::string message);

// A copy with its own loop variables, block variables, memory that it allocates, loop and block ids (taken from `next`)
// and `suffix` on the blocks' names.
Stmt duplicate(const Stmt& root, Id& next, const std::string& suffix);

}  // namespace lathe::schedule
