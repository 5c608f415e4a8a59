#include "graph/layout/conversion.h"
#include "ops/attributes.h"

namespace lathe::graph {

namespace {

// An image with zeros around it: begins of the spatial dimensions, and then their ends.
Result<Expr> with_zeros_around(Emitter& emitter, const Expr& image, const std::vector<int64_t>& padding) {
  const auto side = [&](auto first, auto last) {
    Shape shape{ir::int64(0)};
    for (auto it = first; it != last; ++it) shape.push_back(ir::int64(*it));
    shape.push_back(ir::int64(0));
    return make<ShapeExpr>(std::move(shape));
  };
  const auto middle = padding.begin() + static_cast<ptrdiff_t>(padding.size() / 2);
  return emitter.call(ops::pad, {image, side(padding.begin(), middle), side(middle, padding.end())},
                      make<ops::PadAttributes>("constant"), "padded");
}

// A convolution that reads its image with the channels last, and gives it as `out_layout` says; empty: so too.
Result<Expr> of_image_last(const Conversion& c, const std::string& out_layout) {
  const auto& attrs = c.attributes<ops::ConvAttributes>();
  const WantedLayouts& wanted = c.layouts.wanted;
  const Expr& given = c.call.args[0];
  const bool is_turned = !c.has_twin() && wanted.is_turned_into_padding(given) && attrs.groups == 1;
  const bool is_padded = is_turned || wanted.is_computed_into_padding(given);
  Expr image = TRY(c.image(given));
  if (is_padded) image = TRY(with_zeros_around(c.emitter, image, attrs.padding));
  return make_call(ops::conv, {image, c.call.args[1]}, ir::with(attrs, [&](ops::ConvAttributes& copy) {
                     copy.data_layout = "NHWC";
                     copy.out_layout = out_layout;
                     if (is_padded) copy.padding.assign(copy.padding.size(), 0);
                   }));
}

// Of windows of one pixel that touch every pixel once: the image's rows times the weights.
Result<Expr> product_of_rows(const Conversion& c) {
  const Shape& kernel = *shape_of(c.call.args[1]);
  const Expr matrix = TRY(reshaped(c.emitter, c.call.args[1], {kernel[0], kernel[1]}));
  const Expr turned = TRY(c.emitter.call(ops::permute_dims, {matrix}));
  return make_call(ops::matmul, {TRY(c.rows(c.call.args[0])), turned});
}

}  // namespace

Result<Expr> convert_convolution(const Conversion& c) {
  const WantedLayouts& wanted = c.layouts.wanted;
  const Expr &image = c.call.args[0], &weights = c.call.args[1];
  if (c.has_twin() && wanted.reads_last(c.call)) return of_image_last(c, "NCHW");
  if (!wanted.turns(c.call) || !shape_of(c.var) || as_tensor(c.var)->dtype != as_tensor(image)->dtype) return Expr();
  // Nothing around it has the channels last: it turns only where it gains by that itself.
  const bool is_alone = !c.has_twin() && !wanted.wants_last(c.var);
  if (is_alone && wanted.fills_rows(c.call, c.var)) return Expr();

  const auto& attrs = c.attributes<ops::ConvAttributes>();
  const Shape& kernel = *shape_of(weights);
  const auto all_are = [](const std::vector<int64_t>& list, int64_t value) {
    return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == value; });
  };
  const bool is_of_pixels = attrs.groups == 1 && is_pixel(kernel) && all_are(attrs.padding, 0);
  const bool meets_all = all_are(attrs.strides, 1), has_strides = attrs.strides.size() + 2 == kernel.size();
  if (is_alone && is_of_pixels && (meets_all || has_strides) && fills_planes(*shape_of(c.var), kernel)) {
    const Expr pixels = meets_all ? image : TRY(met_pixels(c.emitter, c.var, c.call));
    return c.layouts.planes.product(c.emitter, c.var, weights, pixels);
  }
  if (is_of_pixels && meets_all && !wanted.fills_padding(c.var))
    return c.converted(TRY(product_of_rows(c)), Form::rows);
  if (!c.has_twin() && wanted.reads_as_it_lies(c.call)) {
    const auto turning = ir::with(attrs, [](ops::ConvAttributes& copy) { copy.out_layout = "NHWC"; });
    return c.converted(TRY(make_call(ops::conv, c.call.args, turning)), Form::image);
  }
  return c.converted(TRY(of_image_last(c, "")), Form::image);
}

}  // namespace lathe::graph
