// Positions of convolution and pooling windows.
#include "relax/infer.h"

namespace lathe::relax {

ir::Expr window_positions(const ir::Expr& extent, const Window& w, bool ceil_mode) {
  const ir::Expr stride = ir::int64(w.stride);
  const ir::Expr room = simplified(extent + w.pad_begin + w.pad_end - w.reach());
  if (!ceil_mode) return non_negative(ir::floordiv(room, stride) + 1);
  const ir::Expr rounded = ir::floordiv(room + (w.stride - 1), stride) + 1;
  // A window that would start in the trailing padding is dropped.
  const ir::Expr last_start = ir::floordiv(extent + w.pad_begin - 1, stride) + 1;
  return non_negative(simplified(ir::min(rounded, last_start)));
}

Result<std::vector<Window>> resolve_windows(const InferContext& c, const WindowAttributesView& view,
                                            const Shape& spatial, const Shape& kernel) {
  const size_t rank = spatial.size();
  const std::string name(c.op.name);
  const auto check_count = [&](const char* what, const std::vector<int64_t>& values, size_t count) -> support::Status {
    if (values.empty() || values.size() == count) return support::success();
    return wrong(codes::wrong_attribute, name + " over " + std::to_string(rank) + " spatial dimensions takes " +
                                             std::to_string(count) + " " + what + ", not " +
                                             std::to_string(values.size()));
  };
  TRY(check_count("strides", view.strides, rank));
  TRY(check_count("dilations", view.dilations, rank));
  TRY(check_count("pads", view.padding, 2 * rank));
  for (const auto* values : {&view.strides, &view.dilations})
    for (const int64_t value : *values)
      if (value < 1)
        return wrong(codes::wrong_attribute, "a stride or dilation of " + name + " is " + std::to_string(value));
  for (const int64_t value : view.padding)
    if (value < 0) return wrong(codes::wrong_attribute, "a pad of " + name + " is " + std::to_string(value));

  const bool by_rule = view.auto_pad == "SAME_UPPER" || view.auto_pad == "SAME_LOWER";
  if (!by_rule && view.auto_pad != "NOTSET" && view.auto_pad != "VALID")
    return wrong(codes::wrong_attribute, name + " has no auto_pad '" + view.auto_pad + "'");
  std::vector<Window> windows;
  for (size_t d = 0; d < rank; ++d) {
    Window w;
    w.stride = view.strides.empty() ? 1 : view.strides[d];
    w.dilation = view.dilations.empty() ? 1 : view.dilations[d];
    w.kernel = kernel[d];
    if (by_rule) {
      // ceil(extent / stride) positions; the odd cell of padding goes to the end (UPPER) or the beginning (LOWER).
      const ir::Expr positions = ir::floordiv(spatial[d] + (w.stride - 1), ir::int64(w.stride));
      const ir::Expr total = non_negative((positions - 1) * w.stride + w.reach() - spatial[d]);
      const ir::Expr half = ir::floordiv(total, ir::int64(2));
      w.pad_begin = view.auto_pad == "SAME_UPPER" ? half : simplified(total - half);
      w.pad_end = view.auto_pad == "SAME_UPPER" ? simplified(total - half) : half;
    } else {
      const bool pads = view.auto_pad == "NOTSET" && !view.padding.empty();
      w.pad_begin = ir::int64(pads ? view.padding[d] : 0);
      w.pad_end = ir::int64(pads ? view.padding[rank + d] : 0);
    }
    const auto extent = ir::as_int(spatial[d] + w.pad_begin + w.pad_end);
    const auto reach = ir::as_int(w.reach());
    const auto cells = ir::as_int(w.kernel);
    if (cells && *cells < 1) return wrong(codes::shape_mismatch, "the kernel of " + name + " is empty");
    if (extent && reach && *reach > *extent)
      return wrong(codes::shape_mismatch, "the kernel of " + name + " spans " + std::to_string(*reach) +
                                              " cells, more than the padded input's " + std::to_string(*extent) +
                                              " in spatial dimension " + std::to_string(d));
    windows.push_back(std::move(w));
  }
  return windows;
}

}  // namespace lathe::relax
