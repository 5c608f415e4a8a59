// Reading between elements and putting back what windows took: grids, regions of interest, deformed windows, blocks.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/operators/windows.h"
#include "ops/build.h"
#include "relax/strings.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

void expect_rank(NodeImport& c, size_t i, int64_t rank, std::string_view what) {
  if (c.rank(i) != rank)
    c.fail(codes::wrong_node, "the " + std::string(what) + " have " + std::to_string(c.rank(i)) + " dimensions, not " +
                                  std::to_string(rank));
}

void grid_sample(NodeImport& c) {
  build::GridSampling how;
  how.align_corners = c.attributes.flag("align_corners", false);
  const std::string outside = c.attributes.word("padding_mode", {"zeros", "border", "reflection"});
  if (outside == "border") how.outside = build::Outside::border;
  if (outside == "reflection") how.outside = build::Outside::reflection;
  // Since opset 20 the modes are named for any number of dimensions.
  const std::string mode = c.version >= 20 ? c.attributes.word("mode", {"linear", "nearest", "cubic"})
                                           : c.attributes.word("mode", {"bilinear", "nearest", "bicubic"});
  if (mode != "nearest" && c.dtype(0) == relax::string_dtype)
    c.fail(codes::wrong_attribute, "there is nothing between strings, so the mode is 'nearest', not '" + mode + "'");
  if (mode == "nearest") how.interpolation = build::Interpolation::nearest;
  if (mode.ends_with("cubic")) how.interpolation = build::Interpolation::cubic;
  spatial_rank(c);
  expect_rank(c, 1, c.rank(0), "places of the grid");
  c.set(build::grid_sample(c.builder(), c.input(0), c.input(1), how));
}

void affine_grid(NodeImport& c) {
  const bool align_corners = c.attributes.flag("align_corners", false);
  expect_rank(c, 0, 3, "matrices");
  const Integers size = c.integers_or(1, c.declared_rank(0));
  if (size.size() < 3 || size.size() > 5)
    c.fail(codes::wrong_shape, "the size has " + std::to_string(size.size()) +
                                   " extents; batch, channels and one to three more make a grid");
  c.expect_at_least(1, size, 0, "an extent is 0 or more");
  const size_t spatial = size.size() - 2;
  const auto rows = static_cast<int64_t>(spatial);
  build::expect_equal(c.builder(), c.shape(0)[1], ir::int64(rows));
  build::expect_equal(c.builder(), c.shape(0)[2], ir::int64(rows + 1));
  build::expect_equal(c.builder(), c.shape(0)[0], size[0]);
  Shape extents;
  for (size_t d = 0; d < spatial; ++d) extents.push_back(relax::non_negative(size[d + 2]));
  c.set(build::affine_grid(c.builder(), c.input(0), extents, align_corners));
}

void roi_align(NodeImport& c) {
  build::RegionPooling how;
  how.takes_largest = c.attributes.word("mode", {"avg", "max"}) == "max";
  how.height = c.attributes.integer("output_height", 1);
  how.width = c.attributes.integer("output_width", 1);
  how.samples = c.attributes.integer("sampling_ratio", 0);
  how.scale = c.attributes.number("spatial_scale", 1);
  how.half_pixel = c.version >= 16 && c.attributes.word("coordinate_transformation_mode",
                                                        {"half_pixel", "output_half_pixel"}) == "half_pixel";
  for (const int64_t each : {how.height, how.width})
    if (each < 1 || each > std::numeric_limits<int32_t>::max())
      c.fail(codes::wrong_attribute, "the result would have an extent of " + std::to_string(each));
  if (how.samples < 0 || how.samples > std::numeric_limits<int16_t>::max())
    c.fail(codes::wrong_attribute, "the attribute 'sampling_ratio' is " + std::to_string(how.samples));
  expect_rank(c, 0, 4, "images");
  expect_rank(c, 1, 2, "regions");
  expect_rank(c, 2, 1, "indices of images");
  c.expect_elements(2, {ir::int64(0)}, {c.shape(0)[0]}, relax::Message() << c.name_of(0) << " has images with indices");
  c.set(build::region_align(c.builder(), c.input(0), c.input(1), c.input(2), how));
}

