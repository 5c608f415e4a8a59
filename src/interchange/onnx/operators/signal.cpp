// Spectra of signals: DFT, STFT, and the matrix that gathers a spectrum into bands of the mel scale.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/read/model.h"
#include "ops/build.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

ir::Expr one_integer(NodeImport& c, size_t i, std::string_view what) {
  const Integers given = c.integers(i);
  if (given.size() != 1)
    c.fail(codes::wrong_node, "the " + std::string(what) + " is " + std::to_string(given.size()) + " numbers, not one");
  return given[0];
}

// The signal with real and imaginary part as its last dimension; where only the run tells whether it has the latter, it
// is zero when it is not there.
Expr signal_of(NodeImport& c) {
  Shape shape = c.shape(0);
  const ir::Expr parts = shape.back();
  if (ir::as_int(parts)) return c.input(0);
  build::expect_equal(c.builder(), relax::simplified(ir::max(ir::min(parts, ir::int64(2)), ir::int64(1))), parts);
  shape.back() = ir::int64(2);
  const DType dtype = c.dtype(0);
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          return ir::if_then_else(i.back() < parts, in[0](i), ir::constant(dtype, 0));
        },
        in, "complex_signal")};
  };
  return c.builder().call_te("complex_signal", {c.input(0)}, make).value_or_throw();
}

// Of an axis that the model computes: the signal is seen as [before, axis, after, parts].
void dft_at_run_time(NodeImport& c, const Expr& x, build::FourierTransform how, const ir::Expr& axis) {
  const Shape own = build::shape_of(x);
  const int64_t rank = c.rank(0);
  const ir::Expr place = relax::simplified(ir::select(axis < 0, axis + rank, axis));
  ir::Expr before = ir::int64(1), along = ir::int64(1), after = ir::int64(1);
  for (int64_t d = 0; d + 1 < rank; ++d) {
    const ir::Expr &extent = own[static_cast<size_t>(d)], at = ir::int64(d), one = ir::int64(1);
    before = before * ir::select(at < place, extent, one);
    along = along * ir::select(ir::eq(at, place), extent, one);
    after = after * ir::select(at > place, extent, one);
  }
  how.axis = 1;
  if (!how.length) how.length = how.inverse && how.onesided ? (along - 1) * 2 : along;
  how.length = relax::simplified(how.length);
  const Shape folded{relax::simplified(before), relax::simplified(along), relax::simplified(after), own.back()};
  const Expr y = build::fourier(c.builder(), c.reshape(x, folded), how);
  const Shape& result = build::shape_of(y);
  Shape shape = own;
  for (int64_t d = 0; d + 1 < rank; ++d) {
    const auto at = static_cast<size_t>(d);
    shape[at] = relax::simplified(ir::select(ir::eq(ir::int64(d), place), result[1], own[at]));
  }
  shape.back() = result[3];
  c.set(c.reshape(y, shape));
}

void dft(NodeImport& c) {
  build::FourierTransform how;
  how.inverse = c.attributes.flag("inverse", false);
  how.onesided = c.attributes.flag("onesided", false);
  const int64_t rank = c.rank(0);
  if (rank < 2) c.fail(codes::wrong_node, "a signal has two dimensions at least, and the last is 1 or 2");
  if (c.has(1)) {
    how.length = one_integer(c, 1, "length");
    c.expect_at_least(1, {how.length}, 0, "a length is 0 or more");
    how.length = relax::non_negative(how.length);
  }
  ir::Expr given = ir::int64(c.version >= 20 ? -2 : c.attributes.integer("axis", 1));
  if (c.version >= 20 && c.has(2)) given = one_integer(c, 2, "axis");
  const auto axis = ir::as_int(given);
  if (!axis) {
    const ir::Expr place = ir::select(given < 0, given + rank, given);
    c.expect(ir::logical_and(place >= 0, place < rank - 1),
             relax::Message() << c.name_of(2) << " is " << given << ", but a signal has axes before its last in [-"
                              << std::to_string(rank) << ", " << std::to_string(rank) << ")");
  }
  const Expr x = signal_of(c);
  if (!axis) return dft_at_run_time(c, x, how, given);
  how.axis = c.axis(*axis, rank);
  if (how.axis == rank - 1) c.fail(codes::wrong_attribute, "the axis is the last, which holds real and imaginary part");
  const ir::Expr own = c.shape(0)[static_cast<size_t>(how.axis)];
  if (!how.length) how.length = how.inverse && how.onesided ? relax::non_negative((own - 1) * 2) : own;
  c.set(build::fourier(c.builder(), x, how));
}

