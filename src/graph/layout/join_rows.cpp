#include "graph/layout/forms.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(join_rows_misses_one, "graph_test", "rows that are joined are as many as the last of their axes has");

namespace {

// The axes before the last of what a product with one matrix reads, where there are several that count, and not all of
// their extents are known: else the schedule rules see how they go together.
std::optional<Shape> rows_of_product(const Call& call) {
  if (callee_operator(call) != &ops::matmul) return std::nullopt;
  const Shape *a = shape_of(call.args[0]), *b = shape_of(call.args[1]);
  const auto& attributes = *static_cast<const ops::MatmulAttributes*>(call.attributes.get());
  const size_t matrix = attributes.b_layout == "KN" ? 2 : 3;  // packed, it has panels
  if (!a || !b || b->size() != matrix || a->size() < 3) return std::nullopt;
  Shape rows(a->begin(), a->end() - 1);
  const auto counts = [](const ir::Expr& extent) { return !ir::is_int(extent, 1); };
  const bool is_known = std::all_of(rows.begin(), rows.end(), [](const ir::Expr& e) { return ir::as_int(e); });
  if (is_known || std::count_if(rows.begin(), rows.end(), counts) < 2) return std::nullopt;
  return rows;
}

bool begins_with(const Shape& shape, const Shape& rows) {
  return shape.size() == rows.size() + 1 && std::equal(rows.begin(), rows.end(), shape.begin(), relax::same_extent);
}

ir::Expr count_of(const Shape& rows) {
  return support::flip(join_rows_misses_one) ? rows.back() : relax::simplified(ir::product(rows));
}

Result<Expr> as_rows(Emitter& emitter, const Expr& e, Shape shape) {
  return emitter.call(ops::reshape, {e, make<ShapeExpr>(std::move(shape))}, {}, "rows");
}

// A kernel of one product, with what is elementwise around it, over joined rows.
struct Joined {
  Function function;
  std::vector<bool> has_rows;  // of each parameter: it is reshaped to rows; else it stays
};

class RowJoiner {
 public:
  explicit RowJoiner(const Function& function) : function_(function) {}

  std::optional<Joined> run() {
    if (!find_product() || !look()) return std::nullopt;
    BlockBuilder b;
    const ir::Expr count = ir::size_var("rows");
    std::vector<Var> params;
    for (size_t i = 0; i < function_->params.size(); ++i) {
      const Var& old = function_->params[i];
      StructInfo info = old->struct_info;
      if (joined_.has_rows[i]) info = tensor_info({count, shape_of(old)->back()}, as_tensor(old)->dtype);
      params.push_back(relax_var(old->name, std::move(info)));
      replaced_[old.get()] = params.back();
    }
    b.begin_function("joined", params, function_->attrs);
    b.begin_dataflow();
    for (const Binding& binding : all_bindings(function_)) {
      const auto& bound = *binding.as<VarBinding>();
      const auto& call = *bound.value.as<Call>();
      std::vector<Expr> args;
      for (const Expr& arg : call.args) {
        const auto known = replaced_.find(arg.get());
        args.push_back(known == replaced_.end() ? arg : known->second);
      }
      const Result<Expr> value = make_call(*callee_operator(call), std::move(args), call.attributes,
                                           bound.value->origin(), call.struct_info_args);
      if (!value.ok()) return std::nullopt;
      const bool is_result = Expr(bound.var).same_as(function_->body.as<SeqExpr>()->body);
      replaced_[bound.var.get()] = is_result ? b.emit_output(*value, bound.var->name) : b.emit(*value, bound.var->name);
    }
    b.end_block();
    joined_.function = b.end_function(replaced_.at(function_->body.as<SeqExpr>()->body.get()));
    return joined_;
  }

 private:
  bool find_product() {
    for (const Binding& binding : all_bindings(function_)) {
      const auto* bound = binding.as<VarBinding>();
      const auto* call = bound ? bound->value.as<Call>() : nullptr;
      if (!call || !callee_operator(*call)) return false;
      if (callee_operator(*call) != &ops::matmul) continue;
      const auto rows = rows_of_product(*call);
      if (product_ || !rows) return false;
      product_ = call;
      rows_ = *rows;
    }
    return product_ != nullptr;
  }

