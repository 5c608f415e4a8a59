// Schedule: a module under transformation by proven primitives. Handles survive every primitive that keeps what they
// name; each primitive either returns a program that means the same, or a diagnostic that says which condition could
// not be shown and on which statement. Copies are cheap: the program is shared.
#pragma once

#include "schedule/trace.h"
#include "tir/intrinsics/context.h"

namespace lathe::schedule {

// A factor of a split: a number, a decision, or nothing for the one that is inferred.
using Factor = std::optional<std::variant<int64_t, ExprRV>>;

struct ScheduleOptions {
  bool enable_check = true;  // false: what primitives cannot build they refuse, what they cannot prove they believe
  std::shared_ptr<const Context> context = nullptr;  // the intrinsics that tensorize knows; null: none
};

class Schedule {
 public:
  // Numbers the loops and blocks, and checks every block's declared reads and writes against its body.
  static Result<Schedule> create(ir::IRModule module, ScheduleOptions options = {});
  static Result<Schedule> create(Function function, const std::string& name = "main", ScheduleOptions options = {});

  const ir::IRModule& mod() const { return module_; }
  const Trace& trace() const { return trace_; }
  // The function that `get_block` looks in; "main" or the only one at first.
  Status work_on(const std::string& function);
  const std::string& func_working_on() const { return working_on_; }
  const PrimFunc& function() const;
  // From here on.
  void set_options(ScheduleOptions options) { options_ = options; }
  // What was proved about the loops of this schedule and its copies so far.
  Proofs* proofs() const { return proofs_.get(); }

  // The name of the function in which the handle's loop or block is; empty where there is none.
  std::string function_of(const Argument& handle) const;

  // What a handle names now; a diagnostic when it is gone.
  Result<Ref<For>> get(LoopRV loop) const;
  Result<Ref<Block>> get(BlockRV block) const;
  Result<int64_t> get(ExprRV value) const;
  // The handle names nothing from now on; what it named stays.
  Status remove(const Argument& handle);

  // Asks the decider and records its answer.
  Result<ExprRV> decide(Decider& decider, const DecisionPoint& point);
  // One of the candidates, drawn with these probabilities (none: it was decided otherwise): that of number `decision`.
  Result<ExprRV> sample_categorical(const std::vector<int64_t>& candidates, const std::vector<double>& probs,
                                    int64_t decision, const std::string& name = "");

  // Factors whose product is the loop's extent, the innermost of at most `max_innermost_factor`: as decided, or as the
  // decider answers, who is asked from the innermost out ("tile_2", "tile_1" of the rule).
  Result<std::vector<ExprRV>> sample_perfect_tile(LoopRV loop, int64_t n, int64_t max_innermost_factor,
                                                  const std::vector<int64_t>& decision);
  Result<std::vector<ExprRV>> sample_perfect_tile(Decider& decider, const std::string& rule, LoopRV loop, int64_t n,
                                                  int64_t max_innermost_factor = 16);
  // The same, where the product of the factors from number `partition_pos` on is a multiple of `innerpart_factor`.
  Result<std::vector<ExprRV>> sample_partitioned_tile(LoopRV loop, int64_t n, int64_t partition_pos,
                                                      int64_t innerpart_factor, const std::vector<int64_t>& decision);

  // Where the block may be computed: the number of a loop around its first consumer, outermost 0, at which compute_at
  // is legal, or one of the two that stand for "where it is" and "inlined". compute_at and reverse_compute_at take what
  // it returns as they take a loop.
  static constexpr int64_t root_location = -1, inline_location = -2;
  Result<std::vector<int64_t>> compute_locations(BlockRV block) const;
  Result<LoopRV> sample_compute_location(BlockRV block, int64_t decision);

  // Looking around.
  Result<BlockRV> get_block(const std::string& name, const std::string& function = "");
  Result<std::vector<LoopRV>> get_loops(BlockRV block);          // outermost first
  Result<std::vector<BlockRV>> get_child_blocks(BlockRV block);  // in program order
  Result<std::vector<BlockRV>> get_child_blocks(LoopRV loop);
  Result<std::vector<BlockRV>> get_producers(BlockRV block);
  Result<std::vector<BlockRV>> get_consumers(BlockRV block);
  Result<std::vector<BlockRV>> get_output_blocks(BlockRV scope);

