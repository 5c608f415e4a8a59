#include "te/topi/elementwise.h"

#include "ir/structural.h"

namespace lathe::te::topi {

bool is_cut_of(const Expr& extent, const Expr& whole) {
  const auto* cut = extent.as<ir::Min>();
  if (!cut || ir::as_int(whole)) return false;
  const auto is_cut = [&](const Expr& own, const Expr& most) {
    return ir::structural_equal(own, whole) && ir::as_int(most).value_or(0) > 1;
  };
  return is_cut(cut->a, cut->b) || is_cut(cut->b, cut->a);
}

Expr broadcast_index(const Expr& extent, const Expr& out_extent, const Expr& index) {
  if (ir::is_int(extent, 1)) return ir::int64(0);
  if (ir::as_int(extent) || ir::structural_equal(extent, out_extent) || is_cut_of(extent, out_extent)) return index;
  return ir::select(ir::eq(extent, ir::int64(1)), ir::int64(0), index);
}

Expr broadcast_load(const Tensor& x, const std::vector<Expr>& shape, const std::vector<Expr>& indices) {
  std::vector<Expr> own;
  const size_t offset = shape.size() - x.ndim();
  for (size_t d = 0; d < x.ndim(); ++d)
    own.push_back(broadcast_index(x.shape()[d], shape[offset + d], indices[offset + d]));
  return x(std::move(own));
}

Tensor map(const std::vector<Tensor>& inputs, const std::vector<Expr>& shape, const Scalars& f, std::string name) {
  return compute(
      shape,
      [&](const std::vector<Expr>& indices) {
        std::vector<Expr> values;
        for (const Tensor& input : inputs) values.push_back(broadcast_load(input, shape, indices));
        return f(values);
      },
      inputs, std::move(name));
}

Tensor map(const Tensor& input, const std::function<Expr(const Expr&)>& f, std::string name) {
  return map({input}, input.shape(), [&](const std::vector<Expr>& values) { return f(values[0]); }, std::move(name));
}

Tensor cast(const Tensor& input, ir::DType dtype, std::string name) {
  if (input.dtype() == dtype) return input;
  return map(input, [&](const Expr& x) { return ir::cast(dtype, x); }, std::move(name));
}

}  // namespace lathe::te::topi
