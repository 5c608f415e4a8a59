// Reducers: an associative combination of two values, and the value that changes nothing.
#include "te/tensor.h"

namespace lathe::te {

using ir::DType;

IterVar reduce_axis(Expr min, Expr extent, std::string name) {
  return ir::make<ir::IterVarNode>(
      ir::Range{ir::cast(DType::int64(), std::move(min)), ir::cast(DType::int64(), std::move(extent))},
      ir::var(std::move(name)), ir::IterType::reduce);
}

ir::CommReducer comm_reducer(
    const std::function<std::vector<Expr>(const std::vector<Expr>& lhs, const std::vector<Expr>& rhs)>& combine,
    const std::function<std::vector<Expr>(const std::vector<DType>&)>& identity, std::vector<DType> dtypes) {
  std::vector<Var> lhs, rhs;
  std::vector<Expr> left, right;
  for (size_t k = 0; k < dtypes.size(); ++k) {
    const std::string number = dtypes.size() > 1 ? std::to_string(k) : "";
    lhs.push_back(ir::var("x" + number, dtypes[k]));
    rhs.push_back(ir::var("y" + number, dtypes[k]));
    left.push_back(lhs.back());
    right.push_back(rhs.back());
  }
  return ir::make<ir::CommReducerNode>(std::move(lhs), std::move(rhs), combine(left, right), identity(dtypes));
}

namespace {

Expr reduce(Expr source, std::vector<IterVar> axis, Expr (*combine)(Expr, Expr), Expr identity, Expr init = {}) {
  const DType dtype = source->dtype;
  ir::CommReducer combiner =
      comm_reducer([&](const auto& lhs, const auto& rhs) { return std::vector<Expr>{combine(lhs[0], rhs[0])}; },
                   [&](const auto&) { return std::vector<Expr>{std::move(identity)}; }, {dtype});
  std::vector<Expr> initial;
  if (init) initial.push_back(std::move(init));
  return ir::make<ir::Reduce>(std::move(combiner), std::move(axis), std::vector<Expr>{std::move(source)}, Expr{},
                              int64_t{0}, std::move(initial));
}

bool has_infinity(DType dtype) { return dtype.is_ieee_float() || dtype.is_bfloat16(); }

}  // namespace

Expr sum(Expr source, std::vector<IterVar> axis, Expr init) {
  Expr zero = ir::constant(source->dtype, 0);
  return reduce(std::move(source), std::move(axis), ir::add, std::move(zero), std::move(init));
}
Expr prod(Expr source, std::vector<IterVar> axis) {
  Expr one = ir::constant(source->dtype, 1);
  return reduce(std::move(source), std::move(axis), ir::mul, std::move(one));
}
Expr max(Expr source, std::vector<IterVar> axis) {
  const DType dtype = source->dtype;
  if (dtype.is_bool()) return reduce(std::move(source), std::move(axis), ir::logical_or, ir::boolean(false));
  Expr lowest =
      has_infinity(dtype) ? ir::constant(dtype, -std::numeric_limits<double>::infinity()) : ir::min_value(dtype);
  return reduce(std::move(source), std::move(axis), ir::max, std::move(lowest));
}
Expr min(Expr source, std::vector<IterVar> axis) {
  const DType dtype = source->dtype;
  if (dtype.is_bool()) return reduce(std::move(source), std::move(axis), ir::logical_and, ir::boolean(true));
  Expr highest = has_infinity(dtype) ? ir::infinity(dtype) : ir::max_value(dtype);
  return reduce(std::move(source), std::move(axis), ir::min, std::move(highest));
}

Expr max_of_numbers(Expr source, std::vector<IterVar> axis) {
  Expr lowest = ir::constant(source->dtype, -std::numeric_limits<double>::infinity());
  return reduce(
      std::move(source), std::move(axis), [](Expr a, Expr b) { return ir::select(ir::gt(b, a), b, a); },
      std::move(lowest));
}

}  // namespace lathe::te
