// Discrete Fourier transforms: where the length is known and has factors, by Cooley and Tukey's division ("An algorithm
// for the machine calculation of complex Fourier series", 1965), else term by term. The angle of a term is a whole
// multiple of a turn's n-th part, so sines and cosines come from a table, which is exact for any length.
#include <cmath>

#include "ops/build.h"

namespace lathe::ops::build {

namespace {

constexpr double turn = 6.283185307179586;

// cos and sin of i / length of a turn: two tensors.
std::pair<Tensor, Tensor> turn_table(const Expr& length, DType dtype) {
  const DType wide = DType::float_(64);
  const auto table = [&](const ir::Intrinsic& function, const char* name) {
    return te::compute(
        {length},
        [&](const Indices& i) {
          const Expr part = ir::div(ir::cast(wide, i[0]), ir::cast(wide, length));
          return ir::cast(dtype, ir::call(function, part * ir::constant(wide, turn)));
        },
        {}, name);
  };
  return {table(ir::intrinsic::cos, "cosines"), table(ir::intrinsic::sin, "sines")};
}

// Part `part` (0 real, 1 imaginary) of (re + j im) * (c + j s), where s has its sign already.
Expr part_of_product(const Expr& part, const Expr& re, const Expr& im, const Expr& c, const Expr& s) {
  if (!im) return re * ir::select(ir::eq(part, ir::int64(0)), c, s);
  return ir::select(ir::eq(part, ir::int64(0)), re * c - im * s, re * s + im * c);
}

bool is_complex(const Shape& shape) {
  const auto parts = ir::as_int(shape.back());
  if (!parts || (*parts != 1 && *parts != 2))
    throw support::DiagnosticError(relax::wrong(
        codes::shape_mismatch,
        "a signal's last dimension is 1 or 2, real or complex, but it is " + relax::text_of(shape.back())));
  return *parts == 2;
}

// What is transformed: element `at` of the transform's axis, a complex number, at the other coordinates `others`, whose
// entry for the axis is not looked at.
struct Complex {
  Expr re, im;  // im may be null: zero
};
using Signal = std::function<Complex(const Indices& others, const Expr& at)>;

// The factors that the length is divided by, ascending; none where term by term is as well. What has only larger prime
// factors than those tried counts as one.
constexpr int64_t largest_tried = 1000;
std::vector<int64_t> factors_of(int64_t length) {
  std::vector<int64_t> factors;
  int64_t rest = length, work = 0;
  const auto take = [&](int64_t factor) {
    factors.push_back(factor);
    work += factor;
    rest /= factor;
  };
  while (rest % 4 == 0 && rest > 0) take(4);
  for (int64_t factor = 2; factor < largest_tried && factor * factor <= rest; ++factor)
    while (rest % factor == 0) take(factor);
  if (rest > 1) take(rest);
  if (2 * work >= length) factors.clear();
  std::sort(factors.begin(), factors.end());
  return factors;
}

struct Transformation {
  Shape shape;  // of the result, [… bins … 2]
  size_t axis = 0;
  Expr length, used;  // `used` elements of the signal are read, the rest are zeros
  bool inverse = false;
  DType wide;
  std::vector<Tensor> in;  // what the signal reads
};

// The sums, not divided by the length.
Tensor transform(const Signal& signal, const Transformation& how) {
  const auto [cosines, sines] = turn_table(how.length, how.wide);
  const auto angle = [&, cosines = cosines, sines = sines](const Expr& steps) {
    const Expr at = ir::floormod(steps, ir::max(how.length, ir::int64(1)));
    const Expr sine = sines({at});
    return std::pair{cosines({at}), how.inverse ? sine : ir::constant(how.wide, 0) - sine};
  };
  std::vector<Tensor> read = how.in;
  read.insert(read.end(), {cosines, sines});
  const auto length = ir::as_int(how.length), used = ir::as_int(how.used);
  const std::vector<int64_t> factors = length && used ? factors_of(*length) : std::vector<int64_t>{};
  if (factors.empty()) {
    const te::IterVar k = te::reduce_axis(ir::int64(0), how.used, "k");
    return te::compute(
        how.shape,
        [&](const Indices& i) {
          const Complex x = signal(i, k->var);
          const auto [c, s] = angle(k->var * i[how.axis]);
          return te::sum(part_of_product(i.back(), x.re, x.im, c, s), {k});
        },
        read, "fourier");
  }
  // With n = a * rest + b and k = p + done * (c + factor * …), a factor of the length turns the sums over a into a
  // digit c of k: stage[p + done * c, b] = sum over a of before[p, a * rest + b] * w^(done * c * (a * rest + b)).
  Tensor before;
  int64_t done = 1, rest = *length;
  for (const int64_t factor : factors) {
    const int64_t now = rest / factor;
    Shape shape = how.shape;
    shape[how.axis] = ir::int64(done * factor);
    shape.insert(shape.begin() + static_cast<ptrdiff_t>(how.axis) + 1, ir::int64(now));
    const te::IterVar a = te::reduce_axis(ir::int64(0), ir::int64(factor), "a");
    std::vector<Tensor> stage_reads = read;
    if (before.buffer) stage_reads = {before, cosines, sines};
    before = te::compute(
        shape,
        [&](const Indices& i) {
          const Expr n = a->var * ir::int64(now) + i[how.axis + 1];
          const Expr p = ir::floormod(i[how.axis], ir::int64(done)), c = ir::floordiv(i[how.axis], ir::int64(done));
          Complex x;
          if (done == 1) {
            Indices others = i;
            others.erase(others.begin() + static_cast<ptrdiff_t>(how.axis));
            const Expr inside = n < how.used, at = ir::min(n, ir::int64(std::max<int64_t>(*used - 1, 0)));
            x = signal(others, at);
            if (*used < *length) {
              const Expr zero = ir::constant(how.wide, 0);
              x.re = ir::if_then_else(inside, x.re, zero);
              if (x.im) x.im = ir::if_then_else(inside, x.im, zero);
            }
          } else {
            Indices at = i;
            at[how.axis] = p;
            at[how.axis + 1] = n;
            at.back() = ir::int64(0);
            x.re = before(at);
            at.back() = ir::int64(1);
            x.im = before(at);
          }
          const auto [cosine, sine] = angle(c * n * ir::int64(done));
          return te::sum(part_of_product(i.back(), x.re, x.im, cosine, sine), {a});
        },
        stage_reads, "fourier_by_" + std::to_string(factor));
    done *= factor;
    rest = now;
  }
  return te::compute(
      how.shape,
      [&](const Indices& i) {
        Indices at = i;
        at.insert(at.begin() + static_cast<ptrdiff_t>(how.axis) + 1, ir::int64(0));
        return before(at);
      },
      {before}, "fourier");
}

// ---- as products of matrices ----

// cos and sin of steps / length of a turn, exact for whole turns and quarters; the sine with the transform's sign.
std::pair<double, double> turned(int64_t steps, int64_t length, bool inverse) {
  const int64_t at = steps % length;
  const double part = static_cast<double>(at) / static_cast<double>(length) * turn;
  const bool is_quarter = at * 4 % length == 0;
  const double c = is_quarter ? std::round(std::cos(part)) : std::cos(part);
  const double s = is_quarter ? std::round(std::sin(part)) : std::sin(part);
  return {c, inverse ? s : -s};
}

Value matrix(DType dtype, int64_t rows, int64_t columns, const std::function<double(int64_t, int64_t)>& element) {
  std::vector<double> elements;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) elements.push_back(element(i, j));
  std::string bytes;
  for (const double each : elements) {
    const uint64_t bits = ir::encode_float(dtype, each);
    bytes.append(reinterpret_cast<const char*>(&bits), static_cast<size_t>(dtype.element_bytes()));
  }
  return relax::constant(ir::tensor_data(dtype, {rows, columns}, std::move(bytes)));
}

// Part `to` of a product with c + j s, of part `from` of a number.
double share(int64_t from, int64_t to, const std::pair<double, double>& turned_by) {
  if (from == to) return turned_by.first;
  return from == 0 ? turned_by.second : -turned_by.second;
}

// A length in two factors that are near each other, the smaller first; 1 and the length where it is short or has none.
// Nothing where term by term, or by more factors, is less work than such products are.
std::optional<std::pair<int64_t, int64_t>> two_factors(int64_t length) {
  constexpr int64_t short_length = 64, longest = 1 << 14, most_by_one = 128;
  if (length < 1 || length > longest) return std::nullopt;
  int64_t factor = 1;
  for (int64_t f = 2; f * f <= length; ++f)
    if (length % f == 0) factor = f;
  if (length <= short_length || factor == 1)
    return length <= most_by_one ? std::optional(std::pair<int64_t, int64_t>(1, length)) : std::nullopt;
  // A product sums as many terms as its factor has.
  return (factor + length / factor) * 4 <= length ? std::optional(std::pair(factor, length / factor)) : std::nullopt;
}

// The transform of rows [M, n, parts], n = first * second: with place a * second + b and bin c + first * d, products
// over a, turns by b * c, and products over b (the division of Cooley and Tukey into two). [M, n, 2], divided by n
// where inverse.
Value transformed_rows(BlockBuilder& b, const Value& x, std::pair<int64_t, int64_t> factors, bool inverse) {
  const auto [first, second] = factors;
  const int64_t length = first * second, parts = *ir::as_int(shape_of(x)[2]);
  const Expr rows = shape_of(x)[0];
  const DType dtype = dtype_of(x);
  const double scale = inverse ? 1.0 / static_cast<double>(length) : 1.0;
  const auto product = [&](const Value& a, const Value& c) {
    return b.call(ops::matmul, {a, c}, ir::make<MatmulAttributes>()).value_or_throw();
  };
  const auto n = [](int64_t value) { return ir::int64(value); };
  if (first == 1) {
    const Value all = matrix(dtype, length * parts, length * 2, [&](int64_t i, int64_t j) {
      return scale * share(i % parts, j % 2, turned(i / parts * (j / 2), length, inverse));
    });
    return reshape(b, product(reshape(b, x, {rows, n(length * parts)}), all), {rows, n(length), n(2)});
  }
  // The parts lie apart: [M, parts * first, second].
  const Value apart = reshape(b, permuted(b, reshape(b, x, {rows, n(length), n(parts)}), {0, 2, 1}),
                              {rows, n(parts * first), n(second)});
  const Value over_a = matrix(dtype, 2 * first, parts * first, [&](int64_t i, int64_t j) {
    return share(j / first, i / first, turned(i % first * (j % first), first, inverse));
  });
  const Value sums = product(over_a, apart);  // [M, part c, b]
  const auto turns = [&](int64_t which) {
    return matrix(dtype, first, second, [&](int64_t c, int64_t place) {
      const auto by = turned(c * place, length, inverse);
      return which == 0 ? by.first : by.second;
    });
  };
  const auto turn_all = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        {rows, n(first), n(2 * second)},
        [&](const Indices& i) {
          const Expr part = ir::floordiv(i[2], n(second)), place = ir::floormod(i[2], n(second));
          const Expr re = in[0]({i[0], i[1], place}), im = in[0]({i[0], i[1] + first, place});
          return part_of_product(part, re, im, in[1]({i[1], place}), in[2]({i[1], place}));
        },
        in, "turned")};
  };
  const Value turned_sums = b.call_te("turned", {sums, turns(0), turns(1)}, turn_all).value_or_throw();
  const Value over_b = matrix(dtype, 2 * second, 2 * second, [&](int64_t i, int64_t j) {
    return scale * share(i / second, j % 2, turned(i % second * (j / 2), second, inverse));
  });
  const Value bins = product(reshape(b, turned_sums, {relax::simplified(rows * first), n(2 * second)}), over_b);
  const Value ordered = permuted(b, reshape(b, bins, {rows, n(first), n(second), n(2)}), {0, 2, 1, 3});
  return reshape(b, ordered, {rows, n(length), n(2)});
}