std::vector<int64_t> ones_unless(const std::vector<int64_t>& given, int64_t count) {
  return given.empty() ? std::vector<int64_t>(static_cast<size_t>(count), 1) : given;
}

void deform_conv(NodeImport& c) {
  build::DeformedConvolution how;
  how.groups = c.attributes.integer("group", 1);
  how.offset_groups = c.attributes.integer("offset_group", 1);
  for (const int64_t each : {how.groups, how.offset_groups})
    if (each < 1 || each > std::numeric_limits<int32_t>::max())
      c.fail(codes::wrong_attribute, "the input cannot have " + std::to_string(each) + " groups");
  const WindowAttributes w = read_windows(c, true, true);
  const int64_t spatial = spatial_rank(c), rank = c.rank(0);
  how.strides = ones_unless(w.strides, spatial);
  how.dilations = ones_unless(w.dilations, spatial);
  how.pad_begin.assign(static_cast<size_t>(spatial), 0);
  if (!w.pads.empty()) how.pad_begin.assign(w.pads.begin(), w.pads.begin() + spatial);
  expect_rank(c, 1, rank, "weights");
  expect_rank(c, 2, rank, "offsets");
  if (c.has(4)) expect_rank(c, 4, rank, "values of the mask");
  for (int64_t d = 0; d < spatial; ++d) {
    const auto at = static_cast<size_t>(d);
    const ir::Expr reach = (c.shape(1)[at + 2] - 1) * how.dilations[at] + 1;
    const int64_t pads = w.pads.empty() ? 0 : w.pads[at] + w.pads[at + static_cast<size_t>(spatial)];
    const ir::Expr span = c.shape(0)[at + 2] + pads - reach;
    build::expect_equal(c.builder(), c.shape(2)[at + 2],
                        relax::non_negative(ir::floordiv(span, ir::int64(how.strides[at])) + 1));
    if (!w.kernel.empty()) build::expect_equal(c.builder(), c.shape(1)[at + 2], ir::int64(w.kernel[at]));
  }
  Expr y =
      build::deformed_convolution(c.builder(), c.input(0), c.input(1), c.input(2), c.has(4) ? c.input(4) : Expr(), how);
  if (c.has(3)) {
    expect_rank(c, 3, 1, "biases");
    build::expect_equal(c.builder(), c.shape(3)[0], c.shape(1)[0]);
    Shape column(static_cast<size_t>(rank - 1), ir::int64(1));
    column[0] = c.shape(3)[0];
    y = c.call(ops::add, {y, c.reshape(c.input(3), std::move(column))});
  }
  c.set(y);
}

void col2im(NodeImport& c) {
  build::Folding how;
  expect_rank(c, 0, 3, "blocks");
  if (c.dtype(0) == relax::string_dtype) c.fail(codes::wrong_node, "blocks are added up, which strings are not");
  const auto declared = c.declared_rank(0);
  const Integers image = c.integers_or(1, declared ? std::optional(*declared - 2) : std::nullopt);
  const Integers block = c.integers(2, static_cast<int64_t>(image.size()));
  c.expect_at_least(1, image, 0, "an extent is 0 or more");
  c.expect_at_least(2, block, 0, "an extent is 0 or more");
  for (const ir::Expr& each : image) how.image.push_back(relax::non_negative(each));
  for (const ir::Expr& each : block) how.block.push_back(relax::non_negative(each));
  const auto spatial = static_cast<int64_t>(how.image.size());
  if (how.block.size() != how.image.size() || how.image.empty())
    c.fail(codes::wrong_node, "the image has " + std::to_string(how.image.size()) + " extents, a block " +
                                  std::to_string(how.block.size()));
  const auto read = [&](std::string_view name, int64_t count, int64_t least, int64_t otherwise) {
    const auto given =
        c.attributes.integers(name).value_or(std::vector<int64_t>(static_cast<size_t>(count), otherwise));
    if (static_cast<int64_t>(given.size()) != count)
      c.fail(codes::wrong_attribute, "the attribute '" + std::string(name) + "' has " + std::to_string(given.size()) +
                                         " values, not " + std::to_string(count));
    for (const int64_t each : given)
      if (each < least || each > std::numeric_limits<int32_t>::max())
        c.fail(codes::wrong_attribute, "the attribute '" + std::string(name) + "' has the value " +
                                           std::to_string(each) + ", which is out of range");
    return given;
  };
  how.strides = read("strides", spatial, 1, 1);
  how.dilations = read("dilations", spatial, 1, 1);
  const auto pads = read("pads", 2 * spatial, 0, 0);
  how.pad_begin.assign(pads.begin(), pads.begin() + spatial);
  how.pad_end.assign(pads.begin() + spatial, pads.end());
  c.set(build::fold_blocks(c.builder(), c.input(0), how));
}

