#include "relax/call_tir.h"

#include <set>

#include "relax/attributes.h"
#include "relax/infer.h"

namespace lathe::relax {

namespace {

struct InplaceAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "InplaceAttributes";
  std::vector<int64_t> inplace_indices;
  static constexpr auto fields() { return std::tuple{field("inplace_indices", &InplaceAttributes::inplace_indices)}; }
};

struct AllocTensorAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "AllocTensorAttributes";
  DType dtype = DType::void_();
  int64_t runtime_device_index = 0;
  std::string storage_scope = "global";
  static constexpr auto fields() {
    return std::tuple{field("dtype", &AllocTensorAttributes::dtype),
                      field("runtime_device_index", &AllocTensorAttributes::runtime_device_index),
                      field("storage_scope", &AllocTensorAttributes::storage_scope)};
  }
};

Result<StructInfo> infer_call_tir(const InferContext& c) {
  if (c.args.size() < 2 || !c.args[0].is<GlobalVar>() || !c.args[1].is<Tuple>() || c.struct_info_args.empty())
    return wrong(codes::wrong_arguments,
                 std::string(c.op.name) +
                     " takes a function of the module, a tuple of tensors and the struct info of its outputs");
  if (c.struct_info_args.size() == 1) return c.struct_info_args[0];
  return StructInfo(
      make<TupleStructInfo>(std::vector<StructInfo>(c.struct_info_args.begin(), c.struct_info_args.end())));
}

Result<StructInfo> infer_call_tir_inplace(const InferContext& c) {
  const StructInfo info = TRY(infer_call_tir(c));
  const std::vector<int64_t>& indices = c.attrs<InplaceAttributes>().inplace_indices;
  const std::vector<Expr>& args = c.args[1].as<Tuple>()->items;
  if (indices.size() != c.struct_info_args.size())
    return wrong(codes::wrong_attribute, "inplace_indices of call_tir_inplace has " + std::to_string(indices.size()) +
                                             " entries for " + std::to_string(c.struct_info_args.size()) + " outputs");
  std::set<int64_t> taken;
  for (size_t k = 0; k < indices.size(); ++k) {
    const int64_t index = indices[k];
    if (index == -1) continue;
    if (index < 0 || index >= static_cast<int64_t>(args.size()))
      return wrong(codes::wrong_attribute, "inplace_indices of call_tir_inplace has " + std::to_string(index) +
                                               ", but there are " + std::to_string(args.size()) + " tensors");
    if (!taken.insert(index).second)
      return wrong(codes::wrong_attribute,
                   "inplace_indices of call_tir_inplace has " + std::to_string(index) + " twice");
    const auto* given = as_tensor(args[static_cast<size_t>(index)]);
    const auto* made = c.struct_info_args[k].as<TensorStructInfo>();
    if (!given || !made || !ir::structural_equal(StructInfo(given), StructInfo(made), /*map_free_vars=*/false))
      return wrong(codes::wrong_attribute, "output " + std::to_string(k) + " of call_tir_inplace is " +
                                               (made ? text_of(*made) : "no tensor") + ", but tensor " +
                                               std::to_string(index) + " is " + (given ? text_of(*given) : "none"));
  }
  if (taken.empty())
    return wrong(codes::wrong_attribute, "call_tir_inplace updates nothing: inplace_indices has only -1");
  return info;
}

Result<StructInfo> infer_alloc_tensor(const InferContext& c) {
  const auto& attributes = c.attrs<AllocTensorAttributes>();
  if (attributes.runtime_device_index != 0 || attributes.storage_scope != "global")
    return wrong(codes::wrong_attribute, "alloc_tensor is of device 0 and scope \"global\" only");
  if (attributes.dtype.is_void()) return wrong(codes::wrong_attribute, "alloc_tensor needs a dtype");
  return tensor_info(TRY(shape_argument(c, 0)), attributes.dtype);
}

std::vector<Expr> operands_of(const std::string& function, std::vector<Expr> args, std::vector<ir::Expr> scalars) {
  std::vector<Expr> operands{global_var(function), tuple_of(std::move(args))};
  if (!scalars.empty()) operands.push_back(make<ShapeExpr>(std::move(scalars)));
  return operands;
}

}  // namespace

const Operator call_tir_operator{
    .name = "call_tir",
    .inputs = {{"function"}, {"args"}, {"scalars", Input::optional, Input::shape}},
    .infer = infer_call_tir,
    .meaning = RuntimeKernel{"call_tir"},
};

const Operator call_tir_inplace_operator{
    .name = "call_tir_inplace",
    .inputs = {{"function"}, {"args"}, {"scalars", Input::optional, Input::shape}},
    .attributes = attributes_of<InplaceAttributes>(),
    .infer = infer_call_tir_inplace,
    .meaning = RuntimeKernel{"call_tir_inplace"},
};

const Operator alloc_tensor_operator{
    .name = "builtin.alloc_tensor",
    .inputs = {{"shape", Input::required, Input::shape}},
    .attributes = attributes_of<AllocTensorAttributes>(),
    .infer = infer_alloc_tensor,
    .meaning = RuntimeKernel{"alloc_tensor"},
    .reference = "numpy.empty(shape, dtype)",
};

Expr global_var(std::string name) { return make<GlobalVar>(std::move(name)); }

Result<Expr> call_tir(const std::string& function, std::vector<Expr> args, std::vector<StructInfo> outputs,
                      std::vector<ir::Expr> scalars) {
  return make_call(call_tir_operator, operands_of(function, std::move(args), std::move(scalars)), {}, {},
                   std::move(outputs));
}

Result<Expr> call_tir_inplace(const std::string& function, std::vector<Expr> args, std::vector<ir::Expr> scalars,
                              ir::Origin origin) {
  const auto last = static_cast<int64_t>(args.size()) - 1;
  const StructInfo info = args.back()->struct_info;
  return make_call(call_tir_inplace_operator, operands_of(function, std::move(args), std::move(scalars)),
                   make<InplaceAttributes>(std::vector<int64_t>{last}), std::move(origin), {info});
}

Result<Expr> alloc_tensor(const TensorStructInfo& info) {
  return make_call(alloc_tensor_operator, {make<ShapeExpr>(*info.shape)}, make<AllocTensorAttributes>(info.dtype));
}

std::optional<CallTir> as_call_tir(const Expr& e) {
  const auto* call = e.as<Call>();
  const Operator* op = call ? callee_operator(*call) : nullptr;
  if (op != &call_tir_operator && op != &call_tir_inplace_operator) return std::nullopt;
  CallTir parts{call->args[0].as<GlobalVar>()->name, call->args[1].as<Tuple>()->items, call->struct_info_args, {}};
  if (call->args.size() > 2 && call->args[2]) parts.scalars = call->args[2].as<ShapeExpr>()->values;
  if (op == &call_tir_inplace_operator)
    parts.inplace_indices = static_cast<const InplaceAttributes*>(call->attributes.get())->inplace_indices;
  return parts;
}

std::optional<size_t> CallTir::updated(size_t k) const {
  if (k >= inplace_indices.size() || inplace_indices[k] < 0) return std::nullopt;
  return static_cast<size_t>(inplace_indices[k]);
}

bool is_alloc_tensor(const Expr& e) {
  const auto* call = e.as<Call>();
  return call && callee_operator(*call) == &alloc_tensor_operator;
}

}  // namespace lathe::relax