// The transform along an axis of known length, by products of matrices.
Value fourier_by_products(BlockBuilder& b, const Value& x, const FourierTransform& how,
                          std::pair<int64_t, int64_t> factors) {
  const Shape own = shape_of(x);
  const auto rank = static_cast<int64_t>(own.size());
  const DType dtype = dtype_of(x);
  Axes there, back(own.size());
  for (int64_t d = 0; d < rank - 1; ++d)
    if (d != how.axis) there.push_back(d);
  there.push_back(how.axis);
  there.push_back(rank - 1);
  for (size_t d = 0; d < there.size(); ++d) back[static_cast<size_t>(there[d])] = static_cast<int64_t>(d);
  const Value moved = permuted(b, cast(b, x, relax::accumulation_dtype(dtype)), there);
  Shape shape = shape_of(moved);
  const Shape outer(shape.begin(), shape.end() - 2);
  const Expr length = shape[shape.size() - 2];
  const Value rows = reshape(b, moved, {relax::simplified(ir::product(outer)), length, own.back()});
  Value result = transformed_rows(b, rows, factors, how.inverse);
  shape.back() = ir::int64(2);
  if (how.onesided) {
    Expr& bins = shape[shape.size() - 2];
    bins = relax::simplified(ir::floordiv(length, ir::int64(2)) + 1);
    const auto first = [&](const std::vector<Tensor>& in) {
      return std::vector{te::compute(
          {shape_of(result)[0], bins, ir::int64(2)}, [&](const Indices& i) { return in[0](i); }, in, "first_bins")};
    };
    result = b.call_te("first_bins", {result}, first).value_or_throw();
  }
  return cast(b, permuted(b, reshape(b, result, shape), back), dtype);
}

