// What compute_inline and reverse_compute_inline share.
#pragma once

#include "schedule/analysis/access.h"
#include "schedule/primitives/rewrite.h"

namespace lathe::schedule {

// The one store that is a block's body, where the block is elementwise: no init, spatial variables only.
Result<const BufferStore*> single_store(const Block& block, std::string_view verb);

// The indices of a store or load as variables of the block: which variable each dimension is; a dimension may be a
// constant instead (null). Refuses where a variable occurs twice, or another form, or misses a variable that moves.
Result<std::vector<Var>> index_variables(const Block& block, const std::vector<Expr>& indices, std::string_view verb);

// The same of all the value's loads of a buffer, which are of one element; refuses also where the block's domain is not
// all of the buffer.
Result<std::vector<Var>> variables_over_all(const Block& block, const Expr& value, const Buffer& buffer,
                                            std::string_view verb);

// The variables of a block as those of another have them, in which `vars` (of index_variables) are `indices`.
VarMap values_of(const Block& block, const std::vector<Var>& vars, const std::vector<Expr>& indices);

// Why the consumer cannot do its work where the producer runs: what it reads besides `between` has to be there, and
// where it writes there, that untouched.
std::optional<Diagnostic> refuse_moved(const std::vector<Access>& all, const Block& consumer, const Block& producer,
                                       const Buffer& between, std::string_view verb, bool writes_there);

// The block that allocates the buffer; null for a parameter.
const Block* allocating_block(const PrimFunc& function, const Buffer& buffer);

// Whether a block sees the buffer, or a part of it, as a buffer of its own.
bool has_view(const PrimFunc& function, const Buffer& buffer);

// The function without the block's realize, and without the buffer, whose blocks' regions are computed anew where
// `change` (applied to every load) changed them. With `within`, only loads directly in these blocks are changed and the
// buffer stays.
Function with_loads_replaced(const Function& function, const Stmt& removed, const Buffer& buffer,
                             support::function_ref<Expr(const BufferLoad&)> change,
                             const std::vector<const Block*>* within = nullptr);

}  // namespace lathe::schedule
