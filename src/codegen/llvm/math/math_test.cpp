// The functions of codegen/emit/math, compiled, against the C library in a wider type: over bit patterns of the whole
// range, near where methods change, and at special values. Errors are in units of the last place of the true result.
#include <gtest/gtest.h>

#include "codegen/llvm/math/math_cases_test.h"

namespace lathe::codegen {
namespace {

using namespace ir;    // NOLINT
using namespace tir;   // NOLINT
using namespace test;  // NOLINT

Kernel binary_kernel(const Intrinsic& op, DType t, int lanes) {
  const Buffer a = buffer("A", {int64(samples)}, t), b = buffer("B", {int64(samples)}, t),
               c = buffer("C", {int64(samples)}, t);
  const Var i = var("i");
  const Expr at = make<Ramp>(Expr(i * lanes), int64(1), int64_t{lanes});
  const Stmt body = make<For>(
      i, int64(0), int64(samples / lanes), ForKind::serial,
      Stmt(make<BufferStore>(c, call(t.with_lanes(lanes), op, {load(a, {at}), load(b, {at})}), std::vector<Expr>{at})));
  return {std::string(op.name), prim_func({a, b, c}, body)};
}

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
std::vector<T> special_values() {
  std::vector<T> values = {0,
                           -T(0),
                           1,
                           -1,
                           std::numeric_limits<T>::infinity(),
                           -std::numeric_limits<T>::infinity(),
                           std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::max(),
                           std::numeric_limits<T>::lowest(),
                           std::numeric_limits<T>::min(),
                           -std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::denorm_min(),
                           -std::numeric_limits<T>::denorm_min(),
                           T(0.5),
                           T(-0.5),
                           2,
                           -2,
                           3,
                           -3,
                           T(1e-5),
                           T(0.625),
                           T(88.7228),
                           T(88.73),
                           T(-87.4),
                           T(-103.9),
                           T(-104.5),
                           T(709.78),
                           T(709.79),
                           T(-745.1),
                           T(-745.2),
                           T(1048576),
                           T(1048575.5),
                           T(1e9),
                           T(1e22)};
  for (const T v : std::vector<T>(values))
    values.push_back(std::nextafter(v, T(10))), values.push_back(std::nextafter(v, T(-10)));
  return values;
}

// One batch of arguments: `round` 0 begins with special values; then patterns of all exponents and, by turns, of
// ordinary sizes.
template <class T>
std::vector<T> arguments(std::mt19937_64& random, int round) {
  std::vector<T> x(samples);
  for (T& v : x) {
    if (round % 2 == 0) {
      v = std::bit_cast<T>(static_cast<Bits<T>>(random()));
    } else {
      const double u = static_cast<double>(random() >> 11) * 0x1p-53,
                   scale = std::array{0.5, 2.0, 8.0, 100.0, 800.0}[random() % 5];
      v = static_cast<T>((2 * u - 1) * scale);
    }
  }
  const std::vector<T> special = special_values<T>();
  if (round == 0) std::copy(special.begin(), special.end(), x.begin());
  return x;
}

template <class T, class Wide>
Worst worst_of(const Intrinsic& op, Wide (*reference)(Wide), int rounds, int lanes,
               const target::Target& target = native()) {
  const auto loaded = test::load({unary_kernel(op, DType::float_(8 * sizeof(T)), lanes)}, target);
  std::mt19937_64 random(7);
  Worst worst;
  for (int round = 0; round < rounds; ++round) {
    std::vector<T> x = arguments<T>(random, round), y(x.size());
    EXPECT_EQ(test::call(loaded, 0, {x.data(), y.data()}), 0);
    for (size_t i = 0; i < x.size(); ++i) {
      const Wide wanted = reference(static_cast<Wide>(x[i]));
      const double error = error_in_ulps<T, Wide>(y[i], wanted);
      if (error > worst.error) worst = {error, double(x[i]), 0, double(y[i]), double(wanted)};
    }
  }
  return worst;
}

template <class T, class Wide>
Worst worst_of(const Intrinsic& op, Wide (*reference)(Wide, Wide), int rounds, int lanes) {
  const auto loaded = test::load({binary_kernel(op, DType::float_(8 * sizeof(T)), lanes)});
  std::mt19937_64 random(11);
  Worst worst;
  const std::vector<T> special = special_values<T>();
  for (int round = 0; round < rounds; ++round) {
    std::vector<T> x = arguments<T>(random, round), y = arguments<T>(random, round + round / 2), z(x.size());
    if (round == 0)
      for (size_t i = 0; i < special.size() * special.size(); ++i)
        x[i] = special[i / special.size()], y[i] = special[i % special.size()];
    EXPECT_EQ(test::call(loaded, 0, {x.data(), y.data(), z.data()}), 0);
    for (size_t i = 0; i < x.size(); ++i) {
      const Wide wanted = reference(static_cast<Wide>(x[i]), static_cast<Wide>(y[i]));
      const double error = error_in_ulps<T, Wide>(z[i], wanted);
      if (error > worst.error) worst = {error, double(x[i]), double(y[i]), double(z[i]), double(wanted)};
    }
  }
  return worst;
}

class MathFunction : public testing::TestWithParam<UnaryCase> {};

TEST_P(MathFunction, float32_is_close_over_the_whole_range) {
  const UnaryCase& c = GetParam();
  // Registers of other widths hold other tables.
  for (const char* name : {"native", "x86-64-v3"}) {
    const target::Target target = target::parse_target(name).value_or_throw();
    const Worst worst = worst_of<float, double>(*c.op, c.single, 16, 16, target);
    EXPECT_LE(worst.error, c.single_limit) << describe(std::string(c.op->name), worst) << " on " << name;
  }
}

TEST_P(MathFunction, float64_is_close_over_the_whole_range) {
  const UnaryCase& c = GetParam();
  const Worst worst = worst_of<double, L>(*c.op, c.wide, 8, 8);
  EXPECT_LE(worst.error, c.wide_limit) << describe(std::string(c.op->name), worst);
}

TEST_P(MathFunction, a_scalar_gives_the_bits_of_a_lane) {
  const UnaryCase& c = GetParam();
  const auto vector = test::load({unary_kernel(*c.op, DType::float32(), 16)}),
             scalar = test::load({unary_kernel(*c.op, DType::float32(), 1)});
  std::mt19937_64 random(3);
  // Of one vector's lanes some are such that another method is called for, and some are not.
  for (const int round : {0, 1}) {
    std::vector<float> x = arguments<float>(random, round), y(x.size()), z(x.size());
    test::call(vector, 0, {x.data(), y.data()});
    test::call(scalar, 0, {x.data(), z.data()});
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_TRUE((std::isnan(y[i]) && std::isnan(z[i])) ||
                  std::bit_cast<uint32_t>(y[i]) == std::bit_cast<uint32_t>(z[i]))
          << c.op->name << " of " << x[i] << ": " << y[i] << " in a vector, " << z[i] << " by itself";
  }
}

INSTANTIATE_TEST_SUITE_P(math, MathFunction, testing::ValuesIn(unary_cases),
                         [](const auto& info) { return std::string(info.param.op->name); });

// What sin does for large arguments would be most of every kernel with a sin in it.
TEST(math, what_is_seldom_met_is_a_function_of_its_own) {
  const target::Target v3 = target::parse_target("x86-64-v3").value_or_throw();
  for (const Intrinsic* op : {&intrinsic::sin, &intrinsic::cos, &intrinsic::exp, &intrinsic::sigmoid}) {
    const Buffer a = buffer("A", {int64(samples)}, DType::float32()),
                 b = buffer("B", {int64(samples)}, DType::float32());
    const Var i = var("i");
    const Expr at = make<Ramp>(Expr(i * 8), int64(1), int64_t{8});
    const Expr twice = ir::call(*op, ir::call(*op, load(a, {at})));
    const Stmt body = make<For>(i, int64(0), int64(samples / 8), ForKind::serial,
                                Stmt(make<BufferStore>(b, twice, std::vector<Expr>{at})));
    const std::string text =
        emit_llvm({{"twice", prim_func({a, b}, body)}}, v3, {.kind = EmitKind::llvm_ir}).value_or_throw();
    const auto count = [&](std::string_view what) {
      int n = 0;
      for (size_t place = text.find(what); place != std::string::npos; place = text.find(what, place + 1)) ++n;
      return n;
    };
    EXPECT_EQ(count("define internal"), 1) << text;
    // It, and where it is called.
    EXPECT_EQ(count("@lathe." + std::string(op->name) + "_apart.float32x8("), 3) << text;
  }
}

// Four vectors look up the table one right behind the other: a scheduler that counts registers puts some forty
// instructions between them.
TEST(math, vectors_that_are_computed_side_by_side_stay_so) {
  const Buffer a = buffer("A", {int64(samples)}, DType::float32()), b = buffer("B", {int64(samples)}, DType::float32());
  const Var i = var("i");
  const Expr at = make<Ramp>(Expr(i * 32), int64(1), int64_t{32});
  const Stmt body =
      make<For>(i, int64(0), int64(samples / 32), ForKind::serial,
                Stmt(make<BufferStore>(b, ir::call(intrinsic::erf, load(a, {at})), std::vector<Expr>{at})));
  const target::Target v3 = target::parse_target("x86-64-v3").value_or_throw();
  const std::string text =
      emit_llvm({{"erf", prim_func({a, b}, body)}}, v3, {.kind = EmitKind::assembly}).value_or_throw();
  const size_t first = text.find("vpermps"), last = text.rfind("vpermps");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_LE(std::count(text.begin() + static_cast<std::ptrdiff_t>(first),
                       text.begin() + static_cast<std::ptrdiff_t>(last), '\n'),
            12)
      << text;
}

// A choice between 0 and exp has a function of its own, which must not show.
TEST(math, exp_above_a_bound_is_exp_there) {
  for (const int lanes : {1, 7, 8, 16, 64})
    for (const auto [low, high] : {std::pair{-104.0, 1e9},
                                   {-86.5, 88.0},
                                   {-86.0, 1e9},
                                   {-80.0, 0.0},
                                   {-80.0, 88.5},
                                   {-0.5, 1e9},
                                   {-0.5, 88.0},
                                   {3.0, 1e9},
                                   {3.0, 3.0}}) {
      const Buffer a = buffer("A", {int64(samples)}, DType::float32()),
                   b = buffer("B", {int64(samples)}, DType::float32());
      const Var i = var("i");
      const Expr at = lanes == 1 ? Expr(i) : Expr(make<Ramp>(Expr(i * lanes), int64(1), int64_t{lanes}));
      const Expr x = load(a, {at});
      const Expr most = constant(x->dtype, high), argument = high < 1e9 ? select(x > most, most, x) : x;
      const Expr kept =
          select(x < constant(x->dtype, low), constant(x->dtype, 0.0), ir::call(intrinsic::exp, argument));
      const Stmt body = make<For>(i, int64(0), int64(samples / lanes), ForKind::serial,
                                  Stmt(make<BufferStore>(b, kept, std::vector<Expr>{at})));
      const auto loaded =
          test::load({{"kept", prim_func({a, b}, body)}, unary_kernel(intrinsic::exp, x->dtype.element(), lanes)});
      std::mt19937_64 random(17);
      for (int round = 0; round < 4; ++round) {
        std::vector<float> arguments_of_round = arguments<float>(random, round);
        std::vector<float> y(arguments_of_round.size()), z(y.size());
        test::call(loaded, 0, {arguments_of_round.data(), y.data()});
        std::vector<float> bounded = arguments_of_round;
        for (float& v : bounded) v = v > static_cast<float>(high) ? static_cast<float>(high) : v;
        test::call(loaded, 1, {bounded.data(), z.data()});
        for (size_t k = 0; k < static_cast<size_t>(samples / lanes * lanes); ++k) {
          const float v = arguments_of_round[k], wanted = v < static_cast<float>(low) ? 0.0F : z[k];
          ASSERT_TRUE(std::isnan(wanted) ? std::isnan(y[k])
                                         : std::bit_cast<uint32_t>(wanted) == std::bit_cast<uint32_t>(y[k]))
              << "exp(" << v << ") above " << low << ", " << lanes << " lanes: " << y[k] << ", not " << wanted;
        }
      }
    }
}

// B[i] = value(A[i]) for a batch of arguments, on each target, by vectors and one by one.
void each_value(const std::function<Expr(const Expr&)>& value,
                const std::function<void(float x, float y, std::string_view where)>& check) {
  for (const char* name : {"native", "x86-64-v3", "x86-64-v2"})
    for (const int lanes : {1, 16}) {
      const Buffer a = buffer("A", {int64(samples)}, DType::float32()),
                   b = buffer("B", {int64(samples)}, DType::float32());
      const Var i = var("i");
      const Expr at = lanes == 1 ? Expr(i) : Expr(make<Ramp>(Expr(i * lanes), int64(1), int64_t{lanes}));
      const Stmt body = make<For>(i, int64(0), int64(samples / lanes), ForKind::serial,
                                  Stmt(make<BufferStore>(b, value(load(a, {at})), std::vector<Expr>{at})));
      const auto loaded = test::load({{"value", prim_func({a, b}, body)}}, target::parse_target(name).value_or_throw());
      std::mt19937_64 random(23);
      for (int round = 0; round < 8; ++round) {
        std::vector<float> x = arguments<float>(random, round), y(x.size());
        test::call(loaded, 0, {x.data(), y.data()});
        for (size_t k = 0; k < y.size(); ++k) check(x[k], y[k], name);
      }
    }
}

// The function of softmax's differences, by itself and chosen above a bound, scaled or not.
TEST(math, exp_nonpositive_is_close_and_vanishes_below_its_bound) {
  const auto check = [](double scale, double low) {
    return [=](float x, float y, std::string_view where) {
      const double power = scale * x;
      if (power > 0) return;  // any number
      ASSERT_EQ(std::isnan(x), std::isnan(y)) << where << " at " << x;
      if (std::isnan(x)) return;
      if (power < low - 1e-5) {
        if (low == -80) ASSERT_EQ(y, 0) << where << " at " << x;
      } else if (power > low + 1e-5) {
        const double growth = where == "x86-64-v2" ? 1.3 : 0.26;  // with and without one rounding for two operations
        ASSERT_LE((error_in_ulps<float, double>(y, std::exp(power))), 1.8 - growth * power) << where << " at " << x;
      }
    };
  };
  const auto of = [](const Expr& x) { return ir::call(intrinsic::exp_nonpositive, x); };
  const auto chosen = [&](const Expr& x) {
    return select(x < constant(x->dtype, -80.0), constant(x->dtype, 0.0), of(x));
  };
  each_value(of, check(1, -87));
  each_value(chosen, check(1, -80));
  each_value([&](const Expr& x) { return chosen(x * constant(x->dtype, 0.125)); }, check(0.125, -80));
  each_value([&](const Expr& x) { return chosen(ir::div(x, constant(x->dtype, 0.75))); }, check(1 / 0.75, -80));
}

// So have some forms of two operations.
TEST(math, silu_is_close_and_special_cases_hold) {
  const auto check = [](float x, float y, std::string_view where) {
    const double v = x, wanted = v == -std::numeric_limits<double>::infinity() ? 0 : v * logistic<double>(v);
    if (std::fabs(y - wanted) <= 6e-37) return;
    ASSERT_LE((error_in_ulps<float, double>(y, wanted)), 3.2) << where << " at " << x << ": " << y;
  };
  each_value([](const Expr& x) { return ir::call(intrinsic::sigmoid, x) * x; }, check);
  each_value([](const Expr& x) { return x * ir::call(intrinsic::sigmoid, x); }, check);
}

Expr softplus(const Expr& x) {
  const Expr below = constant(x->dtype, -1.0) * ir::call(intrinsic::abs, x);
  return ir::max(x, constant(x->dtype, 0.0)) + ir::call(intrinsic::log1p, ir::call(intrinsic::exp, below));
}

double true_softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

TEST(math, softplus_is_close_and_special_cases_hold) {
  const auto check = [](float x, float y, std::string_view where) {
    ASSERT_EQ(std::isnan(x), std::isnan(y)) << where << " at " << x;
    const double wanted = true_softplus(x);
    if (std::isnan(x) || std::fabs(y - wanted) <= 1e-37) return;
    ASSERT_LE((error_in_ulps<float, double>(y, wanted)), 3.2) << where << " at " << x << ": " << y;
  };
  each_value(softplus, check);
  const auto the_other_way_round = [](const Expr& x) {
    const Expr whole = softplus(x);
    const auto* sum = whole.as<Add>();
    return sum->b + sum->a;
  };
  each_value(the_other_way_round, check);
}

TEST(math, mish_is_close_and_special_cases_hold) {
  const auto check = [](float x, float y, std::string_view where) {
    ASSERT_EQ(std::isnan(x), std::isnan(y)) << where << " at " << x;
    const double v = x, wanted = v == -std::numeric_limits<double>::infinity() ? 0 : v * std::tanh(true_softplus(v));
    if (std::isnan(x) || std::fabs(y - wanted) <= 4e-36) return;
    ASSERT_LE((error_in_ulps<float, double>(y, wanted)), 5.0) << where << " at " << x << ": " << y;
  };
  each_value([](const Expr& x) { return x * ir::call(intrinsic::tanh, softplus(x)); }, check);
  each_value([](const Expr& x) { return ir::call(intrinsic::tanh, softplus(x)) * x; }, check);
}

TEST(math, one_plus_erf_is_close_and_special_cases_hold) {
  const auto check = [](float x, float y, std::string_view where) {
    const double wanted = std::erfc(-static_cast<double>(x));
    ASSERT_EQ(std::isnan(x), std::isnan(y)) << where << " at " << x;
    if (std::isnan(x)) return;
    ASSERT_LE(std::fabs(y - wanted), 1.6e-7) << where << " at " << x << ": " << y;
    if (x <= -4.17) ASSERT_EQ(y, 0) << where << " at " << x;
  };
  const auto one = [](const Expr& x) { return constant(x->dtype, 1.0); };
  each_value([&](const Expr& x) { return ir::call(intrinsic::erf, x) + one(x); }, check);
  each_value([&](const Expr& x) { return one(x) + ir::call(intrinsic::erf, x); }, check);
  // As in GELU: what is divided by a constant is multiplied.
  const auto check_scaled = [](float x, float y, std::string_view where) {
    const double wanted = std::erfc(-static_cast<double>(x) / 1.4142135381698608);
    ASSERT_EQ(std::isnan(x), std::isnan(y)) << where << " at " << x;
    if (!std::isnan(x)) ASSERT_LE(std::fabs(y - wanted), 1.6e-7) << where << " at " << x << ": " << y;
  };
  each_value(
      [&](const Expr& x) {
        return ir::call(intrinsic::erf, ir::div(x, constant(x->dtype, 1.4142135381698608))) + one(x);
      },
      check_scaled);
}

TEST(math, gelu_is_close_and_special_cases_hold) {
  const auto check = [](float x, float y, std::string_view where) {
    const double wanted = x * (0.5 * std::erfc(-static_cast<double>(x) / 1.4142135381698608));
    ASSERT_EQ(std::isnan(wanted), std::isnan(y)) << where << " at " << x;
    if (std::isnan(wanted) || wanted == y) return;
    if (x >= 0x1p127f && std::isinf(y)) return;  // twice as much, as it is written
    if (x <= -6) ASSERT_EQ(y, 0) << where << " at " << x;
    ASSERT_LE(std::fabs(y - wanted), 1e-7 * std::fabs(x) + 1.2e-7 * std::fabs(wanted) + 2e-45)
        << where << " at " << x << ": " << y;
  };
  const auto number = [](const Expr& x, double c) { return constant(x->dtype, c); };
  const auto cumulative = [&](const Expr& x) {
    return ir::call(intrinsic::erf, ir::div(x, number(x, 1.4142135381698608))) + number(x, 1.0);
  };
  each_value([&](const Expr& x) { return x * cumulative(x) * number(x, 0.5); }, check);
  each_value([&](const Expr& x) { return number(x, 0.5) * (cumulative(x) * x); }, check);
  each_value([&](const Expr& x) { return number(x, 0.5) * x * cumulative(x); }, check);
}

TEST(math, one_plus_tanh_is_close_and_special_cases_hold) {
  const auto check = [](float x, float y, std::string_view where) {
    const double wanted = 2 * logistic<double>(2 * static_cast<double>(x));
    if (std::fabs(y - wanted) <= 2e-38) return;
    ASSERT_LE((error_in_ulps<float, double>(y, wanted)), 3.2) << where << " at " << x << ": " << y;
  };
  each_value([](const Expr& x) { return ir::call(intrinsic::tanh, x) + constant(x->dtype, 1.0); }, check);
}

TEST(math, pow_is_close_and_special_cases_hold) {
  const Worst single =
      worst_of<float, double>(intrinsic::pow, static_cast<double (*)(double, double)>(std::pow), 12, 16);
  EXPECT_LE(single.error, 0.51) << describe("pow", single);
  const Worst wide = worst_of<double, L>(intrinsic::pow, powl, 6, 8);
  EXPECT_LE(wide.error, 1.25) << describe("pow", wide);
}

TEST(math, atan2_is_close_and_special_cases_hold) {
  const Worst single =
      worst_of<float, double>(intrinsic::atan2, static_cast<double (*)(double, double)>(std::atan2), 6, 16);
  EXPECT_LE(single.error, 0.51) << describe("atan2", single);
  const Worst wide = worst_of<double, L>(intrinsic::atan2, atan2l, 6, 8);
  EXPECT_LE(wide.error, 2.5) << describe("atan2", wide);
}

TEST(math, hypot_is_close_and_special_cases_hold) {
  const Worst single =
      worst_of<float, double>(intrinsic::hypot, static_cast<double (*)(double, double)>(std::hypot), 6, 16);
  EXPECT_LE(single.error, 0.51) << describe("hypot", single);
  const Worst wide = worst_of<double, L>(intrinsic::hypot, hypotl, 6, 8);
  EXPECT_LE(wide.error, 1.25) << describe("hypot", wide);
}

// Exact functions: every bit of the result, over all bit patterns of a narrow type's and over many of the wide ones'.
template <class T>
void expect_exact(const Intrinsic& op, T (*reference)(T, T)) {
  const DType t = DType::float_(8 * sizeof(T));
  const auto loaded = test::load({binary_kernel(op, t, 8)});
  std::mt19937_64 random(5);
  const std::vector<T> special = special_values<T>();
  for (int round = 0; round < 8; ++round) {
    std::vector<T> x = arguments<T>(random, round), y = arguments<T>(random, round / 2), z(x.size());
    if (round == 0)
      for (size_t i = 0; i < special.size() * special.size(); ++i)
        x[i] = special[i / special.size()], y[i] = special[i % special.size()];
    EXPECT_EQ(test::call(loaded, 0, {x.data(), y.data(), z.data()}), 0);
    for (size_t i = 0; i < x.size(); ++i) {
      const T wanted = reference(x[i], y[i]);
      ASSERT_TRUE(std::isnan(wanted) ? std::isnan(z[i])
                                     : std::bit_cast<Bits<T>>(wanted) == std::bit_cast<Bits<T>>(z[i]))
          << op.name << "(" << x[i] << ", " << y[i] << ") is " << wanted << ", not " << z[i];
    }
  }
}

TEST(math, nextafter_is_exact) {
  expect_exact<float>(intrinsic::nextafter, static_cast<float (*)(float, float)>(std::nextafter));
  expect_exact<double>(intrinsic::nextafter, static_cast<double (*)(double, double)>(std::nextafter));
}

}  // namespace
}  // namespace lathe::codegen