// The transform along an axis of unknown length that others follow, all of it given: term by term, with the parts
// first, so that what lies side by side behind the axis goes through each step together, by one cosine and sine.
Value fourier_of_rows(BlockBuilder& b, const Value& x, const FourierTransform& how) {
  const Shape own = shape_of(x);
  const auto rank = static_cast<int64_t>(own.size());
  const auto axis = static_cast<size_t>(how.axis) + 1;  // behind the parts
  const DType dtype = dtype_of(x), wide = relax::accumulation_dtype(dtype);
  Axes there{rank - 1}, back;
  for (int64_t d = 0; d + 1 < rank; ++d) there.push_back(d), back.push_back(d + 1);
  back.push_back(0);
  const bool complex_in = is_complex(own);
  const auto sums = [&](const std::vector<Tensor>& in) {
    Shape shape = in[0].shape();
    shape[0] = ir::int64(2);
    if (how.onesided) shape[axis] = relax::simplified(ir::floordiv(how.length, ir::int64(2)) + 1);
    const te::IterVar k = te::reduce_axis(ir::int64(0), how.length, "k");
    const Tensor all = te::compute(
        shape,
        [&](const Indices& i) {
          const Expr at = ir::floormod(k->var * i[axis], ir::max(how.length, ir::int64(1)));
          const Expr is_real = ir::eq(i[0], ir::int64(0)), none = ir::constant(wide, 0);
          const Expr c = in[1]({at}), s = how.inverse ? in[2]({at}) : none - in[2]({at});
          Indices from = i;
          from[axis] = k->var;
          from[0] = ir::int64(0);
          const Expr re = in[0](from) * ir::select(is_real, c, s);
          if (!complex_in) return te::sum(re, {k});
          from[0] = ir::int64(1);
          return te::sum(re + in[0](from) * ir::select(is_real, none - s, c), {k});
        },
        in, "fourier_sums");
    const auto result = [&](const Expr& e) {
      return how.inverse ? ir::div(e, ir::cast(wide, ir::max(how.length, ir::int64(1)))) : e;
    };
    return std::vector{te::topi::map(all, result, "fourier")};
  };
  const auto table = [&](size_t which) {
    const auto turns = [&](const std::vector<Tensor>&) {
      const auto [cosines, sines] = turn_table(how.length, wide);
      return std::vector{which == 0 ? cosines : sines};
    };
    return b.call_te(which == 0 ? "cosines" : "sines", {}, turns).value_or_throw();
  };
  const Value apart = permuted(b, cast(b, x, wide), there);
  const Value made = b.call_te("fourier", {apart, table(0), table(1)}, sums).value_or_throw();
  return cast(b, permuted(b, made, back), dtype);
}

}  // namespace

