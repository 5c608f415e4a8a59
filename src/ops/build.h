// Composites that importers share: what model formats have as one operator and Lathe as several, or as one tensor
// program. Each emits into the builder and gives the result. Shapes of operands must be known, extents may be symbolic.
// What does not fit throws a DiagnosticError, as the operators' type rules do.
#pragma once

#include "ops/rule.h"
#include "relax/assert_op.h"
#include "relax/block_builder.h"

namespace lathe::ops::build {

using relax::BlockBuilder;
using Value = relax::Expr;  // a tensor of the graph; Expr is a scalar

// ---- plain steps ----
Value cast(BlockBuilder& b, Value x, DType dtype);  // as it is when it has that type
Value scalar(DType dtype, double value);
Value reshape(BlockBuilder& b, Value x, Shape shape);
// x with its axes in this order; x itself where nothing moves.
Value permuted(BlockBuilder& b, const Value& x, Axes order);
const Shape& shape_of(const Value& x);
DType dtype_of(const Value& x);
// f of every element, the operands broadcast to `shape`; f says the result's type.
using ElementFunction = std::function<Expr(const Indices& elements, const Indices& at)>;
Value elementwise(BlockBuilder& b, std::vector<Value> operands, const Shape& shape, const ElementFunction& f,
                  const std::string& name);
// The mean over `axes`, kept with extent 1, and the mean square distance from it.
Value mean(BlockBuilder& b, const Value& x, const Axes& axes);
Value variance(BlockBuilder& b, const Value& x, const Value& mean, const Axes& axes);
// The model fails when it runs unless the extents are equal.
void expect_equal(BlockBuilder& b, const Expr& actual, const Expr& expected);
// The model fails when it runs, and says that, unless the condition holds.
void expect(BlockBuilder& b, const Expr& condition, const relax::Message& message);
// The first element of integers for which `is_wrong` holds, by its place in row-major order: -1 where there is none.
// One scan when the model runs, in a tensor program of its own.
struct Finding {
  Expr position, value;
};
using Judgement = std::function<Expr(const Expr& value, const Expr& position)>;
Finding find_element(BlockBuilder& b, const Value& x, const Judgement& is_wrong);

// ---- by indices: negative ones count from the end; what lies outside is clamped to the nearest inside ----
Expr index_into(const Expr& index, const Expr& extent);
// out[i…] = x[i…] with i[axis] replaced by indices[i…].
Value gather_elements(BlockBuilder& b, const Value& x, const Value& indices, int64_t axis);
// The last dimension of `indices` (constant) holds the first coordinates of parts of x, after `batch_dims` shared ones.
Value gather_nd(BlockBuilder& b, const Value& x, const Value& indices, int64_t batch_dims);

enum class Combine : uint8_t { replace, add, multiply, minimum, maximum };
// x with x[… indices[i…] …] combined with updates[i…], one after the other in row-major order.
Value scatter_elements(BlockBuilder& b, const Value& x, const Value& indices, const Value& updates, int64_t axis,
                       Combine combine);
// x with the parts at `indices` (as in gather_nd) combined with `updates`.
Value scatter_nd(BlockBuilder& b, const Value& x, const Value& indices, const Value& updates, Combine combine);

// ---- along an axis ----
struct Cumulation {
  bool product = false;  // else a sum
  bool exclusive = false, reverse = false;
};
// x is [outer, n, inner]; cumulated over n.
Value cumulate(BlockBuilder& b, const Value& x, const Cumulation& how);
// The `count` largest (or smallest) along the axis in order, and their int64 positions; of equals the first comes
// first. NaN is larger than any number.
std::pair<Value, Value> top_k(BlockBuilder& b, const Value& x, const Expr& count, int64_t axis, bool largest);
// The places of x's elements along the axis in ascending or descending order, int64 in x's shape. Of equals the first
// comes first; NaN is larger than any number.
Value sorted_places(BlockBuilder& b, const Value& x, int64_t axis, bool descending);

// ---- sums of products ----
// NumPy's einsum: "bij,bjk->bik", with ellipses; without an arrow the result has the letters met once, sorted.
Value einsum(BlockBuilder& b, const std::vector<Value>& operands, std::string_view equation);

struct TransposedConvolution {
  Axes strides, dilations;  // one a spatial dimension
  Shape pad_begin, out;     // the latter are spatial extents of the result
  int64_t groups = 1;
};
// The gradient of a convolution by its input: x [N, C, spatial…], kernel [C, M / groups, spatial…].
Value conv_transpose(BlockBuilder& b, const Value& x, const Value& kernel, const TransposedConvolution& how);

// ---- resampling ----
enum class Interpolation : uint8_t { nearest, linear, cubic };
enum class Coordinates : uint8_t {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  crop_and_resize,
  half_pixel_begin  // half_pixel before half an element is taken off
};
enum class Nearest : uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };
// The weight of an element at a float64 distance: a triangle, or Keys' cubic ("Cubic convolution interpolation", 1981).
Expr interpolation_weight(Interpolation interpolation, double cubic_a, const Expr& distance);
struct Resampling {
  Interpolation interpolation = Interpolation::nearest;
  Coordinates coordinates = Coordinates::half_pixel;
  Nearest nearest = Nearest::round_prefer_floor;
  double cubic_a = -0.75;
  bool exclude_outside = false, antialias = false;
  double extrapolation = 0;  // of crop_and_resize
};
// One axis of `resample`: its extent afterwards; its scale, a float64 scalar; the part of it (0 to 1) that
// crop_and_resize takes, a float64 pair, else null; both as numbers, too, where they are known.
struct ResampledAxis {
  int64_t axis = 0;
  Expr extent;
  Value scale, range;
  std::optional<double> known_scale;
  std::optional<std::pair<double, double>> known_range;
};
// x resampled along the axes in turn, rounded once at the end.
Value resample(BlockBuilder& b, const Value& x, const std::vector<ResampledAxis>& axes, const Resampling& how);

