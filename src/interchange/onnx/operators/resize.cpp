// Resize and Upsample: resampling, one axis after the other.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build.h"
#include "relax/strings.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

const DType exact = DType::float_(64);

Expr element_of(NodeImport& c, const Expr& vector, int64_t at) {
  const auto shape = [](int64_t value) { return ir::make<relax::ShapeExpr>(Shape{ir::int64(value)}); };
  const Expr part = c.call(ops::strided_slice, {vector, shape(at), shape(at + 1)},
                           ir::make<ops::StridedSliceAttributes>(std::vector<int64_t>{0}));
  return c.reshape(part, {});
}

// floor(extent * scale), computed when the model runs unless both are constants.
ir::Expr scaled_extent(NodeImport& c, const ir::Expr& extent, const Expr& scales, int64_t at) {
  const auto* constant = scales.as<relax::Constant>();
  if (const double whole = constant ? ir::float_at(*constant->data, at) : 0;
      whole >= 1 && whole <= 1 << 20 && whole == std::floor(whole) && !ir::as_int(extent))
    return relax::simplified(extent * static_cast<int64_t>(whole));
  if (const auto known = ir::as_int(extent); constant && known) {
    const double scale = ir::float_at(*constant->data, at);
    const double size = std::floor(static_cast<double>(*known) * scale);
    if (!(scale > 0) || size > static_cast<double>(std::numeric_limits<int32_t>::max()))
      c.fail(codes::wrong_node, "a scale of " + std::to_string(scale) + " of " + std::to_string(*known) + " elements");
    return ir::int64(static_cast<int64_t>(size));
  }
  const Expr product = c.call(ops::multiply, {c.extent_as_float(extent), c.cast(element_of(c, scales, at), exact)});
  const ir::Expr size = c.read_at_run_time(c.cast(c.call(ops::floor, {product}), DType::int64()), 1)[0];
  c.expect(size >= 0, relax::Message() << "the scale at [" << std::to_string(at) << "] makes " << size
                                       << " elements of " << extent << ", but a scale is more than 0");
  return relax::non_negative(size);
}