void stft(NodeImport& c) {
  const bool onesided = c.attributes.flag("onesided", true);
  if (c.rank(0) != 3) c.fail(codes::wrong_node, "the signal has " + std::to_string(c.rank(0)) + " dimensions, not 3");
  if (c.has(2) && c.rank(2) != 1) c.fail(codes::wrong_node, "the window is not a vector");
  const ir::Expr step = one_integer(c, 1, "step");
  if (const auto known = ir::as_int(step); known && *known < 1)
    c.fail(codes::wrong_node, "the step is " + std::to_string(*known));
  c.expect_at_least(1, {step}, 1, "frames are 1 element apart or more");
  ir::Expr length = c.has(2) ? c.shape(2)[0] : c.shape(0)[1];
  if (c.has(3)) {
    length = one_integer(c, 3, "length of a frame");
    c.expect_at_least(3, {length}, 0, "a length is 0 or more");
    length = relax::non_negative(length);
  }
  const Expr window = c.has(2) ? c.input(2) : Expr();
  c.set(build::short_time_fourier(c.builder(), signal_of(c), window, length, step, onesided));
}

// [dft_length / 2 + 1, bands]: triangles between neighbouring places of an even division of the mel scale, each place
// rounded down to a frequency of the spectrum.
void mel_weight_matrix(NodeImport& c) {
  const DType dtype =
      element_type(c.attributes.integer("output_datatype", 1), "the result", c.place()).value_or_throw();
  const ir::Expr bands = relax::non_negative(one_integer(c, 0, "number of bands"));
  const ir::Expr length = relax::non_negative(one_integer(c, 1, "length"));
  const ir::Expr rate = one_integer(c, 2, "sample rate");
  const Shape shape{relax::simplified(ir::floordiv(length, ir::int64(2)) + 1), bands};
  const DType wide = DType::float_(64);
  const auto number = [&](double value) { return ir::constant(wide, value); };
  const std::vector<Expr> edges{c.reshape(c.cast(c.input(3), wide), {}), c.reshape(c.cast(c.input(4), wide), {})};
  const auto make = [&](const std::vector<te::Tensor>& in) {
    const auto mel = [&](const ir::Expr& hertz) {
      return number(2595) * ir::call(ir::intrinsic::log10, number(1) + ir::div(hertz, number(700)));
    };
    const te::Tensor places = te::compute(
        {relax::simplified(bands + 2)},
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr low = mel(in[0]({}));
          const ir::Expr step = ir::div(mel(in[1]({})) - low, ir::cast(wide, bands + 2));
          const ir::Expr power = ir::div(ir::cast(wide, i[0]) * step + low, number(2595));
          const ir::Expr hertz = number(700) * (ir::call(wide, ir::intrinsic::pow, {number(10), power}) - number(1));
          const ir::Expr place = ir::div(ir::cast(wide, length + 1) * hertz, ir::cast(wide, rate));
          return ir::call(ir::intrinsic::floor, place);
        },
        in, "mel_places");
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr at = ir::cast(wide, i[0]);
          const auto place = [&](int64_t k) { return places({i[1] + k}); };
          const ir::Expr low = place(0), centre = place(1), high = place(2);
          // A triangle without a rising side is 1 at its centre.
          const ir::Expr is_flat = ir::eq(low, centre);
          const ir::Expr rising = ir::select(is_flat, ir::cast(wide, ir::eq(at, centre)),
                                             ir::div(at - low, ir::max(centre - low, number(1))));
          const ir::Expr falling = ir::div(high - at, ir::max(high - centre, number(1)));
          const ir::Expr on_left = ir::logical_and(at >= low, at <= centre);
          const ir::Expr on_right = ir::logical_and(at >= centre, at < high);
          return ir::cast(dtype, ir::select(on_right, falling, ir::select(on_left, rising, number(0))));
        },
        {places}, "mel_weights")};
  };
  c.set(c.builder().call_te("mel_weights", edges, make).value_or_throw());
}

const OperatorRow signal_rows[] = {
    {"DFT", {17, 20}, 1, 3, 1, dft},
    {"STFT", {17}, 2, 4, 1, stft},
    {"MelWeightMatrix", {17}, 5, 5, 1, mel_weight_matrix},
};

}  // namespace

Table signal() { return signal_rows; }

}  // namespace lathe::onnx::operators
