// tensor_scatter: a tensor with a run of positions along one axis replaced, each batch element from an index of its
// own. Caches of keys and values grow so: their shape stays, the new entries follow those in use.
#include "ops/rule.h"
#include "support/mutation.h"

namespace lathe::ops {

LATHE_FAULT(ops_tensor_scatter_batch, "ops_test", "tensor_scatter: every batch element is written where the first is");

namespace {

struct TensorScatterAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "TensorScatterAttributes";
  int64_t axis = -2;            // not 0: that is the batch's
  std::string mode = "linear";  // or "circular": what goes beyond the end goes on at the beginning
  static constexpr auto fields() {
    return std::tuple{field("axis", &TensorScatterAttributes::axis), field("mode", &TensorScatterAttributes::mode)};
  }
};

// x [batch, …, extent, …] by update [batch, …, length, …] with length <= extent, from write_indices [batch].
Result<StructInfo> infer_tensor_scatter(const InferContext& c) {
  const TensorStructInfo &x = *TRY(relax::tensor_argument(c, 0)), &update = *TRY(relax::tensor_argument(c, 1));
  TRY(relax::check_same_dtype(c, 0, 1));
  const auto& a = c.attrs<TensorScatterAttributes>();
  if (a.mode != "linear" && a.mode != "circular")
    return relax::wrong(codes::wrong_attribute, "tensor_scatter has no mode '" + a.mode + "'");
  const TensorStructInfo* starts = c.args.size() > 2 && c.args[2] ? TRY(relax::tensor_argument(c, 2)) : nullptr;
  if (starts) TRY(relax::check_dtype(c, 2, DTypeSet::integer));
  if (!x.shape || !update.shape || (starts && !starts->shape)) return relax::tensor_info_of_rank(x.ndim, x.dtype);

  const int64_t axis = TRY(relax::normalize_axis(c, a.axis, x.ndim));
  if (axis == 0) return relax::wrong(codes::wrong_attribute, "tensor_scatter along axis 0, which is the batch's");
  const Shape &own = *x.shape, &written = *update.shape;
  bool fits = written.size() == own.size();
  for (size_t d = 0; fits && d < own.size(); ++d) {
    const bool along = d == static_cast<size_t>(axis);
    fits = relax::may_be(written[d], along ? relax::simplified(ir::min(written[d], own[d])) : own[d], c.assumptions);
  }
  if (!fits)
    return relax::wrong(codes::shape_mismatch, "tensor_scatter of " + relax::text_of(update) + " along axis " +
                                                   std::to_string(axis) + " of " + relax::text_of(x));
  if (starts && (starts->ndim != 1 || !relax::may_be((*starts->shape)[0], own[0], c.assumptions)))
    return relax::wrong(codes::shape_mismatch, "the write_indices of tensor_scatter are " + relax::text_of(*starts) +
                                                   " for a batch of " + relax::text_of(own[0]));
  return c.args[0]->struct_info;
}

std::vector<Tensor> lower_tensor_scatter(const LowerContext& c) {
  const Tensor &x = c.tensor(0), &update = c.tensor(1);
  const auto& a = c.attrs<TensorScatterAttributes>();
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(x.ndim()) : a.axis);
  const Expr &extent = x.shape()[axis], &length = update.shape()[axis];
  const bool has_starts = c.tensors.size() > 2 && c.tensors[2], circular = a.mode == "circular";
  std::vector<Tensor> read{x, update};
  if (has_starts) read.push_back(c.tensor(2));
  return {te::compute(
      *c.output().shape,
      [&](const Indices& i) {
        Expr at = i[axis];  // in `update`
        Expr inside = at < length;
        if (has_starts) {
          const Expr batch = support::flip(ops_tensor_scatter_batch) ? ir::int64(0) : i[0];
          const Expr given = ir::cast(DType::int64(), c.tensor(2)({batch}));
          // Any index is the user's right to give: brought near first, so that what follows cannot overflow.
          const Expr start = circular ? ir::floormod(given, relax::simplified(ir::max(extent, ir::int64(1))))
                                      : ir::max(ir::min(given, extent), ir::int64(0) - length);
          at = at - start;
          if (circular) at = ir::select(at < 0, at + extent, at);
          inside = ir::logical_and(at >= 0, at < length);
        }
        Indices from = i;
        from[axis] = at;
        return ir::if_then_else(inside, update(std::move(from)), x(i));
      },
      std::move(read), "tensor_scatter")};
}

}  // namespace

// Without write_indices every batch element is written from 0. What mode "linear" would write outside is dropped.
const Operator tensor_scatter{
    .name = "tensor_scatter",
    .inputs = {{"x"}, {"update"}, {"write_indices", Input::optional}},
    .attributes = relax::attributes_of<TensorScatterAttributes>(),
    .infer = infer_tensor_scatter,
    .meaning = relax::TeExpression(lower_tensor_scatter),
    .fusion = FusionKind::injective,
    .reference = "onnx.reference.ops.op_tensor_scatter",
};

}  // namespace lathe::ops
