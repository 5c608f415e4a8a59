// Hyperbolic functions and erf. Odd ones are computed on the magnitude and take the argument's sign, -0 included.
#include "codegen/emit/math/building.h"

namespace lathe::codegen::math {

// Below 0.625 x + x^3 P(x^2), 2^-32.6; above 1 - 2 / (exp(2x) + 1); from 9.02 on the result is 1.
Expr tanh_single(Terms& t, const Expr& x) {
  const Expr size = t(magnitude(x));
  const Expr z = t(size * size);
  const Expr small =
      t(size * z *
            polynomial(z, {-0.333333313, 0.133332118, -0.0539474599, 0.0217041597, -0.00818526931, 0.00214967271}) +
        size);
  const Expr bounded = t(at_most(size, 9.5));
  const Expr e = t(exp_single_inside(t, t(bounded + bounded)));
  const Expr large = number(x, 1.0) - div(number(x, 2.0), e + number(x, 1.0));
  return with_sign_of(select(size < number(x, 0.625), small, large), x);
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

// Below 1 x + x P(x^2), 2^-34.8; above 1 - exp(L(x)), L = log(erfc), 2^-35.9; from 4 on the result is 1.
Expr erf_single(Terms& t, const Expr& x) {
  const Expr size = t(magnitude(x));
  const Expr z = t(size * size);
  const Expr small = t(size + size * polynomial(z, {0.128379166, -0.376126379, 0.112837829, -0.0268654451,
                                                    0.00522107491, -0.000848471129, 0.00011270542, -9.68012864e-06}));
  const Expr bounded = t(at_most(size, 4.0));
  const Expr log_rest = t(polynomial(bounded, {0.000204366937, -1.1296612, -0.633039534, -0.108639114, 0.0253736489,
                                               -0.00428242981, 0.000463802542, -2.53173075e-05, 2.51510443e-07}));
  const Expr large = number(x, 1.0) - exp_single_inside(t, log_rest);
  return with_sign_of(select(size < number(x, 1.0), small, large), x);
}

// erfc(|x|) = exp(|x| P(|x|)), P minimax for the error of erfc, 2^-28.7; from 4 on it is nothing beside 1. Below zero
// that is the sum, above what it lacks of 2.
Expr one_plus_erf_single(Terms& t, const Expr& x) {
  const Expr size = t(magnitude(x));
  const Expr log_rest =
      t(size * polynomial(size, {-1.1283793449401855, -0.6366161108016968, -0.10279920697212219, 0.019217142835259438,
                                 5.878126103198156e-05, -0.0015767598524689674, 0.0005879505770280957,
                                 -0.00010602662223391235, 8.043819434533361e-06}));
  const Expr is_near = make<Not>(size >= number(x, 4.0));
  const Expr rest = t(select(is_near, exp_single_inside(t, log_rest), number(x, 0.0)));
  return select(x < number(x, 0.0), rest, number(x, 2.0) - rest);
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
