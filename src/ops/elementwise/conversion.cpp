// Conversion of dtypes, and clipping to a range.
#include "ops/attributes.h"
#include "ops/elementwise/elementwise.h"

namespace lathe::ops {

using enum DTypeSet;

namespace {

Result<StructInfo> infer_astype(const InferContext& c) {
  TRY(relax::tensor_argument(c, 0));
  const DType dtype = c.attrs<AstypeAttributes>().dtype;
  if (!contains(numeric, dtype) && !dtype.is_bool())
    return relax::wrong(relax::codes::wrong_attribute, "astype cannot convert to " + dtype.str());
  return relax::broadcast_arguments(c, dtype);
}

std::vector<te::Tensor> lower_astype(const LowerContext& c) {
  const DType dtype = c.attrs<AstypeAttributes>().dtype;
  return {te::topi::map(c.tensor(0), [&](const Expr& x) { return ir::cast(dtype, x); }, "astype")};
}

// The bounds are scalars; either may be absent.
Result<StructInfo> infer_clip(const InferContext& c) {
  TRY(relax::check_dtype(c, 0, numeric));
  for (size_t i = 1; i < c.args.size(); ++i) {
    if (!c.args[i]) continue;
    TRY(relax::check_same_dtype(c, 0, i));
    if (c.tensor(i)->ndim > 0)
      return relax::wrong(relax::codes::wrong_rank, "the bound '" + std::string(c.op.inputs[i].name) + "' of clip is " +
                                                        relax::text_of(*c.tensor(i)) + ", not a scalar");
  }
  return c.args[0]->struct_info;
}

std::vector<te::Tensor> lower_clip(const LowerContext& c) {
  std::vector<te::Tensor> inputs{c.tensor(0)};
  const bool has_min = c.tensors.size() > 1 && c.tensors[1], has_max = c.tensors.size() > 2 && c.tensors[2];
  if (has_min) inputs.push_back(c.tensor(1));
  if (has_max) inputs.push_back(c.tensor(2));
  return {te::topi::map(
      inputs, *c.output().shape,
      [&](const std::vector<Expr>& v) {
        Expr x = v[0];
        if (has_min) x = ir::max(x, v[1]);
        if (has_max) x = ir::min(x, v.back());
        return x;
      },
      "clip")};
}

}  // namespace

// Float to integer truncates toward zero; to bool: not zero; integers wrap; floats round to nearest even.
const Operator astype{
    .name = "astype",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<AstypeAttributes>(),
    .infer = infer_astype,
    .meaning = relax::TeExpression(lower_astype),
    .fusion = FusionKind::elementwise,
    .reference = "x.astype(dtype)",
};

// minimum(maximum(x, min), max): max where min exceeds it, NaN where x is NaN.
const Operator clip{
    .name = "clip",
    .inputs = {{"x"}, {"min", relax::Input::optional}, {"max", relax::Input::optional}},
    .infer = infer_clip,
    .meaning = relax::TeExpression(lower_clip),
    .fusion = FusionKind::elementwise,
    .reference = "numpy.clip(x, min, max)",
};

}  // namespace lathe::ops
