// Tensors made from shapes and numbers.
#include "ops/composites/operands.h"

namespace lathe::ops::composites {

namespace {

struct ElementAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "ElementAttributes";
  std::optional<DType> dtype;
  static constexpr auto fields() { return std::tuple{field("dtype", &ElementAttributes::dtype)}; }
};

struct EyeAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "EyeAttributes";
  DType dtype = DType::float32();
  static constexpr auto fields() { return std::tuple{field("dtype", &EyeAttributes::dtype)}; }
};

struct HammingAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "HammingAttributes";
  bool periodic = true;
  double alpha = 0.54, beta = 0.46;
  DType dtype = DType::float32();
  static constexpr auto fields() {
    return std::tuple{field("periodic", &HammingAttributes::periodic), field("alpha", &HammingAttributes::alpha),
                      field("beta", &HammingAttributes::beta), field("dtype", &HammingAttributes::dtype)};
  }
};

struct OneHotAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "OneHotAttributes";
  std::optional<int64_t> depth;
  int64_t axis = -1;
  static constexpr auto fields() {
    return std::tuple{field("depth", &OneHotAttributes::depth), field("axis", &OneHotAttributes::axis)};
  }
};

// ---- one number everywhere ----

Value filled(const Expansion& e, Shape shape, const Value& number) {
  return e.call(ops::full, {ir::make<relax::ShapeExpr>(std::move(shape)), number});
}

template <int number>
Value expand_filled(const Expansion& e) {
  const DType dtype = element_dtype(e, e.attrs<ElementAttributes>().dtype);
  return filled(e, e.shape(0), build::scalar(dtype, number));
}

template <int number>
Value expand_filled_like(const Expansion& e) {
  const Value& x = e.tensor(0);
  const DType dtype = element_dtype(e, e.attrs<ElementAttributes>().dtype, build::dtype_of(x));
  return filled(e, build::shape_of(x), build::scalar(dtype, number));
}

Value expand_full_like(const Expansion& e) {
  const Value &x = e.tensor(0), &number = e.any(1);
  const DType dtype = element_dtype(e, e.attrs<ElementAttributes>().dtype, build::dtype_of(x));
  if (!relax::as_tensor(number)) return filled(e, build::shape_of(x), scalar_tensor(e, dtype, e.scalar(1)));
  const Shape& own = build::shape_of(e.tensor(1));
  if (!ir::is_int(ir::product(own), 1))
    e.refuse(codes::wrong_rank, "the argument 'fill_value' is " + relax::text_of(own) + ", but it must be one number");
  return filled(e, build::shape_of(x), e.cast(number, dtype));
}

// ---- ranges ----

struct NumberRange {
  Expr start, step, count;
};

// The numbers must be known; they are counted as numbers of the widest of their types.
NumberRange range_of_floats(const Expansion& e, const Expr& start, const Expr& end, const Expr& step) {
  const DType wide = DType::float_(64);
  DType dtype = DType::float32();
  double values[3];
  size_t at = 0;
  for (const Expr& each : {start, end, step}) {
    const auto known = ir::as_float(ir::cast(wide, each));
    if (!known || !std::isfinite(*known))
      e.refuse(codes::wrong_arguments, "a range of floats needs finite numbers that are known");
    if (each->dtype == wide) dtype = wide;
    values[at++] = *known;
  }
  if (values[2] == 0) e.refuse(codes::wrong_arguments, "the step is 0, but it leads from number to number");
  const double steps = std::ceil(ir::round_to(dtype, ir::round_to(dtype, values[1] - values[0]) / values[2]));
  if (!(steps < 0x1p53)) e.refuse(codes::wrong_arguments, "the range has more numbers than a tensor holds");
  return {ir::constant(wide, values[0]), ir::constant(wide, values[2]),
          ir::int64(static_cast<int64_t>(std::max(steps, 0.0)))};
}

NumberRange range_of_integers(const Expansion& e, const Expr& start, const Expr& end, const Expr& step) {
  const auto from = ir::as_int(start), to = ir::as_int(end), by = ir::as_int(step);
  if (by == 0) e.refuse(codes::wrong_arguments, "the step is 0, but it leads from number to number");
  int64_t span = 0;
  if ((from && to && __builtin_sub_overflow(*to, *from, &span)) || by == std::numeric_limits<int64_t>::min())
    e.refuse(codes::wrong_arguments, "the range is longer than int64 counts");
  if (by) {
    const Expr distance = *by > 0 ? end - start : start - end;
    const int64_t size = std::abs(*by);
    return {start, step, relax::non_negative(ir::floordiv(distance + (size - 1), ir::int64(size)))};
  }
  build::expect(e.b, ir::ne(step, ir::int64(0)),
                relax::Message() << "the step of a range is " << step << ", but it leads from number to number");
  const Expr divisor = ir::select(ir::eq(step, ir::int64(0)), ir::int64(1), step);
  return {start, step, relax::non_negative(ir::int64(0) - ir::floordiv(start - end, divisor))};
}

