// The gradient of a tensor program, as another tensor program: reverse-mode differentiation of whatever it does.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// Of a function of `inputs` buffers, then outputs, what gradients are made of: which inputs they are wanted of, and of
// which outputs an adjoint is given. All of them are floats.
struct AdjointRequest {
  size_t inputs = 0;
  std::vector<bool> wanted;  // one an input
  std::vector<bool> given;   // one an output
};

// The function whose parameters are f's inputs, the adjoints of the outputs that are given, and the adjoints of the
// inputs that are wanted, which it writes; then f's scalars. It computes again what f computes as far as it needs it.
// Where slopes differ to the left and to the right, see derivative.h; of equal largest elements the first one counts.
// Diagnostics: tir-no-gradient, for a loop without end, calls, vectors, and functions that have no derivative.
Function adjoint_program(const Function& f, const AdjointRequest& request);

}  // namespace lathe::tir
