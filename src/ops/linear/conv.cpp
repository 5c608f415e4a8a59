// nn.conv: convolution (cross-correlation) over one or more spatial dimensions, with strides, dilation, padding and
// groups (depthwise where a group has one input channel). Floats narrower than float32 are summed in float32.
#include "te/topi/conv.h"

#include "ops/layouts.h"
#include "ops/rule.h"

namespace lathe::ops {

namespace {

using te::topi::Layout;

// The kernel's shape as [O, I, spatial…].
Result<Shape> logical_kernel(const ConvAttributes& a, const Shape& kernel, const TensorStructInfo& info) {
  if (a.kernel_layout == "OIHW") return kernel;
  const int64_t lanes = packed_lanes(a.kernel_layout, "OHWI", "o");
  if (lanes == 0) return relax::wrong(codes::wrong_attribute, "nn.conv has no kernel_layout '" + a.kernel_layout + "'");
  const int64_t tiles = (a.channels + lanes - 1) / lanes;
  if (kernel.size() < 4 || !ir::is_int(kernel[0], tiles) || !ir::is_int(kernel.back(), lanes))
    return relax::wrong(codes::shape_mismatch, "the kernel is " + relax::text_of(info) + ", but " +
                                                   std::to_string(a.channels) + " channels packed as " +
                                                   a.kernel_layout + " take [" + std::to_string(tiles) +
                                                   ", spatial…, I, " + std::to_string(lanes) + "]");
  Shape logical{ir::int64(a.channels), kernel[kernel.size() - 2]};
  logical.insert(logical.end(), kernel.begin() + 1, kernel.end() - 2);
  return logical;
}

struct ResolvedConv {
  Layout layout, out_layout;
  Shape kernel;  // [O, I, spatial…]
  std::vector<relax::Window> windows;
};

Result<ResolvedConv> resolve_conv(const InferContext& c, const TensorStructInfo& x, const TensorStructInfo& kernel) {
  const auto& a = c.attrs<ConvAttributes>();
  ResolvedConv r;
  r.layout = TRY(layout_of(c, a.data_layout, x.shape->size()));
  r.out_layout = a.out_layout.empty() ? r.layout : TRY(layout_of(c, a.out_layout, x.shape->size()));
  r.kernel = TRY(logical_kernel(a, *kernel.shape, kernel));
  if (r.kernel.size() != x.shape->size())
    return relax::wrong(codes::wrong_rank, "nn.conv of " + relax::text_of(x) + " with a kernel " +
                                               relax::text_of(r.kernel) + ": the ranks differ");
  const Expr& channels = (*x.shape)[r.layout.channel()];
  if (a.groups < 1) return relax::wrong(codes::wrong_attribute, "nn.conv has " + std::to_string(a.groups) + " groups");
  if (!relax::may_be(channels, r.kernel[1] * a.groups, c.assumptions))
    return relax::wrong(codes::shape_mismatch,
                        "nn.conv of " + relax::text_of(x) + " with a kernel " + relax::text_of(r.kernel) + " in " +
                            std::to_string(a.groups) + " groups: the input has " + relax::text_of(channels) +
                            " channels, the kernel takes " + relax::text_of(r.kernel[1] * a.groups));
  if (!relax::may_be(ir::floormod(r.kernel[0], ir::int64(a.groups)), ir::int64(0), c.assumptions))
    return relax::wrong(codes::shape_mismatch, relax::text_of(r.kernel[0]) + " output channels of nn.conv cannot be " +
                                                   "divided into " + std::to_string(a.groups) + " groups");
  const bool counts = std::all_of(a.zero_border.begin(), a.zero_border.end(), [](int64_t n) { return n >= 0; });
  if (!a.zero_border.empty() && (a.zero_border.size() != 2 * r.layout.spatial_rank() || !counts))
    return relax::wrong(codes::wrong_attribute, "nn.conv over " + std::to_string(r.layout.spatial_rank()) +
                                                    " dimensions has a zero_border that is not twice as many counts");
  const Shape cells(r.kernel.begin() + 2, r.kernel.end());
  r.windows = TRY(relax::resolve_windows(c, {a.strides, a.dilation, a.padding, a.auto_pad},
                                         spatial_extents(*x.shape, r.layout), cells));
  return r;
}

Result<StructInfo> infer_conv(const InferContext& c) {
  TRY(relax::check_dtype(c, 0, DTypeSet::numeric));
  TRY(relax::check_same_dtype(c, 0, 1));
  const TensorStructInfo &x = *c.tensor(0), &kernel = *c.tensor(1);
  const DType chosen = c.attrs<ConvAttributes>().out_dtype, dtype = chosen.is_void() ? x.dtype : chosen;
  if (!x.shape || !kernel.shape) return relax::tensor_info_of_rank(x.ndim, dtype);
  const ResolvedConv r = TRY(resolve_conv(c, x, kernel));
  Shape shape(x.shape->size());
  shape[0] = (*x.shape)[0];
  shape[r.out_layout.channel()] = r.kernel[0];
  for (size_t d = 0; d < r.windows.size(); ++d)
    shape[r.out_layout.spatial(d)] = relax::window_positions((*x.shape)[r.layout.spatial(d)], r.windows[d], false);
  return relax::tensor_info(std::move(shape), dtype);
}

std::vector<Tensor> lower_conv(const LowerContext& c) {
  const auto& a = c.attrs<ConvAttributes>();
  const InferContext infer{conv, c.call.args, c.attributes};
  const ResolvedConv r = resolve_conv(infer, *infer.tensor(0), *infer.tensor(1)).value_or_throw();
  const DType dtype = c.output().dtype;
  return {te::topi::conv(c.tensor(0), c.tensor(1), *c.output().shape,
                         {.layout = r.layout,
                          .out_layout = r.out_layout,
                          .windows = r.windows,
                          .out_channels = r.kernel[0],
                          .groups = a.groups,
                          .packed_channels = packed_lanes(a.kernel_layout, "OHWI", "o"),
                          .zero_border = a.zero_border,
                          .out_dtype = dtype,
                          .accumulate = relax::accumulation_dtype(dtype)})};
}

}  // namespace

const Operator conv{
    .name = "nn.conv",
    .inputs = {{"x"}, {"kernel"}},
    .attributes = relax::attributes_of<ConvAttributes>(),
    .infer = infer_conv,
    .meaning = relax::TeExpression(lower_conv),
    .fusion = FusionKind::product,
    .reference = "torch.nn.functional.conv2d(x, kernel)",
};

}  // namespace lathe::ops