// The indices are those of a tensor as large as windows, strides and pads say; one of a larger output_shape holds it at
// its beginning.
void max_unpool(NodeImport& c) {
  const WindowAttributes w = read_windows(c, false, false);
  const int64_t spatial = spatial_rank(c), rank = c.rank(0);
  const auto strides = ones_unless(w.strides, spatial);
  expect_rank(c, 1, rank, "indices");
  const Shape own = c.shape(0);
  for (size_t d = 0; d < own.size(); ++d) build::expect_equal(c.builder(), c.shape(1)[d], own[d]);
  Shape whole{own[0], own[1]};
  for (size_t d = 0; d < static_cast<size_t>(spatial); ++d) {
    const int64_t pads = w.pads.empty() ? 0 : w.pads[d] + w.pads[d + static_cast<size_t>(spatial)];
    whole.push_back(relax::non_negative((own[d + 2] - 1) * strides[d] + (w.kernel[d] - pads)));
  }
  const ir::Expr count = relax::simplified(ir::product(own));
  c.expect_elements(1, {ir::int64(0)}, {relax::simplified(ir::product(whole))},
                    relax::Message() << "the pooled tensor " << whole << " has places");
  const Expr zeros = c.call(
      ops::full, {ir::make<relax::ShapeExpr>(Shape{relax::simplified(ir::product(whole))}), c.scalar(c.dtype(0), 0)});
  const Expr updates = c.reshape(c.input(0), {count}), indices = c.reshape(c.input(1), {count, ir::int64(1)});
  Expr y = c.reshape(build::scatter_nd(c.builder(), zeros, indices, updates, build::Combine::replace), whole);
  if (c.has(2)) {
    Shape shape;
    const Integers wanted = c.integers(2, rank);
    c.expect_at_least(2, wanted, 0, "an extent is 0 or more");
    for (const ir::Expr& each : wanted) shape.push_back(relax::non_negative(each));
    if (static_cast<int64_t>(shape.size()) != rank)
      c.fail(codes::wrong_shape,
             "the output shape has " + std::to_string(shape.size()) + " extents, not " + std::to_string(rank));
    const DType dtype = c.dtype(0);
    const auto make = [&](const std::vector<te::Tensor>& in) {
      return std::vector{te::compute(
          shape,
          [&](const std::vector<ir::Expr>& i) {
            ir::Expr inside = ir::boolean(true);
            for (size_t d = 0; d < i.size(); ++d) inside = ir::logical_and(inside, i[d] < whole[d]);
            return ir::if_then_else(inside, in[0](i), ir::constant(dtype, 0));
          },
          in, "max_unpool")};
    };
    y = c.builder().call_te("max_unpool", {y}, make).value_or_throw();
  }
  c.set(y);
}

const OperatorRow sampling_rows[] = {
    {"GridSample", {16, 20, 22}, 2, 2, 1, grid_sample},
    {"AffineGrid", {20}, 2, 2, 1, affine_grid},
    {"RoiAlign", {10, 16, 22}, 3, 3, 1, roi_align},
    {"DeformConv", {19, 22}, 3, 5, 1, deform_conv},
    {"Col2Im", {18}, 3, 3, 1, col2im},
    {"MaxUnpool", {9, 11, 22}, 2, 3, 1, max_unpool},
};

}  // namespace

Table sampling() { return sampling_rows; }

}  // namespace lathe::onnx::operators
