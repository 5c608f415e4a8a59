#include "tir/differentiate/derivative.h"

#include <numbers>

#include "ir/match.h"
#include "ir/structural.h"
#include "ir/visit.h"
#include "support/mutation.h"
#include "tir/codes.h"

namespace lathe::tir {

LATHE_FAULT(gradient_quotient_sign, "tir_test graph_test", "the divisor's derivative has the wrong sign");

namespace {

using Args = std::vector<Expr>;

Expr number_like(const Expr& x, double value) { return ir::constant(x->dtype, value); }
Expr applied(const Intrinsic& f, const Expr& x) { return ir::call(f, x); }
Expr square(const Expr& x) { return x * x; }
Expr one_like(const Expr& x) { return number_like(x, 1); }
Expr minus(const Expr& x) { return number_like(x, -1) * x; }

// What the adjoint g of f(x) adds to that of x.
using OfOne = Expr (*)(const Expr& x, const Expr& g);
struct UnaryRow {
  const Intrinsic& f;
  OfOne adjoint;
};

Expr slope_of_abs(const Expr& x, const Expr& g) {
  const Expr zero = number_like(x, 0);
  return ir::select(x > zero, g, ir::select(x < zero, minus(g), zero));
}

const UnaryRow unary_rows[] = {
    {intrinsic::abs, slope_of_abs},
    {intrinsic::acos,
     [](const Expr& x, const Expr& g) { return minus(ir::div(g, applied(intrinsic::sqrt, one_like(x) - square(x)))); }},
    {intrinsic::acosh,
     [](const Expr& x, const Expr& g) { return ir::div(g, applied(intrinsic::sqrt, square(x) - one_like(x))); }},
    {intrinsic::asin,
     [](const Expr& x, const Expr& g) { return ir::div(g, applied(intrinsic::sqrt, one_like(x) - square(x))); }},
    {intrinsic::asinh,
     [](const Expr& x, const Expr& g) { return ir::div(g, applied(intrinsic::sqrt, square(x) + one_like(x))); }},
    {intrinsic::atan, [](const Expr& x, const Expr& g) { return ir::div(g, one_like(x) + square(x)); }},
    {intrinsic::atanh, [](const Expr& x, const Expr& g) { return ir::div(g, one_like(x) - square(x)); }},
    {intrinsic::cos, [](const Expr& x, const Expr& g) { return minus(g * applied(intrinsic::sin, x)); }},
    {intrinsic::cosh, [](const Expr& x, const Expr& g) { return g * applied(intrinsic::sinh, x); }},
    {intrinsic::erf,
     [](const Expr& x, const Expr& g) {
       return g * number_like(x, 2 * std::numbers::inv_sqrtpi) * applied(intrinsic::exp, minus(square(x)));
     }},
    {intrinsic::exp, [](const Expr& x, const Expr& g) { return g * applied(intrinsic::exp, x); }},
    {intrinsic::exp_nonpositive,
     [](const Expr& x, const Expr& g) { return g * applied(intrinsic::exp_nonpositive, x); }},
    {intrinsic::exp2,
     [](const Expr& x, const Expr& g) { return g * number_like(x, std::numbers::ln2) * applied(intrinsic::exp2, x); }},
    {intrinsic::exp10,
     [](const Expr& x, const Expr& g) {
       return g * number_like(x, std::numbers::ln10) * applied(intrinsic::exp10, x);
     }},
    {intrinsic::expm1, [](const Expr& x, const Expr& g) { return g * applied(intrinsic::exp, x); }},
    {intrinsic::likely, [](const Expr&, const Expr& g) { return g; }},
    {intrinsic::log, [](const Expr& x, const Expr& g) { return ir::div(g, x); }},
    {intrinsic::log10, [](const Expr& x, const Expr& g) { return ir::div(g, x * number_like(x, std::numbers::ln10)); }},
    {intrinsic::log1p, [](const Expr& x, const Expr& g) { return ir::div(g, one_like(x) + x); }},
    {intrinsic::log2, [](const Expr& x, const Expr& g) { return ir::div(g, x * number_like(x, std::numbers::ln2)); }},
    {intrinsic::rsqrt,
     [](const Expr& x, const Expr& g) { return ir::div(number_like(x, -0.5) * g * applied(intrinsic::rsqrt, x), x); }},
    {intrinsic::sigmoid,
     [](const Expr& x, const Expr& g) {
       return g * applied(intrinsic::sigmoid, x) * applied(intrinsic::sigmoid, minus(x));
     }},
    {intrinsic::sin, [](const Expr& x, const Expr& g) { return g * applied(intrinsic::cos, x); }},
    {intrinsic::sinh, [](const Expr& x, const Expr& g) { return g * applied(intrinsic::cosh, x); }},
    {intrinsic::sqrt,
     [](const Expr& x, const Expr& g) { return ir::div(number_like(x, 0.5) * g, applied(intrinsic::sqrt, x)); }},
    {intrinsic::tan,
     [](const Expr& x, const Expr& g) { return g * (one_like(x) + square(applied(intrinsic::tan, x))); }},
    {intrinsic::tanh,
     [](const Expr& x, const Expr& g) { return g * (one_like(x) - square(applied(intrinsic::tanh, x))); }},
};

// What g adds to each of two operands.
struct BinaryRow {
  const Intrinsic& f;
  std::pair<Expr, Expr> (*adjoints)(const Expr& a, const Expr& b, const Expr& g);
};

// At a power whose slope is 0 times infinity the slope is 0: of a by b = 0, and of b where a is not positive.
std::pair<Expr, Expr> adjoints_of_pow(const Expr& a, const Expr& b, const Expr& g) {
  const Expr zero = number_like(a, 0);
  const auto power = [&](const Expr& exponent) { return ir::call(a->dtype, intrinsic::pow, {a, exponent}); };
  return {ir::select(ir::eq(b, zero), zero, g * b * power(b - one_like(b))),
          ir::select(a > zero, g * power(b) * applied(intrinsic::log, a), zero)};
}

const BinaryRow binary_rows[] = {
    {intrinsic::atan2,
     [](const Expr& y, const Expr& x, const Expr& g) {
       const Expr length = square(x) + square(y);
       return std::pair(ir::div(g * x, length), minus(ir::div(g * y, length)));
     }},
    {intrinsic::copysign,
     [](const Expr& a, const Expr& b, const Expr& g) {
       const auto sign = [](const Expr& x) { return ir::call(x->dtype, intrinsic::copysign, {one_like(x), x}); };
       return std::pair(g * sign(a) * sign(b), number_like(b, 0));
     }},
    {intrinsic::hypot,
     [](const Expr& a, const Expr& b, const Expr& g) {
       const Expr length = ir::call(a->dtype, intrinsic::hypot, {a, b});
       return std::pair(ir::div(g * a, length), ir::div(g * b, length));
     }},
    {intrinsic::nextafter, [](const Expr&, const Expr& b, const Expr& g) { return std::pair(g, number_like(b, 0)); }},
    {intrinsic::pow, adjoints_of_pow},
};

// Steps: constant wherever they are smooth.
const Intrinsic* const steps[] = {&intrinsic::ceil,      &intrinsic::floor, &intrinsic::round,
                                  &intrinsic::nearbyint, &intrinsic::trunc, &intrinsic::isfinite,
                                  &intrinsic::isinf,     &intrinsic::isnan, &intrinsic::reinterpret};

bool is_step(const Intrinsic* f) { return std::find(std::begin(steps), std::end(steps), f) != std::end(steps); }

// What may carry a derivative: scalars and vectors of IEEE-like floats.
bool is_smooth(const Expr& e) { return e->dtype.is_floating(); }

bool reads_active(const Expr& e, IsActive is_active) {
  if (!is_smooth(e)) return false;
  if (const auto* load = e.as<BufferLoad>()) return is_active(load->buffer);
  if (const auto* call = e.as<Call>(); call && is_step(call->op)) return false;
  bool found = false;
  e->node_class().for_each_child(*e, [&](const NodeRef& child) {
    if (!found && child && child->node_class().family == ExprNode::family)
      found = reads_active(Expr(static_cast<const ExprNode*>(child.get())), is_active);
  });
  return found;
}

class Reverse {
 public:
  explicit Reverse(IsActive is_active) : is_active_(is_active) {}

