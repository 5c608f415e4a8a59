#include <cmath>

#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/build.h"
#include "ops/operators.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(simplify_algebra_multiplies_by_two, "graph_test driver_test", "x * 2 is taken for x");

namespace {

// Whether every element of a constant is `value` (of floats bit for bit: -0.0 is not 0.0).
bool is_constant_of(const Expr& e, double value) {
  const auto* constant = e ? e.as<Constant>() : nullptr;
  if (!constant || constant->data->elements() == 0 || constant->data->elements() > 4096) return false;
  for (int64_t i = 0; i < constant->data->elements(); ++i) {
    const double element = ir::float_at(*constant->data, i);
    if (element != value || std::signbit(element) != std::signbit(value)) return false;
  }
  return true;
}

bool same_info(const Expr& a, const Expr& b) {
  return as_tensor(a) && as_tensor(b) && ir::structural_equal(a->struct_info, b->struct_info);
}

bool is_float(const Expr& e) { return as_tensor(e) && as_tensor(e)->dtype.is_floating(); }

// One identity: what the call is, when it names this operator and the identity holds.
struct Identity {
  std::string_view op;
  std::string_view why;
  Expr (*apply)(const Emitter&, const Call&);
};

Expr operand_if(bool holds, const Call& call, size_t i) { return holds ? call.args[i] : Expr(); }

constexpr double negative_zero = -0.0;

const Identity identities[] = {
    {"add", "x + 0 is x: for floats only with -0, since -0 + 0 is 0",
     [](const Emitter&, const Call& c) {
       const double zero = is_float(c.args[0]) ? negative_zero : 0.0;
       if (is_constant_of(c.args[0], zero)) return c.args[1];
       return operand_if(is_constant_of(c.args[1], zero), c, 0);
     }},
    {"subtract", "x - 0 is x",
     [](const Emitter&, const Call& c) { return operand_if(is_constant_of(c.args[1], 0.0), c, 0); }},
    {"multiply", "x * 1 is x",
     [](const Emitter&, const Call& c) {
       const double one = support::flip(simplify_algebra_multiplies_by_two) ? 2.0 : 1.0;
       if (is_constant_of(c.args[0], one)) return c.args[1];
       return operand_if(is_constant_of(c.args[1], one), c, 0);
     }},
    {"divide", "x / 1 is x",
     [](const Emitter&, const Call& c) { return operand_if(is_constant_of(c.args[1], 1.0), c, 0); }},
    {"power", "x ** 1 is x",
     [](const Emitter&, const Call& c) { return operand_if(is_constant_of(c.args[1], 1.0), c, 0); }},
    {"negative", "-(-x) is x",
     [](const Emitter& emitter, const Call& c) {
       const auto* inner = as_call_of(emitter.value_of(c.args[0]), "negative");
       return inner ? inner->args[0] : Expr();
     }},
    {"nn.relu", "relu(relu(x)) is relu(x)",
     [](const Emitter& emitter, const Call& c) {
       return operand_if(as_call_of(emitter.value_of(c.args[0]), "nn.relu"), c, 0);
     }},
    {"astype", "a conversion to the dtype it has", [](const Emitter&, const Call& c) { return c.args[0]; }},
    {"permute_dims", "a permutation that moves nothing",
     [](const Emitter&, const Call& c) {
       const std::vector<int64_t> axes = permuted_axes(c);
       for (size_t i = 0; i < axes.size(); ++i)
         if (axes[i] != static_cast<int64_t>(i)) return Expr();
       return c.args[0];
     }},
};

// permute(permute(x)) is one permutation.
Result<Expr> merge_permutations(const Emitter& emitter, const Call& call) {
  const auto* inner = as_call_of(emitter.value_of(call.args[0]), "permute_dims");
  if (!inner) return Expr();
  const std::vector<int64_t> outer_axes = permuted_axes(call), inner_axes = permuted_axes(*inner);
  std::vector<int64_t> axes;
  for (const int64_t axis : outer_axes) axes.push_back(inner_axes[static_cast<size_t>(axis)]);
  return make_call(ops::permute_dims, {inner->args[0]}, make<ops::PermuteDimsAttributes>(std::move(axes)));
}

// Powers of known exponents as products, quotients and roots, which cost a fiftieth and are no further from the truth.
// Products of a narrow type would be rounded once more than its power is.
Result<Expr> power(Emitter& emitter, const Call& call, const Expr& value) {
  const Expr& x = call.args[0];
  if (!same_info(x, value)) return Expr();
  const ir::DType dtype = as_tensor(x)->dtype;
  const auto is = [&](double exponent) { return is_constant_of(call.args[1], exponent); };
  const bool is_rounded_once = !dtype.is_floating() || dtype.bits >= 32;
  if (is(2)) return make_call(ops::multiply, {x, x});
  if ((is(3) || is(4)) && is_rounded_once) {
    const Expr square = TRY(emitter.call(ops::multiply, {x, x}, {}, "square"));
    return make_call(ops::multiply, {square, is(3) ? x : square});
  }
  if (!dtype.is_floating()) return Expr();
  if (is(-1)) return make_call(ops::divide, {ops::build::scalar(dtype, 1), x});
  if (!is(0.5)) return Expr();
  // The root of -0 is -0 and that of -inf is none, where the powers are 0 and inf.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Expr positive = TRY(emitter.call(ops::add, {x, ops::build::scalar(dtype, 0)}, {}, "positive"));
  const Expr root = TRY(emitter.call(ops::sqrt, {positive}, {}, "root"));
  const Expr least = TRY(emitter.call(ops::equal, {x, ops::build::scalar(dtype, -infinity)}, {}, "least"));
  return make_call(ops::where, {least, ops::build::scalar(dtype, infinity), root});
}

Result<Expr> simplify(Emitter& emitter, const Var&, const Expr& value) {
  const auto* call = value.as<Call>();
  const Operator* op = call ? callee_operator(*call) : nullptr;
  if (!op) return Expr();
  if (op->is_view) {
    // A view of a view is a view of the first; a view with the shape it has is nothing.
    Expr base = call->args[0];
    if (same_info(base, value)) return base;
    const auto* inner = emitter.value_of(base) ? emitter.value_of(base).as<Call>() : nullptr;
    const Operator* inner_op = inner ? callee_operator(*inner) : nullptr;
    if (!inner_op || !inner_op->is_view || !as_tensor(value)->shape) return Expr();
    if (same_info(inner->args[0], value)) return inner->args[0];
    return make_call(ops::reshape, {inner->args[0], make<ShapeExpr>(*as_tensor(value)->shape)});
  }
  if (op->name == "permute_dims")
    if (Expr merged = TRY(merge_permutations(emitter, *call))) {
      Expr simpler = TRY(simplify(emitter, {}, merged));
      return simpler ? simpler : merged;
    }
  if (op->name == "power")
    if (Expr simpler = TRY(power(emitter, *call, value))) return simpler;
  for (const Identity& identity : identities) {
    if (identity.op != op->name) continue;
    Expr replacement = identity.apply(emitter, *call);
    if (replacement && same_info(replacement, value)) return replacement;
  }
  return Expr();
}

}  // namespace

support::Result<ir::IRModule> simplify_algebra(ir::IRModule module, const ir::PassContext&) {
  return rewrite_functions(std::move(module), simplify);
}

}  // namespace lathe::graph
