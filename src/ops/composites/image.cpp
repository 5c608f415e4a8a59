// Images: resizing, reading at places of a grid, and pixels out of channels.
#include "ops/build/sample.h"
#include "ops/composites/windows.h"

namespace lathe::ops::composites {

namespace {

struct PixelShuffleAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "PixelShuffleAttributes";
  int64_t upscale_factor = 0;
  static constexpr auto fields() {
    return std::tuple{field("upscale_factor", &PixelShuffleAttributes::upscale_factor)};
  }
};

struct Resize2dAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "Resize2dAttributes";
  std::optional<std::vector<double>> roi;  // of tf_crop_and_resize: begins, then
                                           // ends, as parts of height and width
  std::string layout = "NCHW", method = "linear", coordinate_transformation_mode = "half_pixel";
  std::string rounding_method = "round";
  double cubic_alpha = -0.75;
  int64_t cubic_exclude = 0;
  double extrapolation_value = 0;
  std::optional<DType> out_dtype;  // nothing: that of data
  static constexpr auto fields() {
    return std::tuple{field("roi", &Resize2dAttributes::roi),
                      field("layout", &Resize2dAttributes::layout),
                      field("method", &Resize2dAttributes::method),
                      field("coordinate_transformation_mode", &Resize2dAttributes::coordinate_transformation_mode),
                      field("rounding_method", &Resize2dAttributes::rounding_method),
                      field("cubic_alpha", &Resize2dAttributes::cubic_alpha),
                      field("cubic_exclude", &Resize2dAttributes::cubic_exclude),
                      field("extrapolation_value", &Resize2dAttributes::extrapolation_value),
                      field("out_dtype", &Resize2dAttributes::out_dtype)};
  }
};

struct ImageGridSampleAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "ImageGridSampleAttributes";
  std::string method = "bilinear", layout = "NCHW", padding_mode = "zeros";
  bool align_corners = true;
  static constexpr auto fields() {
    return std::tuple{field("method", &ImageGridSampleAttributes::method),
                      field("layout", &ImageGridSampleAttributes::layout),
                      field("padding_mode", &ImageGridSampleAttributes::padding_mode),
                      field("align_corners", &ImageGridSampleAttributes::align_corners)};
  }
};

template <class T>
using Words = std::initializer_list<std::pair<std::string_view, T>>;

// What the word stands for.
template <class T>
T meant_by(const Expansion& e, std::string_view name, const std::string& word, Words<T> words) {
  std::string all;
  for (const auto& [each, value] : words) {
    if (each == word) return value;
    all += (all.empty() ? "'" : ", '") + std::string(each) + "'";
  }
  e.refuse(codes::wrong_attribute, std::string(name) + " is one of " + all + ", not '" + word.substr(0, 40) + "'");
}

// Height and width: a shape of two, or one number for both.
Shape height_and_width(const Expansion& e, size_t i) {
  Shape size;
  if (const auto* one = e.any(i).as<relax::PrimValue>()) {
    size = {ir::cast(DType::int64(), one->value), ir::cast(DType::int64(), one->value)};
  } else {
    size = e.shape(i);
  }
  if (size.size() == 1) size.push_back(size[0]);
  if (size.size() != 2) e.refuse(codes::wrong_arguments, "size is a height and a width, not " + relax::text_of(size));
  for (Expr& extent : size) {
    if (const auto known = ir::as_int(extent); known && (*known < 0 || *known > std::numeric_limits<int32_t>::max()))
      e.refuse(codes::wrong_arguments,
               "size is " + relax::text_of(size) + ", but an extent is 0 or more, at most 2147483647");
    extent = relax::non_negative(extent);
  }
  return size;
}

// [… C * r * r, H, W] as [… C, H * r, W * r].
Value expand_pixel_shuffle(const Expansion& e) {
  const int64_t factor = e.attrs<PixelShuffleAttributes>().upscale_factor;
  const Value& x = e.tensor(0);
  const Shape own = build::shape_of(x);
  const size_t rank = own.size();
  if (rank < 3) e.refuse(codes::wrong_rank, "data is [… channels, height, width], not " + shape_text(x));
  if (factor < 1 || factor > 1 << 15)
    e.refuse(codes::wrong_attribute,
             "upscale_factor is " + std::to_string(factor) + ", but takes numbers from 1 to 32768");
  const Expr parts = ir::int64(factor * factor), &channels = own[rank - 3], &height = own[rank - 2],
             &width = own[rank - 1];
  const Expr rest = relax::simplified(ir::floormod(channels, parts));
  if (relax::different_extents(rest, ir::int64(0)))
    e.refuse(codes::shape_mismatch, relax::text_of(channels) + " channels are no multiple of " +
                                        std::to_string(factor * factor) + ", the pixels each gives");
  build::expect_equal(e.b, rest, ir::int64(0));
  const Expr left = relax::simplified(ir::floordiv(channels, parts)), side = ir::int64(factor);
  Shape parted(own.begin(), own.end() - 3), whole = parted;
  for (const Expr& extent : {left, side, side, height, width}) parted.push_back(extent);
  for (const Expr& extent : {left, relax::simplified(height * factor), relax::simplified(width * factor)})
    whole.push_back(extent);
  Axes axes;
  const auto first = static_cast<int64_t>(rank) - 3;
  for (int64_t d = 0; d <= first; ++d) axes.push_back(d);
  for (const int64_t d : {3, 1, 4, 2}) axes.push_back(first + d);
  return e.reshape(e.permute(e.reshape(x, parted), axes), whole);
}