Value fourier(BlockBuilder& b, const Value& x, const FourierTransform& how) {
  const Shape own = shape_of(x);
  const auto axis = static_cast<size_t>(how.axis);
  const bool complex_in = is_complex(own), gives_real = how.inverse && how.onesided;
  const auto length = ir::as_int(how.length);
  if (!length && !gives_real && axis + 2 < own.size() && relax::same_extent(own[axis], how.length))
    return fourier_of_rows(b, x, how);
  if (const auto factors = length ? two_factors(*length) : std::nullopt;
      factors && !gives_real && relax::same_extent(own[axis], how.length))
    return fourier_by_products(b, x, how, *factors);
  const Expr half = relax::simplified(ir::floordiv(how.length, ir::int64(2)) + 1);
  Transformation work{.axis = axis, .length = how.length, .inverse = how.inverse};
  work.shape = own;
  work.shape[axis] = how.onesided && !how.inverse ? half : how.length;
  work.shape.back() = ir::int64(2);
  // Half a spectrum is read as the whole one, the other half being the conjugates.
  const Expr given = relax::simplified(ir::min(half, own[axis]));
  work.used = gives_real ? how.length : relax::simplified(ir::min(how.length, own[axis]));
  const DType dtype = dtype_of(x), wide = relax::accumulation_dtype(dtype);
  work.wide = wide;
  const auto build = [&](const std::vector<Tensor>& in) {
    work.in = in;
    const Signal plain = [&](const Indices& others, const Expr& place) {
      Indices at = others;
      at[axis] = place;
      at.back() = ir::int64(0);
      const Expr re = ir::cast(wide, in[0](at));
      at.back() = ir::int64(1);
      return Complex{re, complex_in ? ir::cast(wide, in[0](at)) : Expr()};
    };
    const Signal mirrored = [&](const Indices& others, const Expr& place) {
      const Expr is_given = place < half, from = ir::select(is_given, place, how.length - place);
      const Expr inside = from < given;
      const Complex found = plain(others, ir::max(ir::min(from, given - 1), ir::int64(0)));
      const Expr zero = ir::constant(wide, 0);
      Complex result{ir::if_then_else(inside, found.re, zero), Expr()};
      // The first term and the middle one are real, whatever is given.
      const Expr is_alone = ir::logical_or(ir::eq(place, ir::int64(0)), ir::eq(place * 2, how.length));
      if (found.im) {
        const Expr im = ir::if_then_else(inside, found.im, zero);
        result.im = ir::select(is_alone, zero, ir::select(is_given, im, zero - im));
      }
      return result;
    };
    const Tensor sums = transform(gives_real ? mirrored : plain, work);
    Shape shape = work.shape;
    if (gives_real) shape.back() = ir::int64(1);
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          const Expr value = sums(i);
          return ir::cast(dtype, how.inverse ? ir::div(value, ir::cast(wide, how.length)) : value);
        },
        {sums}, "fourier_result")};
  };
  return b.call_te("fourier", {x}, build).value_or_throw();
}

