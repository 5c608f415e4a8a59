// Pooling of one to three spatial dimensions in any layout.
#include "ops/composites/windows.h"

namespace lathe::ops::composites {

namespace {

struct WindowPoolAttributes : AttributesNode {
  std::vector<int64_t> pool_size{1}, strides{1}, padding{0}, dilation{1};
  bool ceil_mode = false, count_include_pad = false;
  std::string layout;
  std::optional<std::string> out_layout;  // nothing: layout
};

template <int spatial>
struct PoolNdAttributes : WindowPoolAttributes {
  static constexpr std::string_view kind_name = spatial == 1   ? "Pool1dAttributes"
                                                : spatial == 2 ? "Pool2dAttributes"
                                                               : "Pool3dAttributes";
  PoolNdAttributes() { layout = "NC" + spatial_letters(spatial); }
  static constexpr auto fields() {
    return std::tuple{field("pool_size", &PoolNdAttributes::pool_size),
                      field("strides", &PoolNdAttributes::strides),
                      field("padding", &PoolNdAttributes::padding),
                      field("dilation", &PoolNdAttributes::dilation),
                      field("ceil_mode", &PoolNdAttributes::ceil_mode),
                      field("count_include_pad", &PoolNdAttributes::count_include_pad),
                      field("layout", &PoolNdAttributes::layout),
                      field("out_layout", &PoolNdAttributes::out_layout)};
  }
};

struct AnyAdaptivePoolAttributes : AttributesNode {
  std::optional<std::vector<int64_t>> output_size;  // nothing: the input's
  std::string layout;
  std::optional<std::string> out_layout;  // nothing: layout
};

template <int spatial>
struct AdaptivePoolNdAttributes : AnyAdaptivePoolAttributes {
  static constexpr std::string_view kind_name = spatial == 1   ? "AdaptivePool1dAttributes"
                                                : spatial == 2 ? "AdaptivePool2dAttributes"
                                                               : "AdaptivePool3dAttributes";
  AdaptivePoolNdAttributes() { layout = "NC" + spatial_letters(spatial); }
  static constexpr auto fields() {
    return std::tuple{field("output_size", &AdaptivePoolNdAttributes::output_size),
                      field("layout", &AdaptivePoolNdAttributes::layout),
                      field("out_layout", &AdaptivePoolNdAttributes::out_layout)};
  }
};

const Value& pooled_input(const Expansion& e, const std::string& layout, const std::optional<std::string>& out_layout,
                          size_t spatial) {
  const Value& x = numeric_tensor(e, 0, "data", spatial + 2);
  const std::string letters = "NC" + spatial_letters(spatial);
  check_layout(e, "layout", layout, letters);
  if (out_layout && !out_layout->empty()) check_layout(e, "out_layout", *out_layout, letters);
  return x;
}

// Sums of floats are wide, those of integers exact.
DType mean_dtype(DType dtype) {
  if (dtype.is_floating()) return relax::accumulation_dtype(dtype);
  return dtype.is_uint() && dtype.bits == 64 ? dtype : DType::int64();
}

Value pooled(const Expansion& e, const WindowPoolAttributes& a, size_t spatial, bool takes_mean) {
  Value x = pooled_input(e, a.layout, a.out_layout, spatial);
  const std::string space = spatial_letters(spatial);
  std::string from = a.layout;
  if (from != "NC" + space && from != "N" + space + "C") {
    x = e.permute(x, axes_between(from, "NC" + space));
    from = "NC" + space;
  }
  const auto how = ir::make<PoolAttributes>(
      one_each(e, "pool_size", a.pool_size, spatial, 1), one_each(e, "strides", a.strides, spatial, 1),
      begins_and_ends(e, a.padding, spatial), one_each(e, "dilation", a.dilation, spatial, 1), a.ceil_mode,
      std::string("NOTSET"), std::string(from[1] == 'C' ? "NCHW" : "NHWC"), a.count_include_pad);
  const DType dtype = build::dtype_of(x);
  if (takes_mean && dtype.is_integer()) x = e.cast(x, mean_dtype(dtype));
  const Value y = e.cast(e.call(takes_mean ? ops::avg_pool : ops::max_pool, {x}, how), dtype);
  return laid_out(e, y, from, a.out_layout, a.layout);
}

// Element i of `out` is the mean of elements floor(i * own / out) to ceil((i +
// 1) * own / out) of `own`.
struct AdaptiveAxis {
  size_t axis;
  Expr own;
  int64_t out;