build::Resampling read_how(NodeImport& c) {
  build::Resampling how;
  const std::string mode = c.attributes.word("mode", {"nearest", "linear", "cubic"});
  how.interpolation = mode == "nearest"  ? build::Interpolation::nearest
                      : mode == "linear" ? build::Interpolation::linear
                                         : build::Interpolation::cubic;
  if (how.interpolation != build::Interpolation::nearest && c.dtype(0) == relax::string_dtype)
    c.fail(codes::wrong_attribute, "there is nothing between strings, so the mode is 'nearest', not '" + mode + "'");
  if (c.version < 11) {
    how.coordinates = build::Coordinates::asymmetric;
    how.nearest = build::Nearest::floor;
    return how;
  }
  const std::string place =
      c.attributes.word("coordinate_transformation_mode", {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                                           "align_corners", "asymmetric", "tf_crop_and_resize"});
  const std::pair<std::string_view, build::Coordinates> places[] = {
      {"half_pixel", build::Coordinates::half_pixel},
      {"half_pixel_symmetric", build::Coordinates::half_pixel_symmetric},
      {"pytorch_half_pixel", build::Coordinates::pytorch_half_pixel},
      {"align_corners", build::Coordinates::align_corners},
      {"asymmetric", build::Coordinates::asymmetric},
      {"tf_crop_and_resize", build::Coordinates::crop_and_resize}};
  for (const auto& [name, value] : places)
    if (name == place) how.coordinates = value;
  if (how.coordinates == build::Coordinates::crop_and_resize && c.dtype(0) == relax::string_dtype)
    c.fail(codes::wrong_attribute,
           "what lies beyond is the number of 'extrapolation_value', but the input holds strings");
  const std::string nearest =
      c.attributes.word("nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  how.nearest = nearest == "floor"               ? build::Nearest::floor
                : nearest == "ceil"              ? build::Nearest::ceil
                : nearest == "round_prefer_ceil" ? build::Nearest::round_prefer_ceil
                                                 : build::Nearest::round_prefer_floor;
  how.cubic_a = c.attributes.number("cubic_coeff_a", -0.75);
  how.exclude_outside = c.attributes.flag("exclude_outside", false);
  how.extrapolation = c.attributes.number("extrapolation_value", 0);
  how.antialias = c.version >= 18 && c.attributes.flag("antialias", false);
  return how;
}

// One number an axis; the run checks what it alone can tell.
void check_count(NodeImport& c, size_t i, size_t axes) {
  if (c.has_open_length(i))
    return build::expect_equal(c.builder(), c.shape(i)[0], ir::int64(static_cast<int64_t>(axes)));
  const auto count =
      c.rank(i) == 1 ? ir::as_int(c.known(i) ? ir::int64(c.integer_dims(i)[0]) : c.shape(i)[0]) : std::nullopt;
  if (count != static_cast<int64_t>(axes))
    c.fail(codes::wrong_node, "the input " + std::to_string(i) + " does not have " + std::to_string(axes) +
                                  " elements, one for each axis");
}

bool is_given(NodeImport& c, size_t i) {
  return c.has(i) && !(c.rank(i) == 1 && !c.known(i) && ir::is_int(c.shape(i)[0], 0));
}

void resize(NodeImport& c) {
  const build::Resampling how = read_how(c);
  const int64_t rank = c.rank(0);
  const size_t scales_at = c.version < 11 ? 1 : 2;
  std::vector<int64_t> axes;
  if (const auto given = c.version >= 18 ? c.attributes.integers("axes") : std::nullopt)
    axes = c.axes(*given, rank);
  else
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  const std::string policy =
      c.version >= 18 ? c.attributes.word("keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"})
                      : "stretch";
  const bool has_sizes = c.version >= 11 && is_given(c, 3);
  if (has_sizes && c.has(scales_at) && c.has_open_length(scales_at))  // then it is empty, as the run checks
    build::expect_equal(c.builder(), c.shape(scales_at)[0], ir::int64(0));
  else if (has_sizes == is_given(c, scales_at))
    c.fail(codes::wrong_node, "Resize takes either scales or sizes");
  check_count(c, has_sizes ? 3 : scales_at, axes.size());
  const bool crops = how.coordinates == build::Coordinates::crop_and_resize;
  if (crops) {
    if (!c.has(1)) c.fail(codes::wrong_node, "the input roi of Resize is missing");
    check_count(c, 1, 2 * axes.size());
  }

  const Shape own = c.shape(0);
  const Expr given_scales = has_sizes ? Expr{} : c.input(scales_at);
  const Integers sizes = has_sizes ? c.integers(3, static_cast<int64_t>(axes.size())) : Integers{};
  if (has_sizes) c.expect_at_least(3, sizes, 0, "an extent is 0 or more");
  const auto ratio = [](const ir::Expr& extent, const ir::Expr& of) -> std::optional<double> {
    const auto a = ir::as_int(extent), b = ir::as_int(of);
    if (!a || !b || *b == 0) return std::nullopt;
    return static_cast<double>(*a) / static_cast<double>(*b);
  };
  // With a policy one scale holds for all axes: the least or the largest that the sizes ask for.
  Expr common;
  std::optional<double> known_common;
  if (has_sizes && policy != "stretch")
    for (size_t k = 0; k < axes.size(); ++k) {
      const auto known = ratio(sizes[k], own[static_cast<size_t>(axes[k])]);
      if (k == 0)
        known_common = known;
      else if (known && known_common)
        known_common = policy == "not_larger" ? std::min(*known, *known_common) : std::max(*known, *known_common);
      else
        known_common.reset();
      const Expr scale =
          c.call(ops::divide, {c.extent_as_float(sizes[k]), c.extent_as_float(own[static_cast<size_t>(axes[k])])});
      common = !common ? scale : c.call(policy == "not_larger" ? ops::minimum : ops::maximum, {common, scale});
    }
  std::vector<build::ResampledAxis> resampled;
  for (size_t k = 0; k < axes.size(); ++k) {
    const ir::Expr& extent = own[static_cast<size_t>(axes[k])];
    ir::Expr out;
    Expr scale;
    std::optional<double> known_scale;
    if (common) {
      scale = common;
      known_scale = known_common;
      const Expr size = c.call(ops::multiply, {c.extent_as_float(extent), scale});
      const Expr half_up = c.call(ops::floor, {c.call(ops::add, {size, c.scalar(exact, 0.5)})});
      out = relax::non_negative(c.read_at_run_time(c.cast(half_up, DType::int64()), 1)[0]);
    } else if (has_sizes) {
      out = relax::non_negative(sizes[k]);
      scale = c.call(ops::divide, {c.extent_as_float(out), c.extent_as_float(extent)});
      known_scale = ratio(out, extent);
    } else {
      out = scaled_extent(c, extent, given_scales, static_cast<int64_t>(k));
      scale = c.cast(element_of(c, given_scales, static_cast<int64_t>(k)), exact);
      const auto* constant = given_scales.as<relax::Constant>();
      if (constant) known_scale = ir::float_at(*constant->data, static_cast<int64_t>(k));
      if (known_scale == 1.0 && !crops) continue;
    }
    if (has_sizes && !crops && !common && relax::same_extent(out, extent)) continue;
    Expr range;
    std::optional<std::pair<double, double>> known_range;
    if (crops) {
      const auto end = static_cast<int64_t>(k + axes.size());
      const auto one = [&](int64_t at) {
        return c.reshape(c.cast(element_of(c, c.input(1), at), exact), {ir::int64(1)});
      };
      range = c.call(ops::concat, {one(static_cast<int64_t>(k)), one(end)}, ir::make<ops::AxisAttributes>(int64_t{0}));
      if (const auto* constant = c.input(1).as<relax::Constant>())
        known_range =
            std::pair(ir::float_at(*constant->data, static_cast<int64_t>(k)), ir::float_at(*constant->data, end));
    }
    resampled.push_back({axes[k], out, scale, range, known_scale, known_range});
  }
  c.set(build::resample(c.builder(), c.input(0), resampled, how));
}