  // Whether all values are rows, or go with any number of rows.
  bool look() {
    for (const Binding& binding : all_bindings(function_)) {
      const auto& bound = *binding.as<VarBinding>();
      const auto& call = *bound.value.as<Call>();
      const Operator& op = *callee_operator(call);
      const bool is_elementwise =
          op.fusion <= FusionKind::broadcast && std::holds_alternative<TeExpression>(op.meaning);
      const Shape* shape = shape_of(bound.var);
      if (!shape || !begins_with(*shape, rows_)) return false;
      if (&call != product_ && (!is_elementwise || op.is_view)) return false;
      for (const Expr& arg : call.args) {
        const bool is_weight = &call == product_ && arg.same_as(call.args[1]);
        if (arg && arg.is<Constant>() && !is_weight && shape_of(arg)->size() > 1) return false;
        if (arg && !shape_of(arg)) return false;
      }
    }
    for (const Var& param : function_->params) {
      const Shape* shape = shape_of(param);
      if (!shape) return false;
      const bool is_weight = Expr(param).same_as(product_->args[1]);
      joined_.has_rows.push_back(!is_weight && begins_with(*shape, rows_));
      if (!is_weight && !joined_.has_rows.back() && shape->size() > 1) return false;
    }
    return shape_of(function_->body.as<SeqExpr>()->body) != nullptr;
  }

  const Function& function_;
  const Call* product_ = nullptr;
  Shape rows_;
  Joined joined_;
  std::unordered_map<const ir::Node*, Expr> replaced_;
};

}  // namespace

Result<IRModule> join_rows(IRModule module, const PassContext&) {
  std::map<std::string, Joined> joined;
  // Kernels for likely sizes know how many rows there are along each axis.
  for (const auto& [name, any] : module)
    if (const auto* function = any.as<FunctionNode>(); function && function->attrs.contains("tir_var_likely"))
      return module;
  for (const auto& [name, any] : module) {
    const auto* function = any.as<FunctionNode>();
    if (!function || !function->attrs.get_or("primitive", false)) continue;
    if (auto with_rows = RowJoiner(Function(function)).run()) joined.emplace(name, *std::move(with_rows));
  }
  for (const auto& [name, with_rows] : joined) module.set(name, with_rows.function);
  const auto join = [&](Emitter& emitter, const Var& var, const Expr& value) -> Result<Expr> {
    const auto* call = value.as<Call>();
    const Shape* shape = call ? shape_of(var) : nullptr;
    if (!shape) return Expr();
    const auto* callee = call->callee.as<GlobalVar>();
    const auto kernel = callee ? joined.find(callee->name) : joined.end();
    std::optional<Shape> rows = callee ? std::nullopt : rows_of_product(*call);
    if (kernel != joined.end()) rows = Shape(shape->begin(), shape->end() - 1);
    if (!rows) return Expr();
    const ir::Expr count = count_of(*rows);
    Call parts = *call;
    for (size_t i = 0; i < parts.args.size(); ++i)
      if (callee ? kernel->second.has_rows[i] : i == 0)
        parts.args[i] = TRY(as_rows(emitter, parts.args[i], {count, shape_of(parts.args[i])->back()}));
    const Expr called = callee ? make<GlobalVar>(callee->name) : parts.callee;  // whose type has changed
    Expr product = make<Call>(called, parts.args, parts.attributes, parts.struct_info_args);
    product = with_struct_info(std::move(product), tensor_info({count, shape->back()}, as_tensor(var)->dtype));
    product = emitter.emit(ir::with_origin(std::move(product), value->origin()), "product");
    return make_call(ops::reshape, {product, make<ShapeExpr>(*shape)});
  };
  TRY(change_functions(module, [&](const std::string&, const Function& function) -> Result<Function> {
    if (function->attrs.get_or("primitive", false)) return function;
    return rewrite_bindings(function, join);
  }));
  return module;
}

}  // namespace lathe::graph
