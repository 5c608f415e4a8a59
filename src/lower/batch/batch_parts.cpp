#include "lower/batch/batch_parts.h"

#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "relax/strings.h"

namespace lathe::lower {

using namespace relax;  // NOLINT: the subject of this file

namespace {

bool is_call_of(const Expr& e, const Operator& op) {
  return graph::as_call_of(e, op.name) && as_tensor(e) && as_tensor(e)->dtype != string_dtype;
}

}  // namespace

bool is_batch_part(const Expr& e) { return is_call_of(e, ops::strided_slice); }

bool is_joined_batch(const Expr& e) { return is_call_of(e, ops::concat); }

Expr batch_part(const Expr& whole, int64_t begin, int64_t end) {
  const auto at = [](int64_t row) { return ir::make<ShapeExpr>(std::vector<ir::Expr>{ir::int64(row)}); };
  return make_call(ops::strided_slice, {whole, at(begin), at(end)},
                   ir::make<ops::StridedSliceAttributes>(std::vector<int64_t>{0}))
      .value_or_throw();
}

Expr joined_batch(const std::vector<Expr>& parts) {
  return make_call(ops::concat, parts, ir::make<ops::AxisAttributes>(int64_t{0})).value_or_throw();
}

int64_t first_element(const Call& part) {
  const std::vector<ir::Expr>& shape = *as_tensor(part.args.at(0))->shape;
  int64_t elements = *ir::as_int(part.args.at(1).as<ShapeExpr>()->values.at(0));
  for (size_t d = 1; d < shape.size(); ++d) elements *= *ir::as_int(shape[d]);
  return elements;
}

}  // namespace lathe::lower