build::Resampling read_resampling(const Expansion& e, const Resize2dAttributes& a) {
  using build::Coordinates, build::Interpolation, build::Nearest;
  build::Resampling how;
  how.interpolation = meant_by<Interpolation>(e, "method", a.method,
                                              {{"nearest_neighbor", Interpolation::nearest},
                                               {"linear", Interpolation::linear},
                                               {"cubic", Interpolation::cubic}});
  how.coordinates = meant_by<Coordinates>(e, "coordinate_transformation_mode", a.coordinate_transformation_mode,
                                          {{"half_pixel", Coordinates::half_pixel},
                                           {"align_corners", Coordinates::align_corners},
                                           {"asymmetric", Coordinates::asymmetric},
                                           {"pytorch_half_pixel", Coordinates::pytorch_half_pixel},
                                           {"tf_half_pixel_for_nn", Coordinates::half_pixel_begin},
                                           {"tf_crop_and_resize", Coordinates::crop_and_resize}});
  // "round" takes the farther of two that are as near.
  how.nearest = meant_by<Nearest>(e, "rounding_method", a.rounding_method,
                                  {{"round", Nearest::round_prefer_ceil},
                                   {"", Nearest::round_prefer_ceil},
                                   {"round_prefer_floor", Nearest::round_prefer_floor},
                                   {"round_prefer_ceil", Nearest::round_prefer_ceil},
                                   {"floor", Nearest::floor},
                                   {"ceil", Nearest::ceil}});
  how.cubic_a = a.cubic_alpha;
  how.exclude_outside = a.cubic_exclude != 0 && how.interpolation == Interpolation::cubic;
  how.extrapolation = a.extrapolation_value;
  return how;
}

Value expand_resize2d(const Expansion& e) {
  const auto& a = e.attrs<Resize2dAttributes>();
  const Value& given = numeric_tensor(e, 0, "data", 4);
  check_layout(e, "layout", a.layout, "NCHW");
  const build::Resampling how = read_resampling(e, a);
  const Shape size = height_and_width(e, 1);
  const bool crops = how.coordinates == build::Coordinates::crop_and_resize;
  if (crops && !a.roi)
    e.refuse(codes::wrong_attribute,
             "tf_crop_and_resize takes a roi: begins "
             "of height and width, then ends");
  if (a.roi && a.roi->size() != 4)
    e.refuse(codes::wrong_attribute,
             "roi is begins of height and width, then ends: 4 numbers, not " + std::to_string(a.roi->size()));
  const DType own = build::dtype_of(given), out = a.out_dtype.value_or(own), exact = DType::float_(64);
  if (!relax::contains(DTypeSet::numeric, out))
    e.refuse(codes::wrong_attribute, "out_dtype is a numeric dtype, not " + out.str());
  // What is computed between elements is rounded once, at the end: toward zero where it becomes an integer.
  Value x = given;
  if (how.interpolation != build::Interpolation::nearest || crops) {
    const DType wide = own.is_integer() ? exact : relax::accumulation_dtype(own);
    x = e.cast(x, out.is_floating() && out.bits > wide.bits ? out : wide);
  }
  const char letters[] = {'H', 'W'};
  std::vector<build::ResampledAxis> axes;
  for (size_t k = 0; k < 2; ++k) {
    const auto axis = static_cast<int64_t>(a.layout.find(letters[k]));
    const Expr extent = build::shape_of(x)[static_cast<size_t>(axis)];
    const bool keeps = !crops && how.coordinates != build::Coordinates::half_pixel_begin;
    if (keeps && relax::same_extent(extent, size[k])) continue;
    if (ir::is_int(extent, 0) && !ir::is_int(size[k], 0))
      e.refuse(codes::shape_mismatch, "there is nothing to resize in data of shape " + shape_text(given));
    build::ResampledAxis resampled{axis, size[k], {}, {}, {}, {}};
    const auto from = ir::as_int(extent), to = ir::as_int(size[k]);
    if (from && to && *from > 0) resampled.known_scale = static_cast<double>(*to) / static_cast<double>(*from);
    resampled.scale = e.call(
        ops::divide, {scalar_tensor(e, DType::float_(64), size[k]), scalar_tensor(e, DType::float_(64), extent)});
    if (crops) {
      resampled.known_range = std::pair((*a.roi)[k], (*a.roi)[k + 2]);
      resampled.range = relax::constant(ir::tensor_of<double>(exact, {2}, {(*a.roi)[k], (*a.roi)[k + 2]}));
    }
    axes.push_back(std::move(resampled));
  }
  return e.cast(build::resample(e.b, x, axes, how), out);
}

