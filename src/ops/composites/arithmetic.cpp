// Arithmetic that is made of arithmetic.
#include "ops/composites/operands.h"

namespace lathe::ops::composites {

namespace {

struct DropoutAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "DropoutAttributes";
  double rate = 0.5;
  static constexpr auto fields() { return std::tuple{field("rate", &DropoutAttributes::rate)}; }
};

Value expand_square(const Expansion& e) { return e.call(ops::multiply, {e.tensor(0), e.tensor(0)}); }

// Toward zero. Integers are as they are.
Value expand_trunc(const Expansion& e) {
  const Value& x = e.tensor(0);
  if (!build::dtype_of(x).is_floating()) return x;
  const Value below = e.call(ops::floor, {x}), above = e.call(ops::ceil, {x});
  const Value is_negative = e.call(ops::less, {x, build::scalar(build::dtype_of(x), 0)});
  return e.call(ops::where, {is_negative, above, below});
}

// f of two tensors of one dtype, computed in float32 where that is a narrower float.
Value of_two(const Expansion& e, DTypeSet set, Expr (*f)(const Expr& a, const Expr& b), const std::string& name) {
  const Value &a = e.tensor(0), &b = e.tensor(1);
  expect_dtype(e, 0, "x1", set);
  expect_one_dtype(e, {a, b});
  const DType dtype = build::dtype_of(a), wide = relax::accumulation_dtype(dtype);
  return build::elementwise(
      e.b, {a, b}, broadcast(e, a, b),
      [&](const Indices& x, const Indices&) { return ir::cast(dtype, f(ir::cast(wide, x[0]), ir::cast(wide, x[1]))); },
      name);
}

// Of floats: what is left of the division is exact, so that (a - rest) / b is next to the whole quotient.
Expr floor_of_quotient(const Expr& a, const Expr& b) {
  if (!a->dtype.is_floating()) return ir::floordiv(a, b);
  const Expr zero = ir::constant(a->dtype, 0), rest = ir::mod(a, b);
  const Expr whole = ir::call(ir::intrinsic::nearbyint, ir::div(a - rest, b));
  const Expr is_above = ir::logical_and(ir::ne(rest, zero), ir::ne(rest < zero, b < zero));
  return ir::select(ir::eq(b, zero), ir::div(a, b), ir::select(is_above, whole - 1, whole));
}

// log(exp(a) + exp(b)) = max + log(1 + exp(-|a - b|)); equal infinities have no difference.
Expr log_of_added(const Expr& a, const Expr& b) {
  const Expr difference = ir::select(ir::eq(a, b), ir::constant(a->dtype, 0), ir::call(ir::intrinsic::abs, a - b));
  const Expr smaller = ir::call(ir::intrinsic::exp, ir::constant(a->dtype, -1) * difference);
  return ir::max(a, b) + ir::call(ir::intrinsic::log1p, smaller);
}

Value expand_floor_divide(const Expansion& e) {
  return of_two(e, DTypeSet::numeric, floor_of_quotient, "floor_divide");
}
Value expand_log_add_exp(const Expansion& e) { return of_two(e, DTypeSet::floating, log_of_added, "log_add_exp"); }

Value expand_fma(const Expansion& e) {
  expect_dtype(e, 0, "x1", DTypeSet::numeric);
  expect_one_dtype(e, {e.tensor(0), e.tensor(1), e.tensor(2)});
  const DType dtype = build::dtype_of(e.tensor(0)), wide = relax::accumulation_dtype(dtype);
  const auto x = [&](size_t i) { return e.cast(e.tensor(i), wide); };
  return e.cast(e.call(ops::add, {e.call(ops::multiply, {x(0), x(1)}), x(2)}), dtype);
}

Value expand_relu6(const Expansion& e) {
  expect_dtype(e, 0, "x", DTypeSet::numeric);
  return e.call(ops::minimum, {e.call(ops::relu, {e.tensor(0)}), build::scalar(build::dtype_of(e.tensor(0)), 6)});
}

// As when a model is used: nothing is dropped.
Value expand_dropout(const Expansion& e) {
  expect_dtype(e, 0, "data", DTypeSet::numeric);
  const double rate = e.attrs<DropoutAttributes>().rate;
  if (!(rate >= 0 && rate <= 1))
    e.refuse(codes::wrong_attribute, "the rate is " + std::to_string(rate) + ", but a share is from 0 to 1");
  const Value& x = e.tensor(0);
  const Value one = build::scalar(build::dtype_of(x), 1);
  return e.tuple({x, e.call(ops::full, {ir::make<relax::ShapeExpr>(build::shape_of(x)), one})});
}

}  // namespace

const Operator square = composite("square", {{"x"}}, nullptr, expand_square, "numpy.square(x)");
const Operator trunc = composite("trunc", {{"x"}}, nullptr, expand_trunc, "numpy.trunc(x)");
const Operator floor_divide =
    composite("floor_divide", {{"x1"}, {"x2"}}, nullptr, expand_floor_divide, "numpy.floor_divide(x1, x2)");
const Operator log_add_exp =
    composite("log_add_exp", {{"x1"}, {"x2"}}, nullptr, expand_log_add_exp, "numpy.logaddexp(x1, x2)");
const Operator ewise_fma = composite("ewise_fma", {{"x1"}, {"x2"}, {"x3"}}, nullptr, expand_fma, "x1 * x2 + x3");
const Operator relu6 = composite("nn.relu6", {{"x"}}, nullptr, expand_relu6, "numpy.clip(x, 0, 6)");
const Operator dropout = composite("nn.dropout", {{"data"}}, relax::attributes_of<DropoutAttributes>(), expand_dropout,
                                   "(data, numpy.ones_like(data))");

}  // namespace lathe::ops::composites
