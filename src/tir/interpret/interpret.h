// The oracle: runs a tensor function, block-level or kernel-level, on byte buffers. Slow and obvious. Every access is
// checked against the buffer's shape and its memory, reads of memory that was never written are found, integers wrap,
// floats are computed in their own dtype, parallel loops run in a shuffled order so that illegal parallelism shows.
#pragma once

#include "ir/function.h"
#include "ir/visit.h"
#include "support/result.h"
#include "tir/intrinsics/context.h"

namespace lathe::tir {

// A tensor in memory: compact row-major, little-endian, sub-byte types packed low bits first.
struct TensorBuffer {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
  // One bit a bit of `bytes`: set where the memory holds a value. Empty: all of it does.
  std::vector<uint8_t> written;

  // Zeros that count as values.
  static TensorBuffer zeros(DType dtype, std::vector<int64_t> shape);
  // Memory that may not be read before it is written; what an output is.
  static TensorBuffer uninitialised(DType dtype, std::vector<int64_t> shape);
  static TensorBuffer of(const TensorData& data);

  int64_t elements() const;
  // Element `index` (row-major) of a buffer of scalars; ints and bool, or any floating dtype.
  int64_t int_at(int64_t index) const;
  double float_at(int64_t index) const;
  void set_int(int64_t index, int64_t value);
  void set_float(int64_t index, double value);
  bool is_written(int64_t index) const;
  TensorData to_data() const;
};

struct InterpretOptions {
  uint64_t seed = 1;               // of the order in which parallel iterations run; 0: in order
  int64_t max_steps = 50'000'000;  // statements and loads; past it: "tir-step-budget"
  // Where tensorized blocks find their descriptions, which are run instead of their bodies.
  const Context* context = nullptr;
  // Where functions that are called are found.
  const IRModule* module = nullptr;
};

// Runs `function`: `args` are its handle parameters in order (updated in place), `scalars` its scalar parameters in
// order (floats as their bit pattern). Symbolic dimensions are bound from the arguments' shapes. A parameter whose
// buffer is flat takes an argument of any shape with as many elements.
support::Status interpret(const Function& function, std::vector<TensorBuffer>& args,
                          const std::vector<int64_t>& scalars = {}, const InterpretOptions& options = {});

}  // namespace lathe::tir
