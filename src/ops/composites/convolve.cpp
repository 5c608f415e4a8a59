// Convolutions of one to three spatial dimensions in any layout, and the ones
// that undo them.
#include "ops/composites/windows.h"

namespace lathe::ops::composites {

namespace {

struct ConvolutionAttributes : AttributesNode {
  std::vector<int64_t> strides{1}, padding{0}, output_padding{0}, dilation{1};
  int64_t groups = 1;
  std::string data_layout, kernel_layout;
  std::optional<std::string> out_layout;  // nothing: data_layout
  std::optional<DType> out_dtype;         // nothing: the operands'
};

template <int spatial>
struct ConvNdAttributes : ConvolutionAttributes {
  static constexpr std::string_view kind_name = spatial == 1   ? "Conv1dAttributes"
                                                : spatial == 2 ? "Conv2dAttributes"
                                                               : "Conv3dAttributes";
  ConvNdAttributes() {
    data_layout = "NC" + spatial_letters(spatial);
    kernel_layout = "OI" + spatial_letters(spatial);
  }
  static constexpr auto fields() {
    return std::tuple{
        field("strides", &ConvNdAttributes::strides),         field("padding", &ConvNdAttributes::padding),
        field("dilation", &ConvNdAttributes::dilation),       field("groups", &ConvNdAttributes::groups),
        field("data_layout", &ConvNdAttributes::data_layout), field("kernel_layout", &ConvNdAttributes::kernel_layout),
        field("out_layout", &ConvNdAttributes::out_layout),   field("out_dtype", &ConvNdAttributes::out_dtype)};
  }
};

template <int spatial>
struct ConvNdTransposeAttributes : ConvolutionAttributes {
  static constexpr std::string_view kind_name = spatial == 1   ? "Conv1dTransposeAttributes"
                                                : spatial == 2 ? "Conv2dTransposeAttributes"
                                                               : "Conv3dTransposeAttributes";
  ConvNdTransposeAttributes() {
    data_layout = "NC" + spatial_letters(spatial);
    kernel_layout = "IO" + spatial_letters(spatial);
  }
  static constexpr auto fields() {
    return std::tuple{field("strides", &ConvNdTransposeAttributes::strides),
                      field("padding", &ConvNdTransposeAttributes::padding),
                      field("output_padding", &ConvNdTransposeAttributes::output_padding),
                      field("dilation", &ConvNdTransposeAttributes::dilation),
                      field("groups", &ConvNdTransposeAttributes::groups),
                      field("data_layout", &ConvNdTransposeAttributes::data_layout),
                      field("kernel_layout", &ConvNdTransposeAttributes::kernel_layout),
                      field("out_layout", &ConvNdTransposeAttributes::out_layout),
                      field("out_dtype", &ConvNdTransposeAttributes::out_dtype)};
  }
};

void check_convolution(const Expansion& e, const ConvolutionAttributes& a, size_t spatial) {
  const Value &x = numeric_tensor(e, 0, "data", spatial + 2), &kernel = numeric_tensor(e, 1, "weight", spatial + 2);
  if (build::dtype_of(x) != build::dtype_of(kernel))
    e.refuse(codes::dtype_mismatch, "data is " + build::dtype_of(x).str() + ", but weight is " +
                                        build::dtype_of(kernel).str() + "; both need one dtype");
  const std::string letters = "NC" + spatial_letters(spatial);
  check_layout(e, "data_layout", a.data_layout, letters);
  check_layout(e, "kernel_layout", a.kernel_layout, "OI" + spatial_letters(spatial));
  if (a.out_layout && !a.out_layout->empty()) check_layout(e, "out_layout", *a.out_layout, letters);
  if (a.groups < 1 || a.groups > std::numeric_limits<int32_t>::max())
    e.refuse(codes::wrong_attribute, "groups is " + std::to_string(a.groups) + ", but takes 1 or more");
  if (a.out_dtype && !relax::contains(DTypeSet::numeric, *a.out_dtype))
    e.refuse(codes::wrong_attribute, "out_dtype is a numeric dtype, not " + a.out_dtype->str());
}

// The name nn.conv has for a layout, or nothing.
std::string plain_layout(const std::string& layout, size_t spatial) {
  const std::string space = spatial_letters(spatial);
  return layout == "NC" + space ? "NCHW" : layout == "N" + space + "C" ? "NHWC" : "";
}

Value convolved(const Expansion& e, const ConvolutionAttributes& a, size_t spatial) {
  check_convolution(e, a, spatial);
  const std::string space = spatial_letters(spatial), usual = "NC" + space;
  std::string from = plain_layout(a.data_layout, spatial);
  Value x = e.tensor(0);
  if (from.empty()) {
    x = e.permute(x, axes_between(a.data_layout, usual));
    from = "NCHW";
  }
  const Value kernel = e.permute(e.tensor(1), axes_between(a.kernel_layout, "OI" + space));
  const std::string wanted = a.out_layout && !a.out_layout->empty() ? *a.out_layout : a.data_layout;
  const std::string to = plain_layout(wanted, spatial);
  const Value y = e.call(
      ops::conv, {x, kernel},
      ir::make<ConvAttributes>(one_each(e, "strides", a.strides, spatial, 1), begins_and_ends(e, a.padding, spatial),
                               one_each(e, "dilation", a.dilation, spatial, 1), a.groups, std::string("NOTSET"), from,
                               std::string("OIHW"), int64_t{0}, a.out_dtype.value_or(DType()),
                               to.empty() ? std::string("NCHW") : to));
  return to.empty() ? e.permute(y, axes_between(usual, wanted)) : y;
}

// The dtype that sums are made in before they become `out`.
DType product_dtype(DType own, DType out) {
  if (own.is_integer() && out.is_floating()) return out.bits < 32 ? DType::float32() : out;
  if (own.is_integer()) return out;
  return out.is_floating() && out.bits > own.bits ? out : own;
}

Value transposed_convolution(const Expansion& e, const ConvolutionAttributes& a, size_t spatial) {
  check_convolution(e, a, spatial);
  const std::string space = spatial_letters(spatial), usual = "NC" + space;
  const DType own_dtype = build::dtype_of(e.tensor(0)), dtype = a.out_dtype.value_or(own_dtype);
  const DType exact = product_dtype(own_dtype, dtype);
  const Value x = e.cast(e.permute(e.tensor(0), axes_between(a.data_layout, usual)), exact);
  const Value kernel = e.cast(e.permute(e.tensor(1), axes_between(a.kernel_layout, "IO" + space)), exact);
  const Shape own = build::shape_of(x), weights = build::shape_of(kernel);
  if (relax::different_extents(own[1], weights[0]))
    e.refuse(codes::shape_mismatch,
             "data has " + relax::text_of(own[1]) + " channels, but the kernel takes " + relax::text_of(weights[0]));
  const Expr rest = relax::simplified(ir::floormod(own[1], ir::int64(a.groups)));
  if (relax::different_extents(rest, ir::int64(0)))
    e.refuse(codes::shape_mismatch,
             relax::text_of(own[1]) + " channels cannot be divided into " + std::to_string(a.groups) + " groups");
  build::expect_equal(e.b, rest, ir::int64(0));

  build::TransposedConvolution how;
  how.groups = a.groups;
  how.strides = one_each(e, "strides", a.strides, spatial, 1);
  how.dilations = one_each(e, "dilation", a.dilation, spatial, 1);
  const auto pads = begins_and_ends(e, a.padding, spatial);
  const auto more = one_each(e, "output_padding", a.output_padding, spatial, 0);
  for (size_t d = 0; d < spatial; ++d) {
    if (more[d] > 0 && more[d] >= std::max(how.strides[d], how.dilations[d]))
      e.refuse(codes::wrong_attribute, "output_padding is " + std::to_string(more[d]) +
                                           ", but is less than the stride " + std::to_string(how.strides[d]) +
                                           " or the dilation " + std::to_string(how.dilations[d]));
    if (ir::is_int(weights[d + 2], 0)) e.refuse(codes::shape_mismatch, "the kernel is empty: " + shape_text(kernel));
    const Expr reach = (weights[d + 2] - 1) * how.dilations[d] + 1;
    const Expr full = (own[d + 2] - 1) * how.strides[d] + reach + (more[d] - pads[d] - pads[d + spatial]);
    how.pad_begin.push_back(ir::int64(pads[d]));
    // Of no elements there are none.
    how.out.push_back(relax::simplified(ir::select(own[d + 2] > 0, ir::max(full, ir::int64(0)), ir::int64(0))));
  }
  const Value y = e.cast(build::conv_transpose(e.b, x, kernel, how), dtype);
  return laid_out(e, y, usual, a.out_layout, a.data_layout);
}

template <int spatial>
Value expand_conv(const Expansion& e) {
  return convolved(e, e.attrs<ConvNdAttributes<spatial>>(), spatial);
}
template <int spatial>
Value expand_conv_transpose(const Expansion& e) {
  return transposed_convolution(e, e.attrs<ConvNdTransposeAttributes<spatial>>(), spatial);
}

template <int spatial>
Operator conv_row(std::string_view name, std::string_view reference) {
  return composite(name, {{"data"}, {"weight"}}, relax::attributes_of<ConvNdAttributes<spatial>>(),
                   expand_conv<spatial>, reference);
}
template <int spatial>
Operator conv_transpose_row(std::string_view name, std::string_view reference) {
  return composite(name, {{"data"}, {"weight"}}, relax::attributes_of<ConvNdTransposeAttributes<spatial>>(),
                   expand_conv_transpose<spatial>, reference);
}

}  // namespace

const Operator conv1d = conv_row<1>("nn.conv1d",
                                    "numpy.einsum('ncpk,ock->nop', "
                                    "numpy.lib.stride_tricks.sliding_window_view(data,"
                                    " weight.shape[2:], (2,)), weight)");
const Operator conv2d = conv_row<2>("nn.conv2d",
                                    "numpy.einsum('nchwkl,ockl->nohw', "
                                    "numpy.lib.stride_tricks.sliding_window_view("
                                    "data, weight.shape[2:], (2, 3)), weight)");
const Operator conv3d = conv_row<3>("nn.conv3d",
                                    "numpy.einsum('ncdhwklm,ocklm->nodhw', "
                                    "numpy.lib.stride_tricks.sliding_window_view("
                                    "data, weight.shape[2:], (2, 3, 4)), weight)");
const Operator conv1d_transpose =
    conv_transpose_row<1>("nn.conv1d_transpose",
                          "numpy.stack([sum(scipy.signal.convolve(d, w) for d, w in zip(x, k)) "
                          "for x in data for k in weight.swapaxes(0, 1)])");
const Operator conv2d_transpose =
    conv_transpose_row<2>("nn.conv2d_transpose",
                          "numpy.stack([sum(scipy.signal.convolve2d(d, w) for d, w in zip(x, k)) "
                          "for x in data for k in weight.swapaxes(0, 1)])");
const Operator conv3d_transpose =
    conv_transpose_row<3>("nn.conv3d_transpose",
                          "numpy.stack([sum(scipy.signal.convolve(d, w) for d, w in zip(x, k)) "
                          "for x in data for k in weight.swapaxes(0, 1)])");

}  // namespace lathe::ops::composites