  Expr first(const Expr& i) const { return ir::floordiv(i * own, ir::int64(out)); }
  Expr end(const Expr& i) const { return ir::floordiv((i + 1) * own + (out - 1), ir::int64(out)); }
  bool is_even() const { return ir::as_int(own) && *ir::as_int(own) % out == 0; }
  Expr most() const {
    if (is_even()) return ir::int64(*ir::as_int(own) / out);
    return relax::simplified(ir::floordiv(own + (out - 1), ir::int64(out)) + 1);
  }
};

Value adaptively_pooled(const Expansion& e, const AnyAdaptivePoolAttributes& a, size_t spatial) {
  const Value x = pooled_input(e, a.layout, a.out_layout, spatial);
  if (!a.output_size) return laid_out(e, x, a.layout, a.out_layout, a.layout);
  const auto sizes = one_each(e, "output_size", *a.output_size, spatial, 1);
  Shape shape = build::shape_of(x);
  std::vector<AdaptiveAxis> dimensions;
  for (size_t d = 0; d < spatial; ++d) {
    const size_t axis = a.layout.find(spatial_letters(spatial)[d]);
    dimensions.push_back({axis, shape[axis], sizes[d]});
    shape[axis] = ir::int64(sizes[d]);
  }
  const DType dtype = build::dtype_of(x), wide = mean_dtype(dtype);
  const auto make = [&](const std::vector<Tensor>& in) {
    std::vector<te::IterVar> cells;
    for (size_t d = 0; d < spatial; ++d)
      cells.push_back(te::reduce_axis(ir::int64(0), dimensions[d].most(), "k" + std::to_string(d)));
    const Tensor sums = te::compute(
        shape,
        [&](const Indices& i) {
          Indices at = i;
          Expr inside = ir::boolean(true);
          for (size_t d = 0; d < spatial; ++d) {
            const AdaptiveAxis& each = dimensions[d];
            at[each.axis] = each.first(i[each.axis]) + cells[d]->var;
            if (!each.is_even()) inside = ir::logical_and(inside, at[each.axis] < each.end(i[each.axis]));
          }
          const Expr value = ir::cast(wide, in[0](std::move(at)));
          return te::sum(ir::is_int(inside, 1) ? value : ir::if_then_else(inside, value, ir::constant(wide, 0)), cells);
        },
        in, "adaptive_pool_sum");
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          Expr count = ir::int64(1);
          for (const AdaptiveAxis& each : dimensions)
            count = count * ir::max(each.end(i[each.axis]) - each.first(i[each.axis]), ir::int64(1));
          return ir::cast(dtype, ir::div(sums(i), ir::cast(wide, count)));
        },
        {sums}, "adaptive_pool")};
  };
  const Value y = e.b.call_te("adaptive_pool", {x}, make).value_or_throw();
  return laid_out(e, y, a.layout, a.out_layout, a.layout);
}

template <int spatial, bool takes_mean>
Value expand_pool(const Expansion& e) {
  return pooled(e, e.attrs<PoolNdAttributes<spatial>>(), spatial, takes_mean);
}
template <int spatial>
Value expand_adaptive(const Expansion& e) {
  return adaptively_pooled(e, e.attrs<AdaptivePoolNdAttributes<spatial>>(), spatial);
}

template <int spatial, bool takes_mean>
Operator pool_row(std::string_view name, std::string_view reference) {
  return composite(name, {{"data"}}, relax::attributes_of<PoolNdAttributes<spatial>>(),
                   expand_pool<spatial, takes_mean>, reference);
}
template <int spatial>
Operator adaptive_row(std::string_view name, std::string_view reference) {
  return composite(name, {{"data"}}, relax::attributes_of<AdaptivePoolNdAttributes<spatial>>(),
                   expand_adaptive<spatial>, reference);
}

}  // namespace

const Operator max_pool1d =
    pool_row<1, false>("nn.max_pool1d", "numpy.lib.stride_tricks.sliding_window_view(data, pool_size, 2).max(-1)");
const Operator max_pool2d = pool_row<2, false>("nn.max_pool2d",
                                               "numpy.lib.stride_tricks.sliding_window_view(data, "
                                               "pool_size, (2, 3)).max((-2, -1))");
const Operator max_pool3d = pool_row<3, false>("nn.max_pool3d",
                                               "numpy.lib.stride_tricks.sliding_window_view(data, "
                                               "pool_size, (2, 3, 4)).max((-3, -2, -1))");
const Operator avg_pool1d =
    pool_row<1, true>("nn.avg_pool1d", "numpy.lib.stride_tricks.sliding_window_view(data, pool_size, 2).mean(-1)");
const Operator avg_pool2d = pool_row<2, true>("nn.avg_pool2d",
                                              "numpy.lib.stride_tricks.sliding_window_view(data, "
                                              "pool_size, (2, 3)).mean((-2, -1))");
const Operator avg_pool3d = pool_row<3, true>("nn.avg_pool3d",
                                              "numpy.lib.stride_tricks.sliding_window_view(data, "
                                              "pool_size, (2, 3, 4)).mean((-3, -2, -1))");
const Operator adaptive_avg_pool1d = adaptive_row<1>("nn.adaptive_avg_pool1d",
                                                     "numpy.stack([data[:, :, i * n // o : -(-(i + 1) "
                                                     "* n // o)].mean(2) for i in range(o)], 2)");
const Operator adaptive_avg_pool2d = adaptive_row<2>("nn.adaptive_avg_pool2d",
                                                     "numpy.stack([data[:, :, i * n // o : -(-(i + 1) * n // "
                                                     "o)].mean(2) for i in range(o)], 2)  # then along W");
const Operator adaptive_avg_pool3d = adaptive_row<3>("nn.adaptive_avg_pool3d",
                                                     "numpy.stack([data[:, :, i * n // o : -(-(i + 1) * n // "
                                                     "o)].mean(2) for i in range(o)], 2)  # then along H, W");

}  // namespace lathe::ops::composites