Value expand_arange(const Expansion& e) {
  const auto number = [&](size_t i) {
    const Expr given = e.scalar(i);
    if (!given->dtype.is_floating() && !given->dtype.is_integer())
      e.refuse(codes::wrong_arguments, "a range is between numbers, not " + given->dtype.str());
    return given;
  };
  Expr start = number(0), end = start;
  if (e.has(1))
    end = number(1);
  else
    start = ir::constant(start->dtype, 0);
  const Expr step = e.has(2) ? number(2) : ir::int64(1);
  const bool floats = start->dtype.is_floating() || end->dtype.is_floating() || step->dtype.is_floating();
  const auto& given = e.attrs<ElementAttributes>().dtype;
  const DType dtype = element_dtype(e, given, floats ? DType::float32() : DType::int64());
  if (dtype.is_bool()) e.refuse(codes::dtype_not_supported, "a range is of numbers, not bool");
  const auto whole = [](const Expr& x) { return relax::simplified(ir::cast(DType::int64(), x)); };
  const NumberRange range =
      floats ? range_of_floats(e, start, end, step) : range_of_integers(e, whole(start), whole(end), whole(step));
  const DType wide = floats ? DType::float_(64) : DType::int64();
  Numbers numbers;
  const auto first = numbers.add(e, wide, range.start), by = numbers.add(e, wide, range.step);
  const auto make = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        {range.count}, [&](const Indices& i) { return ir::cast(dtype, first(in) + ir::cast(wide, i[0]) * by(in)); }, in,
        "arange")};
  };
  return e.b.call_te("arange", numbers.operands, make).value_or_throw();
}

// ---- by the place alone ----

// Ones on the diagonal that is k above the main one.
Value diagonal(const Expansion& e, const Shape& shape, const Expr& k, DType dtype) {
  Numbers numbers;
  const auto above = numbers.add(e, DType::int64(), k);
  const auto make = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape, [&](const Indices& i) { return ir::cast(dtype, ir::eq(i[1] - i[0], above(in))); }, in, "eye")};
  };
  return e.b.call_te("eye", numbers.operands, make).value_or_throw();
}

Value expand_eye(const Expansion& e) {
  const Expr rows = extent_argument(e, 0, "n"), columns = extent_argument(e, 1, "m", rows);
  const DType dtype = element_dtype(e, e.attrs<EyeAttributes>().dtype);
  return diagonal(e, {rows, columns}, integer_argument(e, 2, "k", ir::int64(0)), dtype);
}

Value expand_eye_like(const Expansion& e) {
  const Value& x = e.tensor(0);
  const Shape& shape = build::shape_of(x);
  if (shape.size() != 2)
    e.refuse(codes::wrong_rank, "the argument 'x' is " + relax::text_of(shape) + ", but it must be a matrix");
  const DType dtype = element_dtype(e, e.attrs<ElementAttributes>().dtype, build::dtype_of(x));
  return diagonal(e, shape, integer_argument(e, 1, "k", ir::int64(0)), dtype);
}

// alpha - beta cos(2 pi i / n), n the size, or one less where the window is not periodic. The window of one element
// is 1.
Value expand_hamming_window(const Expansion& e) {
  const auto& how = e.attrs<HammingAttributes>();
  const Expr size = extent_argument(e, 0, "window_size");
  if (!how.dtype.is_scalar() || !how.dtype.is_floating())
    e.refuse(codes::dtype_not_supported, "the window is of floats, not " + how.dtype.str());
  const DType wide = DType::float_(64);
  const auto make = [&](const std::vector<Tensor>&) {
    return std::vector{te::compute(
        {size},
        [&](const Indices& i) {
          const Expr count = ir::cast(wide, ir::max(how.periodic ? size : size - 1, ir::int64(1)));
          const Expr angle = ir::div(ir::constant(wide, 6.283185307179586) * ir::cast(wide, i[0]), count);
          const Expr cosine = ir::constant(wide, how.beta) * ir::call(ir::intrinsic::cos, angle);
          const Expr alone = ir::eq(size, ir::int64(1));
          return ir::cast(how.dtype, ir::select(alone, ir::constant(wide, 1), ir::constant(wide, how.alpha) - cosine));
        },
        {}, "hamming_window")};
  };
  return e.b.call_te("hamming_window", {}, make).value_or_throw();
}

