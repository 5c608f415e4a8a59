#include "lower/legalize/group.h"

#include <unordered_set>

#include "ir/visit.h"
#include "lower/codes.h"
#include "relax/strings.h"
#include "support/mutation.h"

namespace lathe::lower {

LATHE_FAULT(legalize_works_in_place, "lower_test", "a kernel that reads other elements may overwrite its operand");

namespace {

using relax::Expr;

support::Diagnostic refuse(const relax::Expr& e, std::string message) {
  support::Diagnostic d{.code = codes::no_loops, .message = std::move(message)};
  if (e->origin()) d.place = *e->origin();
  return d;
}

// Whether the tensor is a reduction over a length that only the run knows, other than a sum of products. Its block has
// a start of its own then, which writes the tensor, too; schedule rules take such blocks apart where something else
// reads them. A single row stays as it is: it may be longer than memory, in which what is computed of it would lie.
bool reduces_unknown_length(const te::Tensor& tensor) {
  if (!tensor.op || tensor.op->body.empty()) return false;
  const auto is_one = [](const ir::Expr& extent) { return ir::is_int(extent, 1); };
  if (std::all_of(tensor.shape().begin(), tensor.shape().end(), is_one)) return false;
  const auto* reduce = tensor.op->body[0].as<ir::Reduce>();
  if (!reduce) return false;
  ir::Expr source = reduce->sources[0];
  while (const auto* cast = source.as<ir::Cast>()) source = cast->value;
  if (source.is<ir::Mul>()) return false;
  return std::any_of(tensor.op->reduce_axis.begin(), tensor.op->reduce_axis.end(),
                     [](const te::IterVar& k) { return !ir::as_int(k->dom.extent); });
}

te::Tensor copied(const te::Tensor& tensor) {
  return te::compute(
      tensor.shape(), [&](const std::vector<ir::Expr>& i) { return tensor(i); }, {tensor}, tensor.op->name + "_result");
}

class GroupLowering {
 public:
  explicit GroupLowering(const Group& group) : group_(group) {}

  support::Result<LoweredGroup> run() {
    for (const relax::Var& param : group_.params) TRY(bind_parameter(param));
    std::optional<tir::Function> whole;
    for (const auto& binding : group_.bindings) TRY(lower_binding(*binding, whole));
    collect_symbols();
    if (whole) return LoweredGroup{finish(*whole), symbols_as_exprs()};

    std::vector<te::Tensor> inputs, outputs;
    for (const relax::Var& param : group_.params) inputs.push_back(tensors_.at(param.get()).at(0));
    for (const Expr& result : group_.results)
      for (const te::Tensor& tensor : tensors_.at(result.get()))
        outputs.push_back(reduces_unknown_length(tensor) ? copied(tensor) : tensor);
    return LoweredGroup{finish(te::create_prim_func(inputs, outputs, symbols_, {})), symbols_as_exprs()};
  }

 private:
  support::Status bind_parameter(const relax::Var& param) {
    const auto* info = relax::as_tensor(param);
    if (!info || !info->shape) return refuse(param, "the shape of '" + param->name + "' is not known");
    tensors_[param.get()] = {te::placeholder(*info->shape, relax::loop_dtype(info->dtype), param->name)};
    return support::success();
  }

  // A constant of one element, as a tensor computed from nothing: inlined later.
  static te::Tensor scalar_tensor(const relax::Constant& constant) {
    const ir::TensorDataNode& data = *constant.data;
    const ir::Expr value = data.dtype.is_floating() ? ir::constant(data.dtype, ir::float_at(data, 0))
                                                    : ir::constant(relax::loop_dtype(data.dtype), ir::int_at(data, 0));
    std::vector<ir::Expr> shape;
    for (const int64_t extent : data.shape) shape.push_back(ir::int64(extent));
    return te::compute(std::move(shape), [&](const std::vector<ir::Expr>&) { return value; }, {}, "constant");
  }

  support::Result<std::optional<te::Tensor>> tensor_of(const Expr& arg) {
    if (!arg) return std::optional<te::Tensor>();
    if (const auto* constant = arg.as<relax::Constant>()) {
      if (constant->data->elements() != 1) return refuse(arg, "a constant of several elements inside a fused group");
      return std::optional(scalar_tensor(*constant));
    }
    const auto it = tensors_.find(arg.get());
    if (it != tensors_.end()) return std::optional(it->second.at(0));
    return std::optional<te::Tensor>();
  }