Value short_time_fourier(BlockBuilder& b, const Value& signal, const Value& window, const Expr& length,
                         const Expr& step, bool onesided) {
  const Shape own = shape_of(signal);
  const bool complex_in = is_complex(own);
  const Expr bins = onesided ? relax::simplified(ir::floordiv(length, ir::int64(2)) + 1) : length;
  const Expr frames = relax::non_negative(ir::floordiv(own[1] - length, ir::max(step, ir::int64(1))) + 1);
  const DType dtype = dtype_of(signal), wide = relax::accumulation_dtype(dtype);
  Transformation work{.shape = {own[0], frames, bins, ir::int64(2)}, .axis = 2, .length = length, .wide = wide};
  work.used = window ? relax::simplified(ir::min(length, shape_of(window)[0])) : length;
  std::vector<Value> args{signal};
  if (window) args.push_back(window);
  const auto build = [&](const std::vector<Tensor>& in) {
    work.in = in;
    const Signal framed = [&](const Indices& others, const Expr& place) {
      const auto component = [&](int64_t c) {
        const Expr value = ir::cast(wide, in[0]({others[0], others[1] * step + place, ir::int64(c)}));
        return window ? value * ir::cast(wide, in[1]({place})) : value;
      };
      return Complex{component(0), complex_in ? component(1) : Expr()};
    };
    return std::vector{te::topi::cast(transform(framed, work), dtype, "short_time_fourier_result")};
  };
  return b.call_te("short_time_fourier", std::move(args), build).value_or_throw();
}

}  // namespace lathe::ops::build
