// What is legal after which pass: one table. A row names something a tensor function may hold and the pass after which
// it may not occur any more; the verifier reads it, and so can people. Rooms above put the passes in order.
#pragma once

#include "ir/pass.h"

namespace lathe::tir {

// Things that disappear on the way from block-level to kernel tir. Most are node kinds; some are a kind with a
// property.
enum class Construct : uint8_t {
  reduce,         // Reduce expressions: in tensor expressions only
  function_call,  // of a function of the module
  loop_exit,      // T.break_loop, T.continue_loop
  block_init,
  block,              // Block, BlockRealize
  declared_buffer,    // DeclBuffer
  indexed_buffer,     // an access with other than one int64 index
  helper_intrinsic,   // likely, and what else only helps reasoning
  narrow_arithmetic,  // float16 and bfloat16 arithmetic outside conversions
  vectorized_loop,
  unrolled_loop,
  register_variable,  // an index that is not constant into memory of scope "register"
  nested_parallel,
};

struct StageRow {
  Construct construct;
  std::string_view what;        // as a diagnostic names it
  std::string_view gone_after;  // the pass; "" for never legal
};
std::span<const StageRow> stage_rows();

// The row of a construct that is not legal once these passes have run; null while it is.
const StageRow* illegal_after(Construct construct, const ir::RowsRun& passes);

// Every pass of the table: what has run on kernel tir.
const ir::RowsRun& all_lowered();

}  // namespace lathe::tir