  support::Status lower_binding(const relax::VarBinding& binding, std::optional<tir::Function>& whole) {
    if (const auto* item = binding.value.as<relax::TupleGetItem>()) {
      tensors_[binding.var.get()] = {tensors_.at(item->tuple.get()).at(static_cast<size_t>(item->index))};
      return support::success();
    }
    const auto* call = binding.value.as<relax::Call>();
    const relax::Operator* op = call ? relax::callee_operator(*call) : nullptr;
    if (!op) return refuse(binding.value, "only operators have a meaning as loops");
    relax::LowerContext context{*call, call->attributes.get(), {}};
    for (const Expr& arg : call->args) {
      if (const auto* tuple = arg ? arg.as<relax::Tuple>() : nullptr) {
        for (const Expr& item : tuple->items) context.tensors.push_back(TRY(tensor_of(item)));
        continue;
      }
      context.tensors.push_back(TRY(tensor_of(arg)));
    }
    if (const auto* expression = std::get_if<relax::TeExpression>(&op->meaning)) {
      tensors_[binding.var.get()] = (*expression)(context);
      return support::success();
    }
    if (const auto* builder = std::get_if<relax::TirBuilder>(&op->meaning)) {
      support::require(group_.bindings.size() == 1, "an operator given as a program is a group of its own");
      whole = (*builder)(context);
      return support::success();
    }
    return refuse(binding.value, "the operator " + std::string(op->name) + " has no meaning as loops");
  }

  // The symbolic dimensions in use, in order of first use.
  void collect_symbols() {
    std::unordered_set<const ir::Node*> seen;
    const auto collect = [&](const NodeRef& root) {
      for (const ir::Var& v : ir::free_vars(root))
        if (v->dtype == ir::DType::int64() && seen.insert(v.get()).second) symbols_.push_back(v);
    };
    for (const relax::Var& param : group_.params) collect(param->struct_info);
    for (const auto& binding : group_.bindings) {
      collect(binding->var->struct_info);
      if (const auto* call = binding->value.as<relax::Call>())
        for (const Expr& arg : call->args)
          if (arg && (arg.is<relax::ShapeExpr>() || arg.is<relax::PrimValue>())) collect(arg);
    }
  }
  using NodeRef = ir::NodeRef;

  std::vector<ir::Expr> symbols_as_exprs() const { return {symbols_.begin(), symbols_.end()}; }

  tir::Function finish(const tir::Function& function) const {
    return ir::with(*function, [&](tir::PrimFunc& copy) {
      copy.attrs.set("global_symbol", group_.name);
      const ir::Value::List pairs = in_place_pairs();
      if (!pairs.empty()) copy.attrs.set("inplace", pairs);
    });
  }

  // Parameters whose memory the result may take: every operator reads element (i…) of it for element (i…) only.
  ir::Value::List in_place_pairs() const {
    ir::Value::List pairs;
    if (group_.results.size() != 1) return pairs;
    const auto* result = relax::as_tensor(group_.results[0]);
    if (!result || !result->shape) return pairs;
    for (const auto& binding : group_.bindings) {
      const auto* call = binding->value.as<relax::Call>();
      const relax::Operator* op = call ? relax::callee_operator(*call) : nullptr;
      const bool pointwise = op && op->fusion <= relax::FusionKind::broadcast;
      if (!pointwise && !support::flip(legalize_works_in_place)) return pairs;
    }
    for (size_t i = 0; i < group_.params.size(); ++i) {
      const auto* info = relax::as_tensor(group_.params[i]);
      bool same = info && info->dtype == result->dtype && info->shape->size() == result->shape->size();
      for (size_t d = 0; same && d < info->shape->size(); ++d)
        same = ir::structural_equal((*info->shape)[d], (*result->shape)[d]);
      if (same) pairs.push_back(ir::Value::List{static_cast<int64_t>(i), static_cast<int64_t>(group_.params.size())});
    }
    return pairs;
  }

  const Group& group_;
  std::unordered_map<const ir::Node*, std::vector<te::Tensor>> tensors_;
  std::vector<ir::Var> symbols_;
};

}  // namespace

support::Result<LoweredGroup> lower_group(const Group& group) {
  return support::catch_diagnostics([&] { return GroupLowering(group).run(); });
}

}  // namespace lathe::lower