void upsample(NodeImport& c) {
  build::Resampling how;
  how.interpolation = c.attributes.word("mode", {"nearest", "linear"}) == "linear" ? build::Interpolation::linear
                                                                                   : build::Interpolation::nearest;
  if (how.interpolation != build::Interpolation::nearest && c.dtype(0) == relax::string_dtype)
    c.fail(codes::wrong_attribute, "there is nothing between strings, so the mode is 'nearest'");
  how.coordinates = build::Coordinates::asymmetric;
  how.nearest = build::Nearest::floor;
  Expr scales;
  if (c.version >= 9) {
    if (!c.has(1)) c.fail(codes::wrong_node, "the input scales of Upsample is missing");
    check_count(c, 1, static_cast<size_t>(c.rank(0)));
    scales = c.input(1);
  } else {
    const auto given = c.attributes.numbers("scales");
    if (!given || static_cast<int64_t>(given->size()) != c.rank(0))
      c.fail(codes::wrong_attribute, "the attribute 'scales' does not have one scale for each axis");
    scales = relax::constant(ir::tensor_of<float>(DType::float32(), {c.rank(0)}, *given));
  }
  const Shape own = c.shape(0);
  const auto* constant = scales.as<relax::Constant>();
  std::vector<build::ResampledAxis> resampled;
  for (int64_t d = 0; d < c.rank(0); ++d) {
    const ir::Expr out = scaled_extent(c, own[static_cast<size_t>(d)], scales, d);
    std::optional<double> known_scale;
    if (constant) known_scale = ir::float_at(*constant->data, d);
    if (known_scale == 1.0) continue;
    resampled.push_back({d, out, c.cast(element_of(c, scales, d), exact), {}, known_scale, {}});
  }
  c.set(build::resample(c.builder(), c.input(0), resampled, how));
}

const OperatorRow resize_rows[] = {
    {"Resize", {10, 11, 13, 18, 19}, 1, 4, 1, resize},
    {"Upsample", {7, 9}, 1, 2, 1, upsample},
};

}  // namespace

Table resize() { return resize_rows; }

}  // namespace lathe::onnx::operators