  // Loops. At most one factor is inferred; factors that do not divide give the blocks a predicate, unless that is
  // disabled: then that they divide a symbolic extent is the caller's word.
  // Variables of loops of one iteration stay in what blocks are bound to, where they are preserved.
  Result<std::vector<LoopRV>> split(LoopRV loop, const std::vector<Factor>& factors, bool disable_predication = false,
                                    bool preserve_unit_iters = true);
  Result<LoopRV> fuse(const std::vector<LoopRV>& loops, bool preserve_unit_iters = true);
  Status reorder(const std::vector<LoopRV>& loops);
  // One loop instead of several that follow one another, with the loops that each alone is in.
  Result<LoopRV> merge(const std::vector<LoopRV>& loops);
  // One loop instead of several that come right behind one another: its iterations are those of the first, then those
  // of the next, chosen by an `if`.
  Result<LoopRV> join(const std::vector<LoopRV>& loops);
  // One loop after the other instead of one: of the given extents (one inferred), each with its own copy of the blocks.
  Result<std::vector<LoopRV>> loop_partition(LoopRV loop, const std::vector<Factor>& factors,
                                             bool preserve_unit_iters = true);
  // The largest multiple of `multiple` that fits, and the rest; also for an extent that is not known.
  Result<std::vector<LoopRV>> peel(LoopRV loop, const Factor& multiple);
  // Strips of so many iterations, the last one as long as what is left; no predicate is needed, also for an extent that
  // is not known. Gives the loop over the strips and the one inside them.
  Result<std::vector<LoopRV>> strip_mine(LoopRV loop, const Factor& size);
  // A loop of extent 1 around the block or loop.
  Result<LoopRV> add_unit_loop(BlockRV block);
  Result<LoopRV> add_unit_loop(LoopRV loop);
  Status parallel(LoopRV loop);
  Status vectorize(LoopRV loop);
  Status unroll(LoopRV loop);
  // The iterations become threads: "blockIdx.x" to "threadIdx.z", "vthread".
  Status bind(LoopRV loop, const std::string& thread_axis);

  // Where a block runs. `preserve_unit_loops` keeps loops of extent 1. `index` is the number of the statement in the
  // loop's body that it comes before; -1 is the last place where it may be, -2 the first.
  Status compute_at(BlockRV block, LoopRV loop, bool preserve_unit_loops = false, int64_t index = -1);
  Status reverse_compute_at(BlockRV block, LoopRV loop, bool preserve_unit_loops = false, int64_t index = -1);
  Status compute_inline(BlockRV block);
  Status reverse_compute_inline(BlockRV block);

  // A copy of what the block reads (or writes) in another scope, made (or written back) by a new block. The consumers
  // read the copy. Where none is named: of cache_read all blocks that read the same values, if one copy can serve them,
  // else the block alone; of cache_write none.
  Result<BlockRV> cache_read(BlockRV block, int64_t read_buffer_index, const std::string& scope,
                             const std::vector<BlockRV>& consumer_blocks = {});
  Result<BlockRV> cache_write(BlockRV block, int64_t write_buffer_index, const std::string& scope,
                              const std::vector<BlockRV>& consumer_blocks = {});
  // The same copies, made in each iteration of `loop`.
  Result<BlockRV> read_at(LoopRV loop, BlockRV block, int64_t read_buffer_index, const std::string& scope);
  Result<BlockRV> write_at(LoopRV loop, BlockRV block, int64_t write_buffer_index, const std::string& scope);
  // Of what the block updates in place: returns the block that copies in, and the one that copies back.
  Result<std::vector<BlockRV>> cache_inplace(BlockRV block, int64_t write_buffer_index, const std::string& scope);
  // Puts a buffer between that is indexed by the block's own variables; returns the block that copies.
  Result<BlockRV> reindex(BlockRV block, BufferIndex buffer);
  // The same in a scope, indexed by a map of the block's variables.
  Result<BlockRV> reindex_cache_read(BlockRV block, int64_t read_buffer_index, const std::string& scope,
                                     const IndexMap& index_map);
  Result<BlockRV> reindex_cache_write(BlockRV block, int64_t write_buffer_index, const std::string& scope,
                                      const IndexMap& index_map);
  // The elements of an intermediate lie where the map says, which must be one to one. Gaps that it leaves hold
  // `pad_value`, or nothing in particular where that is empty. Where it does not show, that the map is one to one may
  // be the caller's word.
  Status transform_layout(BlockRV block, BufferIndex buffer, const IndexMap& index_map, const ir::Value& pad_value = {},
                          bool assume_injective_transform = false);
  // The block's instances by other variables, in new loops: the map must be one to one onto a box.
  Status transform_block_layout(BlockRV block, const IndexMap& index_map);
  Status set_scope(BlockRV block, int64_t write_buffer_index, const std::string& scope);
  // Rows of the intermediate along `axis` start at multiples of `factor` elements, plus `offset`.
  Status storage_align(BlockRV block, int64_t write_buffer_index, int64_t axis, int64_t factor, int64_t offset);
  // While an iteration of `loop` runs, each iteration of `at` inside it asks memory for an equal share of what the
  // block reads of the buffer in the next iteration of `loop`. That must be one piece of memory, a constant distance
  // behind what this iteration reads, unless each asks for its own (`in_turn`). Gives the block of the hints; they
  // touch nothing, also behind the buffer's end.
  Result<BlockRV> prefetch(BlockRV block, int64_t read_buffer_index, LoopRV loop, LoopRV at, const Prefetch& what = {});
  // The intermediate holds another type. That no value is lost is the caller's word.
  Status unsafe_set_dtype(BlockRV block, int64_t write_buffer_index, const std::string& dtype);

