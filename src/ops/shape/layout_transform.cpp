// layout_transform: every element stands where an index map puts it, and a value where it puts none.
#include "ir/visit.h"
#include "ops/rule.h"
#include "schedule/index_map.h"

namespace lathe::ops {

namespace {

support::Status check_separators(const Axes& separators, size_t rank) {
  for (const int64_t at : separators)
    if (at <= 0 || at >= static_cast<int64_t>(rank))
      return relax::wrong(codes::wrong_attribute,
                          fmt::format("layout_transform has an axis separator at {} of {} axes", at, rank));
  return support::success();
}

// A dimension without elements tells nothing of the map: its extent is a symbol until the image is known.
Result<schedule::Image> image_in(const schedule::IndexMap& map, Shape shape, const Indices& outputs) {
  ir::VarMap empty;
  for (Expr& extent : shape)
    if (ir::is_int(extent, 0)) {
      const ir::Var symbol = ir::size_var("n");
      empty[symbol] = std::exchange(extent, symbol);
    }
  schedule::Image image = TRY(schedule::image_of(map, shape, outputs));
  for (Expr& extent : image.extents) extent = relax::simplified(ir::substitute(extent, empty));
  return image;
}

Result<StructInfo> infer(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  const auto& attributes = c.attrs<LayoutTransformAttributes>();
  const schedule::IndexMap map = TRY(schedule::parse_index_map(attributes.index_map));
  TRY(check_separators(attributes.axis_separators, map.to.size()));
  TRY(check_separators(attributes.input_axis_separators, map.from.size()));
  if (!x.shape) return relax::tensor_info_of_rank(static_cast<int64_t>(map.to.size()), x.dtype);
  const Indices outputs(map.to.size(), ir::int64(0));
  return relax::tensor_info(TRY(image_in(map, *x.shape, outputs)).extents, x.dtype);
}

std::vector<Tensor> lower(const LowerContext& c) {
  const Tensor& x = c.tensor(0);
  const auto& attributes = c.attrs<LayoutTransformAttributes>();
  const schedule::IndexMap map = schedule::parse_index_map(attributes.index_map).value_or_throw();
  return {te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        const schedule::Image image = image_in(map, x.shape(), i).value_or_throw();
        const Expr element = x(image.preimages);
        if (image.whole) return element;
        // Where the map puts something: its inverse lies inside, and the map leads back.
        Expr met = ir::boolean(true);
        const Indices back = map(image.preimages);
        for (size_t d = 0; d < i.size(); ++d) met = ir::logical_and(met, ir::eq(back[d], i[d]));
        for (size_t d = 0; d < x.ndim(); ++d) {
          const Expr& own = image.preimages[d];
          met = ir::logical_and(met, ir::logical_and(own >= ir::int64(0), own < x.shape()[d]));
        }
        return ir::if_then_else(relax::simplified(met), element, ir::constant(x.dtype(), attributes.pad_value));
      },
      {x}, "layout_transform")};
}

}  // namespace

const Operator layout_transform{
    .name = "layout_transform",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<LayoutTransformAttributes>(),
    .infer = infer,
    .meaning = relax::TeExpression(lower),
    .fusion = FusionKind::injective,
    .reference = "made[index_map(*numpy.ogrid[tuple(map(slice, x.shape))])] = x",
};

}  // namespace lathe::ops