// ---- reading between elements ----
enum class Outside : uint8_t { zeros, border, reflection };
struct GridSampling {
  Interpolation interpolation = Interpolation::linear;
  Outside outside = Outside::zeros;
  bool align_corners = false;
};
// x [N, C, spatial…] at the places of grid [N, out…, d], from -1 to 1 along each spatial dimension, the last dimension
// of x first.
Value grid_sample(BlockBuilder& b, const Value& x, const Value& grid, const GridSampling& how);
// Places from -1 to 1 along each dimension of an image of `extents`, moved by matrices [N, d, d + 1]: [N, extents…, d].
Value affine_grid(BlockBuilder& b, const Value& matrices, const Shape& extents, bool align_corners);

struct RegionPooling {
  int64_t height = 1, width = 1;  // of the result
  int64_t samples = 0;            // along each side of a bin; 0: as many as the bin has elements
  double scale = 1;               // of the regions' coordinates
  bool half_pixel = true, takes_largest = false;
};
// x [N, C, H, W] pooled over the bins of regions [R, 4] (x1, y1, x2, y2) of the images `batches` [R].
Value region_align(BlockBuilder& b, const Value& x, const Value& regions, const Value& batches,
                   const RegionPooling& how);

struct DeformedConvolution {
  Axes strides, dilations, pad_begin;
  int64_t groups = 1, offset_groups = 1;
};
// A convolution that reads at offset [N, offset_groups * window * spatial, out…] from where a plain one would, times
// mask [N, offset_groups * window, out…] (may be null). Linear between elements, zeros around.
Value deformed_convolution(BlockBuilder& b, const Value& x, const Value& kernel, const Value& offset, const Value& mask,
                           const DeformedConvolution& how);

struct Folding {
  Axes strides, dilations, pad_begin, pad_end;
  Shape image, block;  // spatial extents
};
// Blocks [N, C * block, count] added up where they lie in images [N, C, image…].
Value fold_blocks(BlockBuilder& b, const Value& blocks, const Folding& how);

// ---- spectra: real and imaginary parts are the last dimension ----
struct FourierTransform {
  int64_t axis = 0;
  Expr length;  // of the transform: what is missing are zeros, what is beyond is left
  bool inverse = false, onesided = false;
};
// x [… n … 1 or 2]; the result has 2 there, but for a onesided inverse, which gives the real signal of half a spectrum.
Value fourier(BlockBuilder& b, const Value& x, const FourierTransform& how);
// signal [B, n, 1 or 2] cut into frames of `length`, one every `step`, times `window` [w] (may be null): [B, frame, k,
// 2].
Value short_time_fourier(BlockBuilder& b, const Value& signal, const Value& window, const Expr& length,
                         const Expr& step, bool onesided);

// ---- numbers that look random: the same for the same stream and place, in every run ----
// The stream that a seed begins; neighbouring seeds have nothing in common.
uint64_t stream_of(uint64_t seed);
Value random_uniform(BlockBuilder& b, const Shape& shape, uint64_t stream, DType dtype, double low, double high);
Value random_normal(BlockBuilder& b, const Shape& shape, uint64_t stream, DType dtype, double mean, double deviation);
// [B, count] columns of `shares` [B, n], each drawn as often as its share of the row's sum says.
Value random_choice(BlockBuilder& b, const Value& shares, const Expr& count, uint64_t stream, DType dtype);

// ---- losses ----
// Of scores [N, C, rest…] and classes [N, rest…]: what each class weighs (0 for the ignored one), and that times minus
// the score of the class. `weights` [C] may be null: ones.
struct ClassLoss {
  Value loss, weight;
};
ClassLoss class_loss(BlockBuilder& b, const Value& scores, const Value& classes, const Value& weights,
                     const std::optional<int64_t>& ignored);

// ---- matrices ----
Value determinant(BlockBuilder& b, const Value& x);  // of [… n, n]

// ---- attention without a softmax ----
// What is remembered is a matrix a head, S [d_k, d_v]: decayed, corrected by what it would answer, added to, asked.
struct LinearAttention {
  int64_t query_heads = 1, heads = 1;
  bool corrects = false;  // what is added is beta * (v - S' k)
  double scale = 1;
};
struct LinearAttentionOperands {
  Value query, key, value;  // [B, T, heads * size]
  Value state;              // [B, heads, d_k, d_v], before the first step
  Value decay;              // logarithms, [B, T, heads * d_k] or [B, T, heads]; may be null
  Value beta;               // [B, T, heads] or [B, T, 1], where it corrects
};
// The answers [B, T, query_heads * d_v] and the state after the last step, both in the type of accumulation.
std::pair<Value, Value> linear_attention(BlockBuilder& b, const LinearAttentionOperands& operands,
                                         const LinearAttention& how);

}  // namespace lathe::ops::build