Value expand_grid_sample(const Expansion& e) {
  using build::Interpolation, build::Outside;
  const auto& a = e.attrs<ImageGridSampleAttributes>();
  const size_t rank = build::shape_of(e.tensor(0)).size();
  if (rank != 4 && rank != 5)
    e.refuse(codes::wrong_rank, "data has 4 or 5 dimensions, not those of " + shape_text(e.tensor(0)));
  const Value &given = numeric_tensor(e, 0, "data", rank), &grid = numeric_tensor(e, 1, "grid", rank);
  const std::string usual = "NC" + spatial_letters(rank - 2);
  std::string layout = a.layout;
  if (rank == 5 && layout == "NCHW") layout = usual;  // the default of both
  check_layout(e, "layout", layout, usual);
  if (!build::dtype_of(grid).is_floating())
    e.refuse(codes::dtype_not_supported, "grid is of a floating dtype, not " + build::dtype_of(grid).str());
  const auto dimensions = static_cast<int64_t>(rank) - 2;
  const Shape &places = build::shape_of(grid), &own = build::shape_of(given);
  if (relax::different_extents(places[1], ir::int64(dimensions)))
    e.refuse(codes::shape_mismatch, "grid is [batch, " + std::to_string(dimensions) +
                                        ", …], one coordinate a spatial dimension, not " + shape_text(grid));
  if (relax::different_extents(places[0], own[layout.find('N')]))
    e.refuse(codes::shape_mismatch, "data of shape " + shape_text(given) + " and a grid of shape " + shape_text(grid) +
                                        " differ in the batch");
  build::GridSampling how;
  how.align_corners = a.align_corners;
  how.interpolation = meant_by<Interpolation>(
      e, "method", a.method,
      {{"bilinear", Interpolation::linear}, {"nearest", Interpolation::nearest}, {"bicubic", Interpolation::cubic}});
  how.outside =
      meant_by<Outside>(e, "padding_mode", a.padding_mode,
                        {{"zeros", Outside::zeros}, {"border", Outside::border}, {"reflection", Outside::reflection}});
  Axes last{0};  // coordinates behind places
  for (int64_t d = 2; d < static_cast<int64_t>(rank); ++d) last.push_back(d);
  last.push_back(1);
  const Value y =
      build::grid_sample_by_elements(e.b, e.permute(given, axes_between(layout, usual)), e.permute(grid, last), how);
  return e.permute(y, axes_between(usual, layout));
}

// The places [N, (x, y), H, W] of an image of the given size, moved by matrices
// [N, 2, 3].
Value expand_affine_grid(const Expansion& e) {
  const Value& x = numeric_tensor(e, 0, "data", 3);
  if (!build::dtype_of(x).is_floating())
    e.refuse(codes::dtype_not_supported, "data is of a floating dtype, not " + build::dtype_of(x).str());
  const Shape& own = build::shape_of(x);
  for (const size_t d : {1, 2}) {
    const Expr wanted = ir::int64(static_cast<int64_t>(d) + 1);
    if (relax::different_extents(own[d], wanted))
      e.refuse(codes::shape_mismatch, "data is [batch, 2, 3], a matrix a batch element, not " + shape_text(x));
    build::expect_equal(e.b, own[d], wanted);
  }
  return e.permute(build::affine_grid(e.b, x, height_and_width(e, 1), true), {0, 3, 1, 2});
}

}  // namespace

const Operator pixel_shuffle =
    composite("nn.pixel_shuffle", {{"data"}}, relax::attributes_of<PixelShuffleAttributes>(), expand_pixel_shuffle,
              "data.reshape(n, c, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c, "
              "h * r, w * r)");
const Operator resize2d = composite("image.resize2d", {{"data"}, {"size", Input::required, Input::shape}},
                                    relax::attributes_of<Resize2dAttributes>(), expand_resize2d,
                                    "scipy.ndimage.map_coordinates(data[n, c], [ys, xs], order=1, "
                                    "mode='nearest')");
const Operator grid_sample = composite("image.grid_sample", {{"data"}, {"grid"}},
                                       relax::attributes_of<ImageGridSampleAttributes>(), expand_grid_sample,
                                       "scipy.ndimage.map_coordinates(data[n, c], [(grid[n, 1] + 1) / 2 * (h - "
                                       "1), (grid[n, 0] + 1) / 2 * "
                                       "(w - 1)], order=1, mode='constant')");
const Operator affine_grid =
    composite("image.affine_grid", {{"data"}, {"size", Input::required, Input::shape}}, nullptr, expand_affine_grid,
              "numpy.einsum('nij,jhw->nihw', data, "
              "numpy.stack([*numpy.meshgrid(numpy.linspace(-1, 1, w), numpy.linspace(-1, "
              "1, "
              "h)), numpy.ones((h, w))]))");

}  // namespace lathe::ops::composites