  // The axes of the buffer from each separator on are a group of their own, which becomes one dimension of the memory.
  Status set_axis_separator(BlockRV block, BufferIndex buffer, const std::vector<int64_t>& axis_separators);
  // Indices that the block computes are computed before, into buffers in the scope; returns the blocks that do it, in
  // order of first use. With a positive threshold, the largest parts of indices that occur as often as that.
  Result<std::vector<BlockRV>> cache_index(BlockRV block, const std::string& storage_scope, int64_t cse_thresh);
  // Of what an iteration of a loop around the block and its readers needs, only what the one before did not need is
  // computed, into memory as long as one iteration needs.
  Status rolling_buffer(BlockRV block, int64_t write_buffer_index);
  // The part of the buffer (by its number among what the block declares) that an instance touches: a map from the
  // block's variables to where it begins and ends, axis by axis.
  Status annotate_buffer_access(BlockRV block, int64_t buffer_index, const std::string& buf_type,
                                const IndexMap& gen_new_ranges);
  // Marks where in the trace what comes after the search begins.
  void enter_postproc();

  // The block no longer declares that it reads (or writes) these of its buffers, and no proof counts it from now on:
  // that nothing depends on it is the caller's word.
  Status unsafe_hide_buffer_access(BlockRV block, const std::string& buf_type, const std::vector<int64_t>& buffers);

  // The block's variables in another order: variable i becomes what was new_order[i].
  Status reorder_block_iter_var(BlockRV block, const std::vector<int64_t>& new_order);
  // The loop, a nest around one block, becomes a block named after that block with "_o"; a reduction whose reduce loops
  // are partly outside gives the new block its init. Unit loops around give variables only where they are preserved.
  Result<BlockRV> blockize(LoopRV loop, bool preserve_unit_iters = true);
  // Blocks that follow one another, with the loops that each alone is in, become the body of one block.
  Result<BlockRV> blockize(const std::vector<BlockRV>& blocks, bool preserve_unit_iters = true);

  // The block's body, or the loop made a block, is found to be what the intrinsic describes, and becomes its
  // implementation. The interpreter goes on running the description.
  Status tensorize(BlockRV block, const std::string& tensor_intrin, bool preserve_unit_iters = true);
  Status tensorize(LoopRV loop, const std::string& tensor_intrin, bool preserve_unit_iters = true);

  // The block that fills with the constant, before `loop`; the block that pads keeps its handle and the values.
  Result<BlockRV> decompose_padding(BlockRV block, LoopRV loop);
  // A block that writes one value inside a box of its axes and another around it keeps the box, its axes beginning at
  // zero there; gives the blocks that write the other, one for each side that there is.
  Result<std::vector<BlockRV>> split_padding(BlockRV block);
  // The extents of a sum of products become multiples of `padding`, one number an axis.
  Status pad_einsum(BlockRV block, const std::vector<int64_t>& padding);