  std::vector<Contribution> take() { return std::move(found_); }

  void visit(const Expr& e, const Expr& g, const Expr& guard) {
    if (!reads_active(e, is_active_)) return;
    const auto pass = [&](const Expr& operand, const Expr& amount) { visit(operand, amount, guard); };
    match(
        e, [&](const BufferLoad&) { add(ir::cast<BufferLoad>(e), g, guard); },
        [&](const Cast& n) {
          if (is_smooth(n.value)) pass(n.value, ir::cast(n.value->dtype, g));
        },
        [&](const Add& n) {
          pass(n.a, g);
          pass(n.b, g);
        },
        [&](const Sub& n) {
          pass(n.a, g);
          pass(n.b, minus(g));
        },
        [&](const Mul& n) {
          pass(n.a, g * n.b);
          pass(n.b, g * n.a);
        },
        [&](const Div& n) {
          pass(n.a, ir::div(g, n.b));
          const Expr of_divisor = ir::div(g * n.a, n.b * n.b);
          pass(n.b, support::flip(gradient_quotient_sign) ? of_divisor : minus(of_divisor));
        },
        // a - b * trunc(a / b), and the same with floor.
        [&](const Mod& n) {
          pass(n.a, g);
          pass(n.b, minus(g * applied(intrinsic::trunc, ir::div(n.a, n.b))));
        },
        [&](const FloorMod& n) {
          pass(n.a, g);
          pass(n.b, minus(g * applied(intrinsic::floor, ir::div(n.a, n.b))));
        },
        [&](const FloorDiv&) {}, [&](const Min& n) { choose(n.a <= n.b, n.a, n.b, g, guard); },
        [&](const Max& n) { choose(n.a >= n.b, n.a, n.b, g, guard); },
        [&](const Select& n) { choose(n.condition, n.true_value, n.false_value, g, guard); },
        [&](const Let& n) { pass(substitute(n.body, VarMap{{n.var, n.value}}), g); },
        [&](const Call& n) { call(n, g, guard); },
        [&](const ExprNode& n) { refuse(std::string(n.node_class().name)); });
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw support::DiagnosticError(
        support::Diagnostic{.code = codes::no_gradient, .message = "'" + what + "' has no derivative"});
  }

