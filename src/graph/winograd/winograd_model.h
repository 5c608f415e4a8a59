// What Winograd's algorithm costs and loses on one convolution: what the pass `winograd` chooses and states by.
#pragma once

#include "ir/tensor_data.h"
#include "target/target.h"

namespace lathe::graph {

// A convolution of 3x3 with stride one.
struct WinogradSizes {
  int64_t images = 1, height = 0, width = 0;  // of the output
  int64_t inputs = 0, outputs = 0;            // channels
};

// Cycles of one core by the model that docs/winograd.md writes down: multiply-adds, what the transforms move, and the
// weights. `tile` outputs a side; 0: the direct convolution.
double winograd_cycles(const WinogradSizes& sizes, int64_t tile, const target::Target& target);

// The tile of fewest cycles: 2, 4, or 0 where the direct convolution is not clearly slower, or no vector loops would
// fit the transforms; and why.
struct WinogradChoice {
  int64_t tile = 0;
  std::string why;
};
WinogradChoice choose_winograd(const WinogradSizes& sizes, const target::Target& target);

// Measured on these weights [O, I, 3, 3], for a few output channels and tiles of inputs drawn from [-1, 1), the same
// ones each time: the largest distance to the convolution in float64, over the largest output there. `direct` is that
// of a convolution in float32 that adds term by term.
struct WinogradError {
  double relative = 0, direct = 0;
};
WinogradError winograd_error(const ir::TensorDataNode& weights, int64_t tile);

}  // namespace lathe::graph
