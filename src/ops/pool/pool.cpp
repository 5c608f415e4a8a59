// Pooling over windows: nn.max_pool, nn.max_pool_with_indices, nn.avg_pool.
#include "te/topi/pool.h"

#include "ops/layouts.h"

namespace lathe::ops {

namespace {

struct ResolvedPool {
  te::topi::PoolOptions options;
  Shape shape;  // of the output
};

Result<ResolvedPool> resolve_pool(const InferContext& c) {
  const auto& a = c.attrs<PoolAttributes>();
  const Shape& x = *c.tensor(0)->shape;
  ResolvedPool r;
  r.options.layout = TRY(layout_of(c, a.layout, x.size()));
  const Shape spatial = spatial_extents(x, r.options.layout);
  if (a.pool_size.size() != spatial.size())
    return relax::wrong(codes::wrong_attribute, std::string(c.op.name) + " of " + relax::text_of(*c.tensor(0)) +
                                                    " has a window of " + std::to_string(a.pool_size.size()) +
                                                    " dimensions");
  Shape cells;
  for (const int64_t extent : a.pool_size) cells.push_back(ir::int64(extent));
  r.options.windows = TRY(relax::resolve_windows(c, {a.strides, a.dilation, a.padding, a.auto_pad}, spatial, cells));
  r.options.ceil_mode = a.ceil_mode;
  r.shape = x;
  // SAME_UPPER and SAME_LOWER make positions of their own; rounding up would add none.
  for (size_t d = 0; d < spatial.size(); ++d)
    r.shape[r.options.layout.spatial(d)] = relax::window_positions(spatial[d], r.options.windows[d], a.ceil_mode);
  return r;
}

Result<StructInfo> infer_pool(const InferContext& c) {
  TRY(relax::check_dtype(c, 0, DTypeSet::numeric));
  const TensorStructInfo& x = *c.tensor(0);
  if (!x.shape) return c.args[0]->struct_info;
  return relax::tensor_info(TRY(resolve_pool(c)).shape, x.dtype);
}

Result<StructInfo> infer_pool_with_indices(const InferContext& c) {
  const StructInfo values = TRY(infer_pool(c));
  const auto& info = *values.as<TensorStructInfo>();
  const StructInfo indices = info.shape ? relax::tensor_info(*info.shape, DType::int64())
                                        : relax::tensor_info_of_rank(info.ndim, DType::int64());
  return StructInfo(ir::make<relax::TupleStructInfo>(std::vector{values, indices}));
}

ResolvedPool resolve_pool(const LowerContext& c, const Operator& op) {
  return resolve_pool(InferContext{op, c.call.args, c.attributes}).value_or_throw();
}

std::vector<Tensor> lower_max_pool(const LowerContext& c) {
  const ResolvedPool r = resolve_pool(c, max_pool);
  return {te::topi::max_pool(c.tensor(0), r.shape, r.options)};
}

std::vector<Tensor> lower_max_pool_with_indices(const LowerContext& c) {
  const ResolvedPool r = resolve_pool(c, max_pool_with_indices);
  return te::topi::max_pool_with_indices(c.tensor(0), r.shape, r.options);
}

std::vector<Tensor> lower_avg_pool(const LowerContext& c) {
  const ResolvedPool r = resolve_pool(c, avg_pool);
  return {te::topi::avg_pool(c.tensor(0), r.shape, r.options, c.attrs<PoolAttributes>().count_include_pad,
                             relax::accumulation_dtype(c.tensor(0).dtype()))};
}

Operator pool(std::string_view name, relax::Infer infer, relax::TeExpression meaning, std::string_view reference) {
  return {.name = name,
          .inputs = {{"x"}},
          .attributes = relax::attributes_of<PoolAttributes>(),
          .infer = std::move(infer),
          .meaning = std::move(meaning),
          .fusion = FusionKind::reduction,
          .reference = reference};
}

}  // namespace

const Operator max_pool = pool("nn.max_pool", infer_pool, lower_max_pool, "torch.nn.functional.max_pool2d(x)");
// The second output is the row-major index in x of each largest element.
const Operator max_pool_with_indices =
    pool("nn.max_pool_with_indices", infer_pool_with_indices, lower_max_pool_with_indices,
         "torch.nn.functional.max_pool2d(x, return_indices=True)");
const Operator avg_pool = pool("nn.avg_pool", infer_pool, lower_avg_pool, "torch.nn.functional.avg_pool2d(x)");

}  // namespace lathe::ops