  static Expr both(const Expr& outer, const Expr& inner) {
    return outer ? ir::if_then_else(outer, inner, ir::boolean(false)) : inner;
  }

  void choose(const Expr& condition, const Expr& a, const Expr& b, const Expr& g, const Expr& guard) {
    visit(a, g, both(guard, condition));
    visit(b, g, both(guard, ir::logical_not(condition)));
  }

  void call(const Call& n, const Expr& g, const Expr& guard) {
    if (n.op == &intrinsic::if_then_else) return choose(n.args[0], n.args[1], n.args[2], g, guard);
    if (n.op == &intrinsic::ldexp) return visit(n.args[0], ir::call(g->dtype, intrinsic::ldexp, {g, n.args[1]}), guard);
    if (n.op == &intrinsic::fma) {
      visit(n.args[0], g * n.args[1], guard);
      visit(n.args[1], g * n.args[0], guard);
      return visit(n.args[2], g, guard);
    }
    for (const UnaryRow& row : unary_rows)
      if (&row.f == n.op) return visit(n.args[0], row.adjoint(n.args[0], g), guard);
    for (const BinaryRow& row : binary_rows)
      if (&row.f == n.op) {
        const auto [first, second] = row.adjoints(n.args[0], n.args[1], g);
        visit(n.args[0], first, guard);
        return visit(n.args[1], second, guard);
      }
    refuse(std::string(n.op->name));
  }

  void add(const Ref<BufferLoad>& element, const Expr& amount, const Expr& guard) {
    for (Contribution& met : found_)
      if (ir::structural_equal(met.element, element) && static_cast<bool>(met.guard) == static_cast<bool>(guard) &&
          (!guard || ir::structural_equal(met.guard, guard))) {
        met.amount = met.amount + amount;
        return;
      }
    found_.push_back({element, guard, amount});
  }

  IsActive is_active_;
  std::vector<Contribution> found_;
};

}  // namespace

std::vector<Contribution> contributions(const Expr& e, const Expr& adjoint, IsActive is_active) {
  Reverse reverse(is_active);
  reverse.visit(e, adjoint, Expr());
  return reverse.take();
}

bool is_active(const Expr& e, IsActive is_active_buffer) { return reads_active(e, is_active_buffer); }

}  // namespace lathe::tir
