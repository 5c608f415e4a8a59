#include "te/topi/arrange.h"

#include "arith/analyzer.h"
#include "te/topi/broadcast.h"
#include "te/topi/elementwise.h"

namespace lathe::te::topi {

size_t axis_of(int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n)
    refuse_shapes("axis " + std::to_string(axis) + " of a tensor of " + std::to_string(rank) + " dimensions");
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}

Tensor transpose(const Tensor& x, const std::vector<int64_t>& axes) {
  std::vector<size_t> order;
  for (const int64_t axis : axes) order.push_back(axis_of(axis, x.ndim()));
  if (axes.empty())
    for (size_t d = x.ndim(); d-- > 0;) order.push_back(d);
  std::vector<size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t d = 0; d < std::max(sorted.size(), x.ndim()); ++d)
    if (sorted.size() != x.ndim() || sorted[d] != d)
      refuse_shapes("the axes of a transposition are all " + std::to_string(x.ndim()) + ", each once");
  std::vector<Expr> shape;
  for (const size_t axis : order) shape.push_back(x.shape()[axis]);
  return compute(
      shape,
      [&](const std::vector<Expr>& at) {
        std::vector<Expr> own(x.ndim());
        for (size_t d = 0; d < order.size(); ++d) own[order[d]] = at[d];
        return x(std::move(own));
      },
      {x}, "T_transpose");
}

Tensor reshape(const Tensor& x, std::vector<Expr> shape) {
  Expr known = ir::int64(1);
  std::optional<size_t> open;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (ir::is_int(shape[d], -1)) {
      if (open) refuse_shapes("at most one extent is -1");
      open = d;
    } else {
      known = known * ir::cast(ir::DType::int64(), shape[d]);
    }
  }
  arith::Analyzer analyzer;
  const Expr total = analyzer.simplify(ir::product(x.shape()));
  known = analyzer.simplify(known);
  if (open) {
    if (ir::as_int(known) && ir::as_int(total) && (*ir::as_int(known) == 0 || *ir::as_int(total) % *ir::as_int(known)))
      refuse_shapes("there is no extent for -1: " + std::to_string(*ir::as_int(total)) + " elements");
    shape[*open] = analyzer.simplify(ir::floordiv(total, known));
  } else if (ir::as_int(known) && ir::as_int(total) && *ir::as_int(known) != *ir::as_int(total)) {
    refuse_shapes(std::to_string(*ir::as_int(total)) + " elements do not have a shape of " +
                  std::to_string(*ir::as_int(known)));
  }
  return compute(
      shape,
      [&](const std::vector<Expr>& at) {
        Expr flat = ir::int64(0);
        for (size_t d = 0; d < shape.size(); ++d) flat = flat * ir::cast(ir::DType::int64(), shape[d]) + at[d];
        std::vector<Expr> own(x.ndim());
        for (size_t d = x.ndim(); d-- > 0;) {
          own[d] = d == 0 ? flat : ir::floormod(flat, x.shape()[d]);
          flat = ir::floordiv(flat, x.shape()[d]);
        }
        return x(std::move(own));
      },
      {x}, "T_reshape");
}

Tensor expand_dims(const Tensor& x, int64_t axis, int64_t count) {
  const size_t first = axis_of(axis, x.ndim() + 1);
  if (count < 0) refuse_shapes("a tensor gets no " + std::to_string(count) + " dimensions");
  std::vector<Expr> shape = x.shape();
  shape.insert(shape.begin() + static_cast<int64_t>(first), static_cast<size_t>(count), ir::int64(1));
  return compute(
      shape,
      [&](const std::vector<Expr>& at) {
        std::vector<Expr> own = at;
        own.erase(own.begin() + static_cast<int64_t>(first), own.begin() + static_cast<int64_t>(first) + count);
        return x(std::move(own));
      },
      {x}, "T_expand_dims");
}

Tensor squeeze(const Tensor& x, const std::vector<int64_t>& axes) {
  std::vector<bool> gone(x.ndim());
  for (const int64_t axis : axes) gone[axis_of(axis, x.ndim())] = true;
  std::vector<Expr> shape;
  for (size_t d = 0; d < x.ndim(); ++d) {
    const bool one = ir::is_int(x.shape()[d], 1);
    if (axes.empty()) gone[d] = one;
    if (gone[d] && !one) refuse_shapes("dimension " + std::to_string(d) + " is not of extent 1");
    if (!gone[d]) shape.push_back(x.shape()[d]);
  }
  return compute(
      shape,
      [&](const std::vector<Expr>& at) {
        std::vector<Expr> own;
        size_t next = 0;
        for (size_t d = 0; d < x.ndim(); ++d) own.push_back(gone[d] ? ir::int64(0) : at[next++]);
        return x(std::move(own));
      },
      {x}, "T_squeeze");
}

