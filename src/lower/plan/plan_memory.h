// Where every intermediate tensor of a lowered function lives. Tensors of known size get offsets in one arena
// (support/lifetimes.h); tensors of symbolic size share slots whose size is computed at run time. A result that may
// overwrite an operand of its kernel (PrimFunc attribute "inplace") takes its memory when the operand dies there.
#pragma once

#include <set>

#include "relax/call_tir.h"
#include "relax/tensor_to_shape.h"

namespace lathe::lower {

struct Placement {
  // own: memory of the tensor's own, freed with its last use.
  enum Kind : uint8_t { planned, slot, output, own } kind = planned;
  int64_t offset = 0;         // planned: bytes into the arena
  int64_t bytes = 0;          // planned: size
  int64_t slot_index = 0;     // slot, output: which
  relax::StructInfo as = {};  // output: what the result is where the tensor has another shape, of which it is a view
  relax::Expr whole = {};     // what the tensor is a part of, whose memory it lies in (lower/batch/batch_parts.h)
  int64_t part = 0;           // bytes in front of it there
};

struct MemoryPlan {
  // The memory of each tensor that a kernel writes: by the variable bound to it and the number of the output.
  std::map<std::pair<const ir::Node*, int>, Placement> placements;
  int64_t arena_bytes = 0;      // the planned peak
  int64_t unplanned_bytes = 0;  // if every tensor had memory of its own
  int64_t slots = 0;
  int64_t in_place = 0;  // tensors that took an operand's memory
  // Outputs of calls in place whose argument nobody reads afterwards: they are its memory.
  std::set<std::pair<const ir::Node*, int>> updates;
};

inline constexpr int64_t plan_alignment = 64;  // bytes

// Who gets a function's results: whoever runs the program, or a caller in it, to whom they come in memory of their own.
enum class ResultMemory : uint8_t { outputs, own };
// The plan of one relax function of a legalized module; offsets are from the start of its part of the arena.
MemoryPlan plan_memory(const ir::IRModule& module, const relax::Function& function,
                       ResultMemory results = ResultMemory::outputs);

// Bytes of a tensor when its shape is constant.
std::optional<int64_t> static_bytes(const relax::TensorStructInfo& info);

}  // namespace lathe::lower