// An index outside [0, depth) has no place.
Value expand_one_hot(const Expansion& e) {
  expect_dtype(e, 0, "indices", DTypeSet::integer);
  const auto& how = e.attrs<OneHotAttributes>();
  const Expr on = e.scalar(1), off = e.scalar(2);
  if (on->dtype != off->dtype)
    e.refuse(codes::dtype_mismatch, "on_value is a " + on->dtype.str() + ", but off_value a " + off->dtype.str() +
                                        "; R.const gives both one dtype");
  if (!how.depth) e.refuse(codes::wrong_attribute, "the attribute 'depth' is missing");
  if (*how.depth < 0)
    e.refuse(codes::wrong_attribute, "the depth is " + std::to_string(*how.depth) + ", but an extent is 0 or more");
  Shape shape = build::shape_of(e.tensor(0));
  const int64_t axis = e.axis(how.axis, shape.size() + 1);
  shape.insert(shape.begin() + axis, ir::int64(*how.depth));
  Numbers numbers({e.tensor(0)});
  const auto hot = numbers.add(e, on->dtype, on), cold = numbers.add(e, off->dtype, off);
  const auto make = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](Indices i) {
          const Expr place = i[static_cast<size_t>(axis)];
          i.erase(i.begin() + axis);
          return ir::select(ir::eq(ir::cast(DType::int64(), in[0](std::move(i))), place), hot(in), cold(in));
        },
        in, "one_hot")};
  };
  return e.b.call_te("one_hot", numbers.operands, make).value_or_throw();
}

}  // namespace

const Operator zeros =
    composite("zeros", {{"shape", Input::required, Input::shape}}, relax::attributes_of<ElementAttributes>(),
              expand_filled<0>, "numpy.zeros(shape, dtype)");
const Operator ones =
    composite("ones", {{"shape", Input::required, Input::shape}}, relax::attributes_of<ElementAttributes>(),
              expand_filled<1>, "numpy.ones(shape, dtype)");
const Operator zeros_like = composite("zeros_like", {{"x"}}, relax::attributes_of<ElementAttributes>(),
                                      expand_filled_like<0>, "numpy.zeros_like(x, dtype)");
const Operator ones_like = composite("ones_like", {{"x"}}, relax::attributes_of<ElementAttributes>(),
                                     expand_filled_like<1>, "numpy.ones_like(x, dtype)");
const Operator full_like =
    composite("full_like", {{"x"}, {"fill_value", Input::required, Input::scalar}},
              relax::attributes_of<ElementAttributes>(), expand_full_like, "numpy.full_like(x, fill_value, dtype)");
// One number is the end. Without a dtype int64, or float32 where a number is a float.
const Operator arange =
    composite("arange",
              {{"start", Input::required, Input::scalar},
               {"end", Input::optional, Input::scalar},
               {"step", Input::optional, Input::scalar}},
              relax::attributes_of<ElementAttributes>(), expand_arange, "numpy.arange(start, end, step, dtype)");
const Operator eye = composite("eye",
                               {{"n", Input::required, Input::scalar},
                                {"m", Input::optional, Input::scalar},
                                {"k", Input::optional, Input::scalar}},
                               relax::attributes_of<EyeAttributes>(), expand_eye, "numpy.eye(n, m, k, dtype)");
const Operator eye_like =
    composite("eye_like", {{"x"}, {"k", Input::optional, Input::scalar}}, relax::attributes_of<ElementAttributes>(),
              expand_eye_like, "numpy.eye(*x.shape, k, dtype or x.dtype)");
const Operator hamming_window = composite("hamming_window", {{"window_size", Input::required, Input::scalar}},
                                          relax::attributes_of<HammingAttributes>(), expand_hamming_window,
                                          "scipy.signal.windows.general_hamming(window_size, alpha, sym=not periodic)");
const Operator one_hot = composite(
    "one_hot",
    {{"indices"}, {"on_value", Input::required, Input::scalar}, {"off_value", Input::required, Input::scalar}},
    relax::attributes_of<OneHotAttributes>(), expand_one_hot,
    "numpy.where(numpy.expand_dims(indices, axis) == numpy.arange(depth) along axis, "
    "on_value, off_value)");

}  // namespace lathe::ops::composites
