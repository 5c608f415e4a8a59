// Padding.
#pragma once

#include "te/tensor.h"

namespace lathe::te::topi {

// `x` of `shape` = before + x.shape + after, with `value` outside x. A negative pad crops. The same tensor where every
// pad is the constant 0. `read` are the tensors that the value reads.
Tensor pad_constant(const Tensor& x, const std::vector<Expr>& before, const std::vector<Expr>& shape, const Expr& value,
                    std::string name = "pad", const std::vector<Tensor>& read = {});

enum class PadMode : uint8_t { reflect, edge, wrap };
// Outside x lie x's own elements: mirrored about the border cells, the border cell, or x again (NumPy's modes).
Tensor pad_with_own(const Tensor& x, const std::vector<Expr>& before, const std::vector<Expr>& shape, PadMode mode,
                    std::string name = "pad");

}  // namespace lathe::te::topi
