#include "te/topi/pad.h"

#include "ir/structural.h"
#include "support/mutation.h"

namespace lathe::te::topi {

LATHE_FAULT(te_pad_bound, "ops_test", "pad: the last element inside counts as padding");

namespace {

// Whether nothing is added along the dimension.
bool is_whole(const Tensor& x, const std::vector<Expr>& before, const std::vector<Expr>& shape, size_t d) {
  return ir::is_int(before[d], 0) && ir::structural_equal(shape[d], x.shape()[d]);
}

}  // namespace

Tensor pad_constant(const Tensor& x, const std::vector<Expr>& before, const std::vector<Expr>& shape, const Expr& value,
                    std::string name, const std::vector<Tensor>& read) {
  std::vector<Tensor> inputs{x};
  inputs.insert(inputs.end(), read.begin(), read.end());
  const size_t rank = x.ndim();
  std::vector<bool> whole(rank);
  bool nothing = true;
  for (size_t d = 0; d < rank; ++d) {
    whole[d] = is_whole(x, before, shape, d);
    nothing = nothing && whole[d];
  }
  if (nothing) return x;
  return compute(
      shape,
      [&](const std::vector<Expr>& i) {
        Expr inside = ir::boolean(true);
        std::vector<Expr> own;
        for (size_t d = 0; d < rank; ++d) {
          own.push_back(i[d] - before[d]);
          if (whole[d]) continue;
          const Expr end = support::flip(te_pad_bound) ? x.shape()[d] + before[d] - 1 : x.shape()[d] + before[d];
          inside = ir::logical_and(inside, ir::logical_and(i[d] >= before[d], i[d] < end));
        }
        return ir::if_then_else(inside, x(std::move(own)), value);
      },
      std::move(inputs), std::move(name));
}

namespace {

// The index in [0, extent) whose element stands at `i` (which may lie outside).
Expr own_index(const Expr& i, const Expr& extent, PadMode mode) {
  const Expr last = extent - 1;
  switch (mode) {
    case PadMode::edge:
      return ir::max(ir::min(i, last), ir::int64(0));
    case PadMode::wrap:
      return ir::floormod(i, extent);
    case PadMode::reflect: {
      // A zigzag of period 2 * last; of one element there is only that.
      const Expr period = ir::max(last * 2, ir::int64(1));
      const Expr phase = ir::floormod(i, period);
      return ir::max(ir::min(phase, last * 2 - phase), ir::int64(0));
    }
  }
  support::unreachable("a pad mode without a case");
}

}  // namespace

Tensor pad_with_own(const Tensor& x, const std::vector<Expr>& before, const std::vector<Expr>& shape, PadMode mode,
                    std::string name) {
  const size_t rank = x.ndim();
  return compute(
      shape,
      [&](const std::vector<Expr>& i) {
        std::vector<Expr> own;
        for (size_t d = 0; d < rank; ++d)
          own.push_back(is_whole(x, before, shape, d) ? i[d] : own_index(i[d] - before[d], x.shape()[d], mode));
        if (rank == 0 || is_whole(x, before, shape, rank - 1)) return x(std::move(own));
        // Around and around a known number of elements, vectors are gathered by constants.
        if (mode == PadMode::wrap && ir::as_int(x.shape().back())) return x(std::move(own));
        // What is inside along the last axis lies as it did, which loops are divided by.
        std::vector<Expr> inside = own;
        inside.back() = i.back() - before.back();
        const Expr begins = i.back() >= before.back(), ends = i.back() < before.back() + x.shape().back();
        return ir::if_then_else(ir::logical_and(begins, ends), x(std::move(inside)), x(std::move(own)));
      },
      {x}, std::move(name));
}

}  // namespace lathe::te::topi
