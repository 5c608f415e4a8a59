#include "ops/composites/expansion.h"

#include <unordered_set>

#include "ir/visit.h"

namespace lathe::ops::composites {

namespace {

// What symbols of the expansion's own say is not known to who calls: their tensors keep their rank.
StructInfo without_symbols(const StructInfo& info, const std::unordered_set<const ir::Node*>& known) {
  const auto is_known = [&](const StructInfo& part) {
    const std::vector<ir::Var> used = ir::free_vars(part);
    return std::all_of(used.begin(), used.end(), [&](const ir::Var& symbol) { return known.count(symbol.get()) > 0; });
  };
  if (const auto* items = info.as<relax::TupleStructInfo>()) {
    std::vector<StructInfo> kept;
    for (const StructInfo& item : items->items) kept.push_back(without_symbols(item, known));
    return ir::make<relax::TupleStructInfo>(std::move(kept));
  }
  const auto* tensor = info.as<TensorStructInfo>();
  return !tensor || is_known(info) ? info : relax::tensor_info_of_rank(tensor->ndim, tensor->dtype);
}

Result<StructInfo> infer_by_expansion(const InferContext& c) {
  const auto call =
      ir::make<relax::Call>(relax::op_ref(c.op), c.args, relax::AttributesRef(c.attributes), std::vector<StructInfo>{});
  BlockBuilder scratch;
  scratch.begin_scope();
  const relax::Expr result = TRY(std::get<relax::Composite>(c.op.meaning)(scratch, *call));
  const StructInfo info = scratch.end_scope(result)->struct_info;
  std::unordered_set<const ir::Node*> known;
  for (const relax::Expr& arg : c.args) {
    if (!arg) continue;
    for (const ir::Var& symbol : ir::free_vars(arg->struct_info)) known.insert(symbol.get());
    if (arg.is<relax::ShapeExpr>() || arg.is<relax::PrimValue>())
      for (const ir::Var& symbol : ir::free_vars(arg)) known.insert(symbol.get());
  }
  return without_symbols(info, known);
}

}  // namespace

const Value& Expansion::any(size_t i) const {
  if (!has(i)) refuse(codes::wrong_arguments, "argument " + std::to_string(i) + " is missing");
  return call_.args[i];
}

const Value& Expansion::tensor(size_t i) const {
  const Value& x = any(i);
  const TensorStructInfo* info = relax::as_tensor(x);
  if (!info) refuse(codes::wrong_arguments, "argument " + std::to_string(i) + " is no tensor");
  if (!info->shape || info->dtype.is_void())
    refuse(codes::wrong_arguments,
           "argument " + std::to_string(i) + " is a tensor of unknown shape or dtype; R.match_cast gives it symbols");
  return x;
}

std::vector<Value> Expansion::tensors(size_t first) const {
  std::vector<Value> given(call_.args.begin() + static_cast<ptrdiff_t>(std::min(first, count())), call_.args.end());
  if (given.size() == 1 && given[0] && given[0]->struct_info.is<relax::TupleStructInfo>()) {
    const Value whole = given[0];
    given.clear();
    const size_t items = whole->struct_info.as<relax::TupleStructInfo>()->items.size();
    for (size_t i = 0; i < items; ++i) given.push_back(item(whole, static_cast<int64_t>(i)));
  }
  for (const Value& x : given) {
    const TensorStructInfo* info = x ? relax::as_tensor(x) : nullptr;
    if (!info || !info->shape || info->dtype.is_void())
      refuse(codes::wrong_arguments, "an item is no tensor of known shape and dtype");
  }
  return given;
}

Shape Expansion::shape(size_t i) const {
  const auto* values = any(i)->struct_info.as<relax::ShapeStructInfo>();
  if (!values || !values->values)
    refuse(codes::wrong_arguments, "argument " + std::to_string(i) + " is no shape whose extents are known");
  return *values->values;
}

Expr Expansion::scalar(size_t i) const {
  const Value& x = any(i);
  if (const auto* value = x.as<relax::PrimValue>()) return value->value;
  const auto* constant = x.as<relax::Constant>();
  if (!constant || constant->data->elements() != 1)
    refuse(codes::wrong_arguments, "argument " + std::to_string(i) + " is no scalar");
  const ir::TensorDataNode& data = *constant->data;
  return data.dtype.is_floating() ? ir::constant(data.dtype, ir::float_at(data, 0))
                                  : ir::constant(data.dtype, ir::int_at(data, 0));
}

Value Expansion::call(const Operator& op, std::vector<Value> args, relax::AttributesRef attributes) const {
  return b.call(op, std::move(args), std::move(attributes)).value_or_throw();
}

Value Expansion::call(std::string_view name, std::vector<Value> args, relax::AttributesRef attributes) const {
  const Operator* op = default_operators().find(name);
  support::require(op, "a composite calls an operator that is not there");
  return call(*op, std::move(args), std::move(attributes));
}

Value Expansion::permute(Value x, Axes axes) const {
  if (std::is_sorted(axes.begin(), axes.end())) return x;
  return call(ops::permute_dims, {std::move(x)}, ir::make<PermuteDimsAttributes>(std::optional(std::move(axes))));
}

Value Expansion::tuple(std::vector<Value> items) const {
  std::vector<StructInfo> infos;
  for (const Value& each : items) infos.push_back(each->struct_info);
  return relax::with_struct_info(ir::make<relax::Tuple>(std::move(items)),
                                 ir::make<relax::TupleStructInfo>(std::move(infos)));
}

int64_t Expansion::axis(int64_t given, size_t rank, std::string_view name) const {
  const auto end = static_cast<int64_t>(rank);
  if (given < -end || given >= end)
    refuse(codes::axis_out_of_range,
           std::string(name) + " " + std::to_string(given) + " of a tensor of rank " + std::to_string(rank));
  return given < 0 ? given + end : given;
}

Axes Expansion::axes(const std::optional<std::vector<int64_t>>& given, size_t rank) const {
  Axes all;
  if (!given)
    for (size_t d = 0; d < rank; ++d) all.push_back(static_cast<int64_t>(d));
  else
    for (const int64_t each : *given) all.push_back(axis(each, rank));
  std::sort(all.begin(), all.end());
  if (std::adjacent_find(all.begin(), all.end()) != all.end())
    refuse(codes::axis_out_of_range, "an axis is named twice");
  return all;
}

void Expansion::refuse(support::Code code, const std::string& message) const {
  const Operator* op = relax::callee_operator(call_);
  throw support::DiagnosticError(relax::wrong(code, "R." + std::string(op->name) + ": " + message));
}

Operator composite(std::string_view name, std::vector<Input> inputs, const relax::AttributesClass* attributes,
                   Expand expand, std::string_view reference) {
  return {
      .name = name,
      .inputs = std::move(inputs),
      .attributes = attributes,
      .infer = infer_by_expansion,
      .meaning = relax::Composite([expand](BlockBuilder& b, const relax::Call& call) {
        return support::catch_diagnostics([&]() -> Result<relax::Expr> { return expand(Expansion(b, call)); });
      }),
      .reference = reference,
  };
}

}  // namespace lathe::ops::composites
