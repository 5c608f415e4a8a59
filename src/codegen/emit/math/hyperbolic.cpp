// Hyperbolic functions and erf. Odd ones are computed on the magnitude and take the argument's sign, -0 included.
#include <array>

#include "codegen/emit/math/building.h"
#include "codegen/emit/math/expand.h"

namespace lathe::codegen::math {

// With h = (exp(2 |x|) - 1) / 2 the result is g = h / (1 + h); while that is small h - h g loses less. From 9.02 on it
// is 1. Asking h how small it is leaves no other value alive beside it.
Expr tanh_single(Terms& t, const Expr& x) {
  const Expr bounded = t(at_most(t(magnitude(x)), 9.5));
  const Expr h = t(half_expm1_of_twice_single(t, bounded));
  const Expr g = t(div(h, h + number(x, 1.0)));
  return positive_with_sign_of(t(select(h < number(x, 0.625), h - h * g, g)), x);
}

// 2 / (1 + exp(-2x)).
Expr one_plus_tanh_single(Terms& t, const Expr& x) {
  return div(number(x, 2.0), one_plus_exp_of_negative(t, t(at_least(t(x + x), -88.0))));
}

Expr tanh_double(Terms& t, const Expr& x) {
  const Expr bounded = t(at_most(t(magnitude(x)), 20.0));
  const Expr e = t(expm1_double(t, t(bounded + bounded)));
  return with_sign_of(div(e, e + number(x, 2.0)), x);
}

Expr sinh_double(Terms& t, const Expr& x) {
  const Expr size = t(magnitude(x));
  const Expr e = t(expm1_double(t, size));
  const Expr small = number(x, 0.5) * (e + div(e, e + number(x, 1.0)));
  // exp(x) overflows before sinh does.
  const Expr root = t(exp_double(t, t(number(x, 0.5) * size)));
  const Expr large = number(x, 0.5) * root * root;
  return with_sign_of(select(size < number(x, 709.0), small, large), x);
}

Expr cosh_double(Terms& t, const Expr& x) {
  const Expr size = t(magnitude(x));
  const Expr root = t(exp_double(t, t(number(x, 0.5) * size)));
  const Expr e = t(exp_double(t, size));
  const Expr small = number(x, 0.5) * e + div(number(x, 0.5), e);
  return select(size < number(x, 709.0), small, number(x, 0.5) * root * root);
}

// log(|x| + sqrt(x^2 + 1)), by log1p so that small x keeps its digits.
Expr asinh_double(Terms& t, const Expr& x) {
  const Expr size = t(magnitude(x));
  const Expr big = t(size > number(x, 0x1p28));
  const Expr bounded = t(select(big, number(x, 1.0), size));
  const Expr square = t(bounded * bounded);
  const Expr inner = log1p_double(t, t(bounded + div(square, number(x, 1.0) + square_root(number(x, 1.0) + square))));
  const Expr far = log_double(t, t(select(big, size, number(x, 1.0)))) + number(x, 0.69314718055994529);
  const Expr y = t(select(big, far, inner));
  return with_sign_of(t(select(is_nan(x), x, y)), x);
}

// NaN below 1.
Expr acosh_double(Terms& t, const Expr& x) {
  const Expr big = t(x > number(x, 0x1p28));
  const Expr above = t(select(big, number(x, 1.0), x - number(x, 1.0)));
  const Expr inner = log1p_double(t, t(above + square_root(number(x, 2.0) * above + above * above)));
  const Expr far = log_double(t, t(select(big, x, number(x, 1.0)))) + number(x, 0.69314718055994529);
  return select(x < number(x, 1.0), number(x, not_a_number()), t(select(big, far, inner)));
}

// NaN beyond 1, infinite at 1.
Expr atanh_double(Terms& t, const Expr& x) {
  const Expr size = t(magnitude(x));
  const Expr y = number(x, 0.5) * log1p_double(t, t(div(size + size, number(x, 1.0) - size)));
  return with_sign_of(select(size > number(x, 1.0), number(x, not_a_number()), y), x);
}

// Below 1/2 x + x P(x^2), 2^-29.3; above 1 - exp(L(x)), L minimax for the error of erfc, 2^-27.7; from 4 on the result
// is 1.
Expr erf_single(Terms& t, const Expr& x) {
  const Expr size = t(magnitude(x));
  const Expr z = t(size * size);
  const Expr small = t(size + size * polynomial(z, {0.12837916612625122, -0.37612611055374146, 0.11282850801944733,
                                                    -0.026758259162306786, 0.004719160031527281}));
  const Expr bounded = t(at_most(size, 4.0));
  const Expr log_rest =
      t(polynomial(bounded, {3.470807132543996e-05, -1.1287081241607666, -0.6353000998497009, -0.10571488738059998,
                             0.02315184287726879, -0.0032919368240982294, 0.00022300843556877226}));
  const Expr large = number(x, 1.0) - exp_single_inside(t, log_rest);
  return with_sign_of(select(size < number(x, 0.5), small, large), x);
}

namespace {

// 1 + erf(x) from -4 to 3.89 in sixteen pieces 0.52 wide, around 0.52 k: coefficients of a polynomial in the distance
// from there, a row for each power, an entry for the low four bits of k. Minimax, 2^-24.8 at most.
constexpr double width_of_piece = 0.52;
constexpr std::array<std::array<double, 16>, 7> one_plus_erf_pieces{{
    {1.0, 1.53789866, 1.85864997, 1.97262812, 1.99673438, 1.99976397, 1.99998975, 1.99999976, 4.0254422e-09,
     2.63641169e-07, 1.0225609e-05, 0.000236034568, 0.00326559297, 0.0273718834, 0.141350061, 0.4621014},
    {1.12837827, 0.861037254, 0.38258037, 0.0989817828, 0.0149114942, 0.00130807259, 6.68220309e-05, 1.98816815e-06,
     3.4463465e-08, 1.98816815e-06, 6.68220309e-05, 0.00130807259, 0.0149114942, 0.0989817828, 0.38258037, 0.861037254},
    {0.0, -0.447738141, -0.397883743, -0.154412046, -0.0310159009, -0.00340092182, -0.000208469253, -7.2355183e-06,
     1.43305797e-07, 7.2355183e-06, 0.000208469253, 0.00340092182, 0.0310159009, 0.154412046, 0.397883743, 0.447738141},
    {-0.376021057, -0.131822616, 0.148285389, 0.127616271, 0.0380480997, 0.00545632467, 0.000410218141, 1.67685539e-05,
     3.79703351e-07, 1.67685539e-05, 0.000410218141, 0.00545632467, 0.0380480997, 0.127616271, 0.148285389,
     -0.131822616},
    {0.0, 0.183443874, 0.0555301495, -0.0480418541, -0.0292321872, -0.00596357137, -0.000571335608, -2.81852354e-05,
     7.45365867e-07, 2.81852335e-05, 0.000571335608, 0.00596357137, 0.0292321872, 0.0480418541, -0.0555301495,
     -0.183443874},
    {0.109707989, 0.00216617715, -0.0659980103, -0.0089470474, 0.0126155987, 0.00464143977, 0.000623039261,
     3.97372678e-05, 1.30963122e-06, 3.97372642e-05, 0.000623039261, 0.00464143977, 0.0126155987, -0.0089470474,
     -0.0659980103, 0.00216617715},
    {0.0, -0.0477360189, 0.00783410482, 0.016900247, -0.000928066554, -0.00235315808, -0.000478781032, -3.92620641e-05,
     1.55783664e-06, 3.92621005e-05, 0.000478781032, 0.00235315808, 0.000928066613, -0.016900247, -0.00783410482,
     0.0477360189},
}};

Expr entry_of(const Expr& index, const std::array<double, 16>& entries) {
  std::vector<Expr> args{index};
  for (const double entry : entries)
    args.push_back(ir::constant(DType::int_(32), int64_t{std::bit_cast<int32_t>(static_cast<float>(entry))}));
  return from_bits(call(index->dtype, math::lookup, std::move(args)));
}

// The polynomials of height (1 + erf(scale x)) in the distance from k `width`, which is about 0.52 k / scale: those of
// above, written out around what that is exactly. From the middle of the lowest piece down it is to be zero.
using Pieces = std::array<std::array<double, 16>, one_plus_erf_pieces.size()>;
Pieces pieces_of(double width, double scale, double height) {
  Pieces made{};
  for (int entry = 0; entry < 16; ++entry) {
    const double off = (entry < 8 ? entry : entry - 16) * (width * scale - width_of_piece);
    std::array<double, one_plus_erf_pieces.size()> c{};
    for (size_t p = one_plus_erf_pieces.size(); p-- > 0;) {  // Horner, with x + off in place of x
      for (size_t i = c.size(); i-- > 0;) c[i] = c[i] * off + (i > 0 ? c[i - 1] : one_plus_erf_pieces[p][entry]);
    }
    for (size_t p = 0; p < c.size(); ++p) made[p][entry] = height * c[p] * std::pow(scale, static_cast<double>(p));
  }
  made[0][8] = 0;
  return made;
}

// Zero up to -4.16, twice the height from 3.89 on. A NaN stays, by the distance.
Expr one_plus_erf_by_table(Terms& t, const Expr& x, double scale, double height) {
  const double width = static_cast<float>(width_of_piece / scale);
  const Pieces pieces = pieces_of(width, scale, height);
  const Expr bounded = t(at_most(t(at_least(x, -8 * width)), 3.89 / scale));
  const Expr magic = number(x, 12582912.0);  // 1.5 * 2^23: sums with it have the nearest integer in the low bits
  const Expr shifted = t(bounded * number(x, 1 / width) + magic);
  const Expr distance = t(bounded - t(shifted - magic) * number(x, width));
  const Expr piece = t(bits_of(shifted));
  Expr sum = entry_of(piece, pieces.back());
  for (size_t power = pieces.size() - 1; power-- > 0;) sum = sum * distance + entry_of(piece, pieces[power]);
  return sum;
}

}  // namespace

// Where a register holds no table of sixteen: erfc(|x|) = exp(|x| P(|x|)), P minimax for the error of erfc, 2^-25.8;
// from 4 on it is nothing beside 1. Below zero that is the sum, above what it lacks of 2.
Expr one_plus_erf_single(Terms& t, const Expr& given, double scale, double height) {
  if (t.native().table_entries >= 16) return one_plus_erf_by_table(t, given, scale, height);
  const Expr x = scale == 1 ? given : t(given * number(given, scale));
  const Expr size = t(magnitude(x));
  const Expr log_rest = t(size * polynomial(size, {-1.128380298614502, -0.6365968585014343, -0.10292477905750275,
                                                   0.019597705453634262, -0.000555639446247369, -0.001018965500406921,
                                                   0.00030398275703191757, -3.076364009757526e-05}));
  const Expr is_near = make<Not>(size >= number(x, 4.0));
  const Expr rest = t(select(is_near, exp_single_inside(t, log_rest), number(x, 0.0)));
  const Expr sum = select(x < number(x, 0.0), rest, number(x, 2.0) - rest);
  return height == 1 ? sum : sum * number(x, height);
}

// Below 1 x + x P(x^2), 2^-74.7; above 1 - exp(-x^2) G((x - 2.5) / (x + 2.5)), G = exp(x^2) erfc(x), 2^-70; from 6
// on 1.
Expr erf_double(Terms& t, const Expr& x) {
  const Expr size = t(magnitude(x));
  const Expr inside = t(at_most(size, 1.0));
  const Expr z = t(inside * inside);
  const Expr small =
      t(inside + inside * polynomial(z, {0.12837916709551256, -0.37612638903183754, 0.11283791670955126,
                                         -0.026866170645131218, 0.0052239776254416823, -0.00085483270234036667,
                                         0.00012055332978913996, -1.4925650238180372e-05, 1.6462110811718086e-06,
                                         -1.636576916105672e-07, 1.4806033344240927e-08, -1.2277785985159942e-09,
                                         9.3240033109834999e-11, -6.1976315067600485e-12, 2.8079911651748105e-13}));
  const Expr bounded = t(at_most(size, 6.0));
  const Expr u = t(div(bounded - number(x, 2.5), bounded + number(x, 2.5)));
  const Expr g =
      polynomial(u, {0.21080636406114359, -0.37173673394897344, 0.25171319321744684, -0.12503305237880674,
                     0.039922539076548642, -0.0039937011589072655, -0.0026423659929556442, 0.00087591478459569288,
                     0.00022837699943572144, -0.00012887772010187606, -3.4111207706927435e-05, 1.8986048541198209e-05,
                     8.5111287338470538e-06, -9.4427882458173318e-07, -9.3027743271767618e-07});
  const Expr rest = t(exp_sum(t, t(negated(bounded * bounded)), number(x, 0.0)));
  const Expr large = number(x, 1.0) - g * rest;
  return with_sign_of(select(size < number(x, 1.0), small, large), x);
}

}  // namespace lathe::codegen::math
