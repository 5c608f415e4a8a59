#include "te/topi/window.h"

#include "te/topi/pad.h"

namespace lathe::te::topi {

Tensor pad_for_windows(const Tensor& x, const Layout& layout, const std::vector<Window>& windows,
                       const std::vector<Expr>& positions, const Expr& value, std::string name) {
  std::vector<Expr> before(x.ndim(), ir::int64(0)), shape = x.shape();
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window& w = windows[d];
    before[layout.spatial(d)] = w.pad_begin;
    const Expr padded = x.shape()[layout.spatial(d)] + w.pad_begin + w.pad_end;
    // With ceil_mode the last window may reach past the padding.
    const Expr needed = (positions[d] - 1) * w.stride + w.reach();
    const auto spare = ir::as_int(padded - needed);
    shape[layout.spatial(d)] = spare && *spare < 0 ? needed : spare ? padded : ir::max(padded, needed);
    if (ir::is_int(w.pad_begin, 0) && ir::is_int(w.pad_end, 0) && (!spare || *spare >= 0))
      shape[layout.spatial(d)] = x.shape()[layout.spatial(d)];
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
