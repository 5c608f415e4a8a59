#include "te/topi/conv.h"

#include "support/mutation.h"
#include "te/topi/elementwise.h"
#include "tir/analysis/zero_border.h"

namespace lathe::te::topi {

LATHE_FAULT(te_conv_dilation, "ops_test", "conv: dilation is dropped");

Tensor conv(const Tensor& x, const Tensor& kernel, const std::vector<Expr>& shape, const ConvOptions& o) {
  const size_t spatial_rank = o.windows.size();
  const bool packed = o.packed_channels > 0;
  const Layout out = o.out_layout.value_or(o.layout);
  std::vector<Expr> positions;
  for (size_t d = 0; d < spatial_rank; ++d) positions.push_back(shape[out.spatial(d)]);
  const Tensor padded =
      pad_for_windows(x, o.layout, o.windows, positions, false, ir::constant(x.dtype(), 0), "conv_pad");

  const Expr group_inputs = packed ? kernel.shape()[kernel.ndim() - 2] : kernel.shape()[1];
  const IterVar rc = reduce_axis(ir::int64(0), group_inputs, "rc");
  const std::vector<IterVar> cells = window_axes(o.windows);
  std::vector<IterVar> reduced{rc};
  reduced.insert(reduced.end(), cells.begin(), cells.end());
  const Expr group_outputs = ir::floordiv(o.out_channels, ir::int64(o.groups));

  // The sum at output position `i`; output channel `channel`, the kernel's element given.
  const auto product = [&](const std::vector<Expr>& i, const Expr& channel, const Expr& weight) {
    std::vector<Expr> cell(o.layout.rank);
    cell[0] = i[0];
    cell[o.layout.channel()] =
        o.groups == 1 ? Expr(rc->var) : ir::floordiv(channel, group_outputs) * group_inputs + rc->var;
    for (size_t d = 0; d < spatial_rank; ++d) {
      const int64_t dilation = support::flip(te_conv_dilation) ? 1 : o.windows[d].dilation;
      cell[o.layout.spatial(d)] = i[out.spatial(d)] * o.windows[d].stride + cells[d]->var * dilation;
    }
    return sum(ir::cast(o.accumulate, padded(std::move(cell))) * ir::cast(o.accumulate, weight), reduced);
  };

  ir::Attributes annotations;
  if (!o.zero_border.empty()) {
    tir::ZeroBorder border;
    border.before.resize(x.ndim());
    border.after.resize(x.ndim());
    for (size_t d = 0; d < spatial_rank; ++d) {
      border.before[o.layout.spatial(d)] = o.zero_border[d];
      border.after[o.layout.spatial(d)] = o.zero_border[spatial_rank + d];
    }
    annotations.set(tir::zero_border_key, tir::value_of(border, padded.buffer->name));
  }

  const Tensor result = compute(
      shape,
      [&](const std::vector<Expr>& i) {
        const Expr channel = i[out.channel()], lanes = ir::int64(packed ? o.packed_channels : 1);
        // A single panel holds every channel at its own place.
        const bool one_panel = packed && ir::is_int(kernel.shape()[0], 1);
        std::vector<Expr> at{one_panel ? ir::int64(0) : packed ? ir::floordiv(channel, lanes) : channel};
        if (!packed) at.push_back(rc->var);
        for (const IterVar& k : cells) at.push_back(k->var);
        if (packed) at.insert(at.end(), {rc->var, one_panel ? channel : ir::floormod(channel, lanes)});
        return product(i, channel, kernel(std::move(at)));
      },
      {padded, kernel}, "conv", "", std::move(annotations));
  return cast(result, o.out_dtype, "conv_cast");
}

}  // namespace lathe::te::topi