  // The block that sets the initial value, before `loop`; the reduction keeps its handle.
  Result<BlockRV> decompose_reduction(BlockRV block, LoopRV loop);
  // What `epilogue` combines the reduction's result with first, as the reduction does (a bias that is added to a sum),
  // is where the reduction starts then: another order of a sum's terms. An epilogue that does nothing else goes, and
  // the reduction writes what it wrote.
  Status fuse_reduction_epilogue(BlockRV reduction, BlockRV epilogue);
  // Splits a reduction into one an iteration of `loop`, and a last one over those; returns the block of the former.
  Result<BlockRV> rfactor(LoopRV loop, int64_t factor_axis);

  // The value is a number, also a decided one, a text, or a list of such.
  Status annotate(LoopRV loop, const std::string& key, const Argument& value);
  Status annotate(BlockRV block, const std::string& key, const Argument& value);
  Status unannotate(LoopRV loop, const std::string& key);
  Status unannotate(BlockRV block, const std::string& key);

 private:
  // The ids of the handles that stand for a place instead of a loop.
  static constexpr Id root_id = ~Id{0}, inline_id = ~Id{1};
  struct Handle {
    enum Kind : uint8_t { loop, block, number } kind;
    std::string function;
    Id id = 0;          // of a loop or block; 0: gone
    int64_t value = 0;  // of a number
    bool removed = false;
  };
  Schedule() = default;
  Result<const Handle*> find(uint32_t index, Handle::Kind kind, const char* what) const;
  Result<const Handle*> find(LoopRV loop) const;
  // The loop, or the id of a place.
  Result<const Handle*> find_place(LoopRV loop) const;
  Result<const Handle*> find(BlockRV block) const;
  Result<int64_t> extent_to_tile(LoopRV loop, int64_t n, int64_t max_innermost_factor) const;
  Result<int64_t> number_of(const Factor& factor) const;
  Result<std::vector<Id>> ids_of(const std::vector<LoopRV>& loops) const;
  Result<std::vector<Id>> ids_of(const std::vector<BlockRV>& blocks) const;
  Result<std::vector<ir::Expr>> sizes_of(const std::vector<Factor>& factors) const;
  Result<ir::Value> annotation_of(const Argument& value) const;
  Program program(const std::string& function) const;
  // Takes the edit over: the function, the fate of the handles.
  void accept(const std::string& function, Edit edit);
  LoopRV add_loop(const std::string& function, Id id);
  BlockRV add_block(const std::string& function, Id id);
  ExprRV add_number(int64_t value);
  // Takes a primitive's edit over, where there is one, and records the instruction.
  Status changed(const std::string& function, Result<Edit> edit, const char* kind, std::vector<Argument> inputs,
                 NamedArguments attributes = {});
  // The same, with handles of the loops or blocks that it made.
  template <class Rv>
  Result<std::vector<Rv>> made(const std::string& function, Result<Edit> edit, const char* kind,
                               std::vector<Argument> inputs, NamedArguments attributes);
  Result<std::vector<LoopRV>> made_loops(const std::string& function, Result<Edit> edit, const char* kind,
                                         std::vector<Argument> inputs, NamedArguments attributes = {});
  Result<std::vector<BlockRV>> made_blocks(const std::string& function, Result<Edit> edit, const char* kind,
                                           std::vector<Argument> inputs, NamedArguments attributes = {});
  Result<LoopRV> made_loop(const std::string& function, Result<Edit> edit, const char* kind,
                           std::vector<Argument> inputs, NamedArguments attributes = {});
  Result<BlockRV> made_block(const std::string& function, Result<Edit> edit, const char* kind,
                             std::vector<Argument> inputs, NamedArguments attributes = {});
  // The loop that takes the place of several.
  template <class Step>
  Result<LoopRV> one_of(const std::vector<LoopRV>& loops, const char* name, Step step);
  template <class Rv>
  Result<LoopRV> within_unit_loop(Rv target);
  template <class Rv>
  Status tensorized(Rv target, const std::string& tensor_intrin, bool preserve_unit_iters);
  template <class Rv>
  Result<std::vector<BlockRV>> children(Rv parent, const char* instruction);
  void record(const char* kind, std::vector<Argument> inputs, NamedArguments attributes, std::vector<Argument> outputs);

  ir::IRModule module_;
  std::string working_on_;
  Id next_ = 1;
  std::vector<Handle> handles_;
  Trace trace_;
  std::shared_ptr<Proofs> proofs_;
  ScheduleOptions options_;
};

}  // namespace lathe::schedule
