#include "ops/gradient/gradient.h"

#include "ops/attributes.h"
#include "ops/operators.h"
#include "ops/rule.h"
#include "support/mutation.h"

namespace lathe::ops {

LATHE_FAULT(gradient_matmul_operands, "graph_test", "both adjoints of a product are products with its left operand");

namespace {

using relax::Call;

using Value = relax::Expr;

const Shape& extents_of(const Value& x) { return *relax::as_tensor(x)->shape; }
bool is_known(const Value& x) {
  const auto* info = x ? relax::as_tensor(x) : nullptr;
  return info && info->shape;
}

Value shaped(BlockBuilder& b, const Value& x, const Shape& shape) {
  if (relax::same_shape(extents_of(x), shape)) return x;
  return b.call(reshape, {x, ir::make<relax::ShapeExpr>(shape)}).value_or_throw();
}

Value call_of(BlockBuilder& b, const Operator& op, std::vector<Value> args, relax::AttributesRef attributes = {}) {
  return b.call(op, std::move(args), std::move(attributes)).value_or_throw();
}

// g summed over the axes along which something of `shape` was repeated to meet it; null where that is not known.
Value summed_to(BlockBuilder& b, const Value& g, const Shape& shape) {
  const Shape& whole = extents_of(g);
  Axes axes;
  for (size_t d = 0; d < whole.size(); ++d) {
    const size_t missing = whole.size() - shape.size();
    if (d < missing) {
      axes.push_back(static_cast<int64_t>(d));
      continue;
    }
    const Expr& own = shape[d - missing];
    if (relax::same_extent(own, whole[d])) continue;
    if (!ir::is_int(own, 1)) return {};
    axes.push_back(static_cast<int64_t>(d));
  }
  if (axes.empty()) return g;
  return shaped(b, call_of(b, sum, {g}, ir::make<ReduceAttributes>(std::optional(axes), true)), shape);
}

// Adjoints of the operands' shapes; nothing where one is not known.
Adjoints both(BlockBuilder& b, const Call& call, const Value& of_first, const Value& of_second) {
  const Value first = summed_to(b, of_first, extents_of(call.args[0]));
  const Value second = first ? summed_to(b, of_second, extents_of(call.args[1])) : Value();
  if (!second) return std::vector<Value>{};
  return std::vector{first, second};
}

bool are_known(const Call& call, const Value& g) {
  return is_known(g) && is_known(call.args[0]) && (call.args.size() < 2 || is_known(call.args[1]));
}

// The last two dimensions change places.
Value turned(BlockBuilder& b, const Value& x) {
  Axes axes;
  for (size_t d = 0; d < extents_of(x).size(); ++d) axes.push_back(static_cast<int64_t>(d));
  std::swap(axes[axes.size() - 2], axes.back());
  return call_of(b, permute_dims, {x}, ir::make<PermuteDimsAttributes>(std::optional(axes)));
}

Shape with_extent(Shape shape, int64_t from_end, const Expr& extent) {
  shape.insert(shape.end() - from_end, extent);
  return shape;
}

// x with all leading dimensions in one: rows.
Value as_rows(BlockBuilder& b, const Value& x) {
  const Shape& shape = extents_of(x);
  const Shape leading(shape.begin(), shape.end() - 1);
  return shaped(b, x, {relax::simplified(ir::product(leading)), shape.back()});
}

}  // namespace

Adjoints gradient_of_add(BlockBuilder& b, const Call& call, const Value& g) {
  return are_known(call, g) ? both(b, call, g, g) : std::vector<Value>{};
}

Adjoints gradient_of_subtract(BlockBuilder& b, const Call& call, const Value& g) {
  return are_known(call, g) ? both(b, call, g, call_of(b, negative, {g})) : std::vector<Value>{};
}

Adjoints gradient_of_multiply(BlockBuilder& b, const Call& call, const Value& g) {
  if (!are_known(call, g)) return std::vector<Value>{};
  return both(b, call, call_of(b, multiply, {g, call.args[1]}), call_of(b, multiply, {g, call.args[0]}));
}

Adjoints gradient_of_divide(BlockBuilder& b, const Call& call, const Value& g) {
  if (!are_known(call, g)) return std::vector<Value>{};
  const Value share = call_of(b, divide, {g, call.args[1]});
  const Value quotient = call_of(b, divide, {call.args[0], call.args[1]});
  return both(b, call, share, call_of(b, negative, {call_of(b, multiply, {share, quotient})}));
}

Adjoints gradient_of_negative(BlockBuilder& b, const Call&, const Value& g) {
  return std::vector{call_of(b, negative, {g})};
}

Adjoints gradient_of_matmul(BlockBuilder& b, const Call& call, const Value& g) {
  const auto& attributes = *call.attributes.as<MatmulAttributes>();
  const std::vector<Value> nothing;
  if (!are_known(call, g) || attributes.b_layout != "KN") return nothing;
  const DType dtype = relax::as_tensor(call.args[0])->dtype;
  if (relax::as_tensor(g)->dtype != dtype) return nothing;
  // Vectors as matrices of one row and of one column.
  const Shape &left = extents_of(call.args[0]), &right = extents_of(call.args[1]);
  const Expr one = ir::int64(1);
  Shape whole = extents_of(g);
  if (right.size() == 1) whole.push_back(one);
  if (left.size() == 1) whole = with_extent(whole, 1, one);
  const Value x = shaped(b, call.args[0], left.size() == 1 ? Shape{one, left[0]} : left);
  const Value y = shaped(b, call.args[1], right.size() == 1 ? Shape{right[0], one} : right);
  const Value adjoint = shaped(b, g, whole);
  const auto product = [&](const Value& p, const Value& q) { return call_of(b, matmul, {p, q}); };
  const Value of_left = product(adjoint, turned(b, support::flip(gradient_matmul_operands) ? x : y));
  // One matrix that meets many takes all of their rows at once.
  const bool is_shared = extents_of(y).size() == 2 && extents_of(x).size() > 2;
  const Value of_right =
      is_shared ? product(turned(b, as_rows(b, x)), as_rows(b, adjoint)) : product(turned(b, x), adjoint);
  const Value first = summed_to(b, of_left, extents_of(x));
  const Value second = first ? summed_to(b, of_right, extents_of(y)) : Value();
  if (!second) return nothing;
  return std::vector{shaped(b, first, left), shaped(b, second, right)};
}

Adjoints gradient_of_view(BlockBuilder& b, const Call& call, const Value& g) {
  std::vector<Value> adjoints(call.args.size());
  if (!is_known(call.args[0]) || !is_known(g)) return std::vector<Value>{};
  adjoints[0] = shaped(b, g, extents_of(call.args[0]));
  return adjoints;
}

Adjoints gradient_of_permute_dims(BlockBuilder& b, const Call& call, const Value& g) {
  const auto& given = call.attributes.as<PermuteDimsAttributes>()->axes;
  const auto rank = relax::as_tensor(g)->ndim;
  if (rank < 0) return std::vector<Value>{};
  Axes back(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t from = given ? (*given)[static_cast<size_t>(d)] : rank - 1 - d;
    back[static_cast<size_t>(from < 0 ? from + rank : from)] = d;
  }
  return std::vector{call_of(b, permute_dims, {g}, ir::make<PermuteDimsAttributes>(std::optional(back)))};
}

Adjoints gradient_of_sum(BlockBuilder& b, const Call& call, const Value& g) {
  if (!are_known(call, g)) return std::vector<Value>{};
  const auto& given = call.attributes.as<ReduceAttributes>()->axis;
  Shape kept = extents_of(call.args[0]);
  const auto rank = static_cast<int64_t>(kept.size());
  for (int64_t d = 0; d < rank; ++d) {
    const auto names = [&](int64_t axis) { return (axis < 0 ? axis + rank : axis) == d; };
    if (!given || std::any_of(given->begin(), given->end(), names)) kept[static_cast<size_t>(d)] = ir::int64(1);
  }
  const auto whole = ir::make<relax::ShapeExpr>(extents_of(call.args[0]));
  return std::vector{call_of(b, broadcast_to, {shaped(b, g, kept), whole})};
}

Adjoints gradient_of_softmax(BlockBuilder& b, const Call& call, const Value& g) {
  if (!are_known(call, g)) return std::vector<Value>{};
  const Value y = call_of(b, softmax, {call.args[0]}, call.attributes);
  const Axes axis{call.attributes.as<SoftmaxAttributes>()->axis};
  const Value weighted = call_of(b, multiply, {g, y});
  const Value total = call_of(b, sum, {weighted}, ir::make<ReduceAttributes>(std::optional(axis), true));
  return std::vector{call_of(b, multiply, {call_of(b, subtract, {g, total}), y})};
}

Adjoints gradient_of_log_softmax(BlockBuilder& b, const Call& call, const Value& g) {
  if (!are_known(call, g)) return std::vector<Value>{};
  const Value shares = call_of(b, softmax, {call.args[0]}, call.attributes);
  const Axes axis{call.attributes.as<SoftmaxAttributes>()->axis};
  const Value total = call_of(b, sum, {g}, ir::make<ReduceAttributes>(std::optional(axis), true));
  return std::vector{call_of(b, subtract, {g, call_of(b, multiply, {shares, total})})};
}

}  // namespace lathe::ops
