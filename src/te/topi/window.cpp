#include "te/topi/window.h"

#include "te/topi/pad.h"

namespace lathe::te::topi {

Tensor pad_for_windows(const Tensor& x, const Layout& layout, const std::vector<Window>& windows,
                       const std::vector<Expr>& positions, bool overruns, const Expr& value, std::string name) {
  std::vector<Expr> before(x.ndim(), ir::int64(0)), shape = x.shape();
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window& w = windows[d];
    before[layout.spatial(d)] = w.pad_begin;
    Expr& padded = shape[layout.spatial(d)];
    padded = padded + w.pad_begin + w.pad_end;
    if (overruns) padded = ir::max(padded, (positions[d] - 1) * w.stride + w.reach());
  }
  return pad_constant(x, before, shape, value, std::move(name));
}

std::vector<IterVar> window_axes(const std::vector<Window>& windows) {
  std::vector<IterVar> axes;
  for (size_t d = 0; d < windows.size(); ++d)
    axes.push_back(reduce_axis(ir::int64(0), windows[d].kernel, "k" + std::to_string(d)));
  return axes;
}

}  // namespace lathe::te::topi