Tensor broadcast_to(const Tensor& x, const std::vector<Expr>& shape) {
  if (broadcast_shapes(x.shape(), shape).size() != shape.size())
    refuse_shapes("a tensor of " + std::to_string(x.ndim()) + " dimensions is not broadcast to " +
                  std::to_string(shape.size()));
  for (size_t d = 0; d < x.ndim(); ++d) {
    const Expr &own = x.shape()[d], &wanted = shape[shape.size() - x.ndim() + d];
    if (ir::is_int(wanted, 1) && ir::as_int(own) && !ir::is_int(own, 1))
      refuse_shapes("an extent of " + std::to_string(*ir::as_int(own)) + " is not broadcast to 1");
  }
  return map({x}, shape, [](const std::vector<Expr>& v) { return v[0]; }, "T_broadcast_to");
}

Tensor flip(const Tensor& x, int64_t axis) {
  const size_t d = axis_of(axis, x.ndim());
  return compute(
      x.shape(),
      [&](const std::vector<Expr>& at) {
        std::vector<Expr> own = at;
        own[d] = x.shape()[d] - 1 - at[d];
        return x(std::move(own));
      },
      {x}, "T_flip");
}

Tensor concatenate(const std::vector<Tensor>& tensors, int64_t axis) {
  if (tensors.empty()) refuse_shapes("there is nothing to concatenate");
  const size_t d = axis_of(axis, tensors[0].ndim());
  std::vector<Expr> shape = tensors[0].shape(), starts = {ir::int64(0)};
  for (const Tensor& t : tensors) {
    if (t.ndim() != shape.size() || t.dtype() != tensors[0].dtype())
      refuse_shapes("tensors of different rank or dtype are not concatenated");
    for (size_t other = 0; other < shape.size(); ++other)
      if (other != d && !arith::Analyzer().can_prove_equal(t.shape()[other], shape[other]))
        refuse_shapes("tensors that are concatenated differ in dimension " + std::to_string(other));
    starts.push_back(starts.back() + t.shape()[d]);
  }
  shape[d] = starts.back();
  return compute(
      shape,
      [&](const std::vector<Expr>& at) {
        Expr chosen;
        for (size_t k = tensors.size(); k-- > 0;) {
          std::vector<Expr> own = at;
          own[d] = at[d] - starts[k];
          const Expr element = tensors[k](std::move(own));
          chosen = chosen ? ir::if_then_else(at[d] < starts[k + 1], element, chosen) : element;
        }
        return chosen;
      },
      tensors, "T_concat");
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t axis) {
  std::vector<Tensor> expanded;
  for (const Tensor& t : tensors) expanded.push_back(expand_dims(t, axis, 1));
  return concatenate(expanded, axis);
}

Tensor take(const Tensor& x, const Tensor& indices, int64_t axis) {
  const size_t d = axis_of(axis, x.ndim());
  if (!indices.dtype().is_integer()) refuse_shapes("indices are integers, not " + indices.dtype().str());
  std::vector<Expr> shape(x.shape().begin(), x.shape().begin() + static_cast<int64_t>(d));
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + static_cast<int64_t>(d) + 1, x.shape().end());
  return compute(
      shape,
      [&](const std::vector<Expr>& at) {
        const auto begin = at.begin() + static_cast<int64_t>(d), end = begin + static_cast<int64_t>(indices.ndim());
        const Expr index = ir::cast(ir::DType::int64(), indices(std::vector<Expr>(begin, end)));
        std::vector<Expr> own(at.begin(), begin);
        own.push_back(ir::max(ir::min(index, x.shape()[d] - 1), ir::int64(0)));
        own.insert(own.end(), end, at.end());
        return x(std::move(own));
      },
      {x, indices}, "T_take");
}

Tensor strided_slice(const Tensor& x, const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                     const std::vector<int64_t>& strides) {
  if (begin.size() > x.ndim() || end.size() != begin.size() || (!strides.empty() && strides.size() != begin.size()))
    refuse_shapes("a slice has a begin, an end and a stride for each of the first dimensions");
  std::vector<Expr> shape = x.shape();
  std::vector<int64_t> from, step;
  for (size_t d = 0; d < begin.size(); ++d) {
    const auto extent = ir::as_int(x.shape()[d]);
    if (!extent) refuse_shapes("the extent of dimension " + std::to_string(d) + " is not a constant");
    step.push_back(strides.empty() ? 1 : strides[d]);
    if (step[d] == 0) refuse_shapes("a slice has no stride of 0");
    const auto clipped = [&](int64_t at) {
      if (at < 0) at = at < -*extent ? -1 : at + *extent;
      return step[d] > 0 ? std::clamp<int64_t>(at, 0, *extent) : std::clamp<int64_t>(at, -1, *extent - 1);
    };
    from.push_back(clipped(begin[d]));
    const int64_t length = clipped(end[d]) - from[d];
    shape[d] = ir::int64(std::max<int64_t>(0, (length + step[d] - (step[d] > 0 ? 1 : -1)) / step[d]));
  }
  return compute(
      shape,
      [&](const std::vector<Expr>& at) {
        std::vector<Expr> own = at;
        for (size_t d = 0; d < from.size(); ++d) own[d] = at[d] * step[d] + from[d];
        return x(std::move(own));
      },
      {x}, "T_strided_slice");
}

}  // namespace lathe::te::topi
