// The primitives: each takes a program and returns what it became, or why it may not be. One file a primitive, in the
// folder of its family.
#pragma once

#include "schedule/codes.h"
#include "schedule/index_map.h"
#include "tir/intrinsics/context.h"

namespace lathe::schedule::primitives {

// primitives/loops. One null among the factors is inferred. Creates the new loops, outermost first. Without predicates,
// that an extent which is not a number is divided is the caller's word.
Result<Edit> split(const Program& program, Id loop, const std::vector<Expr>& factors, bool disable_predication = false,
                   bool preserve_unit_iters = true);
// Creates the one loop.
Result<Edit> fuse(const Program& program, const std::vector<Id>& loops, bool preserve_unit_iters = true);
Result<Edit> reorder(const Program& program, const std::vector<Id>& loops);
// Creates the loops in order, and then the ids of their blocks are new, except those of the first part.
Result<Edit> loop_partition(const Program& program, Id loop, const std::vector<Expr>& factors,
                            bool preserve_unit_iters = true);
Result<Edit> peel(const Program& program, Id loop, int64_t multiple);
// Creates the loop over strips and the one inside a strip.
Result<Edit> strip_mine(const Program& program, Id loop, int64_t size);
Result<Edit> add_unit_loop(const Program& program, Id block_or_loop);
Result<Edit> parallel(const Program& program, Id loop);
Result<Edit> vectorize(const Program& program, Id loop);
Result<Edit> unroll(const Program& program, Id loop);
Result<Edit> bind(const Program& program, Id loop, const std::string& thread_axis);
// Creates the one loop.
Result<Edit> merge(const Program& program, const std::vector<Id>& loops);
Result<Edit> join(const Program& program, const std::vector<Id>& loops);

// primitives/blocks. blockize creates the block, decompose_padding the one that fills.
Result<Edit> reorder_block_iter_var(const Program& program, Id block, const std::vector<int64_t>& order);
Result<Edit> decompose_padding(const Program& program, Id block, Id loop);
// Creates the blocks of the sides.
Result<Edit> split_padding(const Program& program, Id block);
Result<Edit> pad_einsum(const Program& program, Id block, const std::vector<int64_t>& padding);
Result<Edit> transform_block_layout(const Program& program, Id block, const IndexMap& map);
Result<Edit> blockize(const Program& program, Id loop_or_block, bool preserve_unit_iters);
Result<Edit> blockize_blocks(const Program& program, const std::vector<Id>& blocks, bool preserve_unit_iters);

// primitives/tensorize. Of a loop, creates the block that it becomes first.
Result<Edit> tensorize(const Program& program, Id loop_or_block, const std::string& intrin, const TensorIntrin& meaning,
                       bool preserve_unit_iters);

// primitives/compute. The block comes before the statement number `index` of the loop's body, or to the last or the
// first place there where it may be.
constexpr int64_t last_place = -1, first_place = -2;
Result<Edit> compute_at(const Program& program, Id block, Id loop, bool preserve_unit_loops,
                        int64_t index = last_place);
Result<Edit> reverse_compute_at(const Program& program, Id block, Id loop, bool preserve_unit_loops,
                                int64_t index = last_place);
Result<Edit> compute_inline(const Program& program, Id block);
Result<Edit> reverse_compute_inline(const Program& program, Id block);

// primitives/cache. Creates the block that copies. The consumers read the copy: of cache_read all that read the same
// values where none is named, of cache_write none.
Result<Edit> cache_read(const Program& program, Id block, int64_t read_buffer_index, const std::string& scope,
                        const std::vector<Id>& consumers = {});
Result<Edit> cache_write(const Program& program, Id block, int64_t write_buffer_index, const std::string& scope,
                         const std::vector<Id>& consumers = {});
Result<Edit> read_at(const Program& program, Id loop, Id block, int64_t read_buffer_index, const std::string& scope);
Result<Edit> write_at(const Program& program, Id loop, Id block, int64_t write_buffer_index, const std::string& scope);
// Creates the block that copies in, and the one that copies back.
Result<Edit> cache_inplace(const Program& program, Id block, int64_t write_buffer_index, const std::string& scope);
Result<Edit> storage_align(const Program& program, Id block, int64_t write_buffer_index, int64_t axis, int64_t factor,
                           int64_t offset);
Result<Edit> unsafe_set_dtype(const Program& program, Id block, int64_t write_buffer_index, DType dtype);
Result<Edit> set_scope(const Program& program, Id block, int64_t write_buffer_index, const std::string& scope);
// The axes from each separator on are a group of their own.
Result<Edit> set_axis_separator(const Program& program, Id block, BufferIndex buffer,
                                const std::vector<int64_t>& separators);
// Creates the blocks that compute indices, in order of first use; none where the block computes no index.
Result<Edit> cache_index(const Program& program, Id block, const std::string& scope, int64_t threshold);
Result<Edit> rolling_buffer(const Program& program, Id block, int64_t write_buffer_index);
// Creates the block that copies.
Result<Edit> reindex(const Program& program, Id block, BufferIndex buffer);
Result<Edit> reindex_cache(const Program& program, Id block, BufferIndex buffer, const std::string& scope,
                           const IndexMap& map);
// An empty value leaves gaps in the new layout as they are. That the map is one to one where that does not show may be
// the caller's word.
Result<Edit> transform_layout(const Program& program, Id block, BufferIndex buffer, const IndexMap& map,
                              const ir::Value& pad_value, bool assume_injective = false);

// Creates the block of the hints.
Result<Edit> prefetch(const Program& program, Id block, int64_t read_buffer_index, Id loop, Id at,
                      const Prefetch& what);

// primitives/reduction. Those that split create the block of the initial values, or of the partial results.
Result<Edit> fuse_reduction_epilogue(const Program& program, Id reduction, Id epilogue);
Result<Edit> decompose_reduction(const Program& program, Id block, Id loop);
Result<Edit> rfactor(const Program& program, Id loop, int64_t factor_axis);

// primitives/annotation. An empty value takes the annotation away.
Result<Edit> unsafe_hide_buffer_access(const Program& program, Id block, bool writes,
                                       const std::vector<int64_t>& buffers);
// `ranges` gives, for each axis, where the part begins and where it ends. `buffer` is a number among what is declared.
Result<Edit> annotate_buffer_access(const Program& program, Id block, BufferIndex buffer, const IndexMap& ranges);
Result<Edit> annotate(const Program& program, Id loop_or_block, const std::string& key, const ir::Value& value);

}  // namespace lathe::schedule::primitives
