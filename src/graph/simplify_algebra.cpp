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

// The view that gives a value, or null.
const Call* as_view(const Emitter& emitter, const Expr& e) {
  const Expr value = emitter.value_of(e);
  const Call* call = value ? value.as<Call>() : nullptr;
  const Operator* op = call ? callee_operator(*call) : nullptr;
  return op && op->is_view ? call : nullptr;
}

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

using Shape = std::vector<ir::Expr>;

// Axes of a tensor, by number, that a view makes into some of another's: both in order, equally many elements.
struct ViewedAxes {
  std::vector<size_t> before, after;
};

// How a view from one shape to another takes the axes together, as few at a time as possible; axes of extent 1 are in
// none of it. Nothing where an extent that is not known is not one by itself on both sides.
std::optional<std::vector<ViewedAxes>> viewed_axes(const Shape& before, const Shape& after) {
  std::vector<ViewedAxes> all;
  size_t b = 0, a = 0;
  const auto skip_ones = [](const Shape& shape, size_t& at) {
    while (at < shape.size() && ir::is_int(shape[at], 1)) ++at;
    return at < shape.size();
  };
  for (;;) {
    const bool more = skip_ones(before, b);
    if (more != skip_ones(after, a)) return std::nullopt;
    if (!more) return all;
    ViewedAxes& axes = all.emplace_back(ViewedAxes{{b}, {a}});
    const ir::Expr &from = before[b++], &to = after[a++];
    if (ir::structural_equal(from, to)) continue;
    const auto left = ir::as_int(from), right = ir::as_int(to);
    if (!left || !right) return std::nullopt;
    for (int64_t have = *left, want = *right; have != want;) {
      const bool is_short = have < want;
      size_t& at = is_short ? b : a;
      const Shape& shape = is_short ? before : after;
      const auto extent = at < shape.size() ? ir::as_int(shape[at]) : std::nullopt;
      if (!extent || *extent < 1) return std::nullopt;
      (is_short ? have : want) *= *extent;
      (is_short ? axes.before : axes.after).push_back(at++);
    }
  }
}

// permute(view(permute(x))) is a view of x where the elements are in their first order again: channels that are put
// first, an image's rows that become one axis, and the channels last.
Result<Expr> undo_permutation(const Emitter& emitter, const Call& call, const Expr& value) {
  const Call* view = as_view(emitter, call.args[0]);
  const auto* inner = view ? as_call_of(emitter.value_of(view->args[0]), "permute_dims") : nullptr;
  if (!inner) return Expr();
  const auto* turned = as_tensor(view->args[0]);
  const auto* viewed = as_tensor(call.args[0]);
  const auto* result = as_tensor(value);
  if (!turned->shape || !viewed->shape || !result->shape) return Expr();
  const auto groups = viewed_axes(*turned->shape, *viewed->shape);
  if (!groups) return Expr();
  // Whole groups in some order, in each of them the axes as they are.
  const std::vector<int64_t> first = permuted_axes(*inner), then = permuted_axes(call);
  std::vector<int64_t> order;
  for (size_t at = 0; at < then.size();) {
    const auto axis = static_cast<size_t>(then[at]);
    const auto group = std::find_if(groups->begin(), groups->end(), [&](const ViewedAxes& axes) {
      return std::find(axes.after.begin(), axes.after.end(), axis) != axes.after.end();
    });
    if (group == groups->end()) {  // an axis of extent 1
      ++at;
      continue;
    }
    for (size_t i = 0; i < group->after.size();) {
      if (at == then.size()) return Expr();
      const auto next = static_cast<size_t>(then[at++]);
      if (next == group->after[i])
        ++i;
      else if (!ir::is_int((*viewed->shape)[next], 1))
        return Expr();
    }
    for (const size_t axis_before : group->before) order.push_back(first[axis_before]);
  }
  if (!std::is_sorted(order.begin(), order.end())) return Expr();
  return make_call(ops::reshape, {inner->args[0], make<ShapeExpr>(*result->shape)});
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
    const Call* inner = as_view(emitter, base);
    if (!inner || !as_tensor(value)->shape) return Expr();
    if (same_info(inner->args[0], value)) return inner->args[0];
    return make_call(ops::reshape, {inner->args[0], make<ShapeExpr>(*as_tensor(value)->shape)});
  }
  if (op->name == "permute_dims") {
    if (Expr view = TRY(undo_permutation(emitter, *call, value))) return view;
    if (Expr merged = TRY(merge_permutations(emitter, *call))) {
      Expr simpler = TRY(simplify(emitter, {}, merged));
      return simpler ? simpler : merged;
    }
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
