// Reading by indices.
#include "ops/build.h"

namespace lathe::ops::build {

Expr index_into(const Expr& index, const Expr& extent) {
  Expr at = ir::cast(DType::int64(), index);
  if (index->dtype.is_int()) at = ir::select(at < 0, at + extent, at);
  return ir::max(ir::min(at, extent - 1), ir::int64(0));
}

Value gather_elements(BlockBuilder& b, const Value& x, const Value& indices, int64_t axis) {
  const Shape &own = shape_of(x), &where = shape_of(indices);
  for (size_t d = 0; d < own.size(); ++d)
    if (d != static_cast<size_t>(axis)) expect_equal(b, relax::simplified(ir::min(where[d], own[d])), where[d]);
  const auto build = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        in[1].shape(),
        [&](Indices i) {
          const auto d = static_cast<size_t>(axis);
          i[d] = index_into(in[1](i), in[0].shape()[d]);
          return in[0](std::move(i));
        },
        in, "gather_elements")};
  };
  return b.call_te("gather_elements", {x, indices}, build).value_or_throw();
}

Value gather_nd(BlockBuilder& b, const Value& x, const Value& indices, int64_t batch_dims) {
  const Shape &own = shape_of(x), &where = shape_of(indices);
  const auto width = where.empty() ? std::nullopt : ir::as_int(where.back());
  const auto batch = static_cast<size_t>(batch_dims);
  if (!width || *width < 1 || batch + static_cast<size_t>(*width) > own.size() || batch >= where.size())
    throw support::DiagnosticError(relax::wrong(codes::shape_mismatch, "cannot gather parts of " + relax::text_of(own) +
                                                                           " by the indices " + relax::text_of(where) +
                                                                           " after " + std::to_string(batch_dims) +
                                                                           " batch dimensions"));
  const size_t chosen = batch + static_cast<size_t>(*width), outer = where.size() - 1;
  for (size_t d = 0; d < batch; ++d) expect_equal(b, where[d], own[d]);
  Shape shape(where.begin(), where.end() - 1);
  shape.insert(shape.end(), own.begin() + static_cast<int64_t>(chosen), own.end());
  const auto build = [&](const std::vector<Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const Indices& i) {
          Indices at(i.begin(), i.begin() + static_cast<int64_t>(batch));
          for (size_t k = batch; k < chosen; ++k) {
            Indices cell(i.begin(), i.begin() + static_cast<int64_t>(outer));
            cell.push_back(ir::int64(static_cast<int64_t>(k - batch)));
            at.push_back(index_into(in[1](std::move(cell)), own[k]));
          }
          at.insert(at.end(), i.begin() + static_cast<int64_t>(outer), i.end());
          return in[0](std::move(at));
        },
        in, "gather_nd")};
  };
  return b.call_te("gather_nd", {x, indices}, build).value_or_throw();
}

}  // namespace lathe::ops::build
