#include "driver/codes.h"
#include "driver/rewrite/rewrite_model.h"
#include "graph/rewrite_bindings.h"
#include "interchange/onnx/nodes/node_call.h"
#include "ir/visit.h"
#include "relax/outline.h"

namespace lathe::driver {

namespace {

[[noreturn]] void refuse(std::string message, std::string help = {}) {
  throw support::DiagnosticError(
      support::Diagnostic{.code = codes::no_value, .message = std::move(message), .help = std::move(help)});
}

class Extraction {
 public:
  explicit Extraction(const relax::Function& main) : main_(main), bindings_(graph::all_bindings(main)) {
    for (const relax::Var& param : main->params) values_.emplace(param->name, param);
    for (const relax::Binding& binding : bindings_)
      if (const auto* bound = binding.as<relax::VarBinding>()) name(*bound);
    const relax::Expr& result = main->body.as<relax::SeqExpr>()->body;
    results_ = result.as<relax::Tuple>() ? result.as<relax::Tuple>()->items : std::vector<relax::Expr>{result};
    if (const auto* names = main->attrs.get<ir::Value::List>("output_names"))
      for (size_t i = 0; i < names->size() && i < results_.size(); ++i) {
        output_names_.push_back(*names->at(i).get<std::string>());
        values_[output_names_.back()] = results_[i];
      }
  }

  relax::Function run(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    relax::Replacement replaced;
    std::unordered_map<const ir::Node*, std::string> names;
    for (const std::string& name : inputs) {
      const relax::Expr& value = find(name);
      if (!value.is<relax::VarNode>()) refuse("the value '" + name + "' is a constant, which cannot be an input");
      replaced[value.get()] = relax::relax_var(name, open_info(value->struct_info, name));
      given_.push_back(replaced[value.get()].as<relax::VarNode>());
    }
    if (!outputs.empty()) {
      results_.clear();
      output_names_ = outputs;
      for (const std::string& name : outputs) results_.push_back(find(name));
    }
    std::vector<relax::Binding> kept;
    for (const relax::Binding& binding : bindings_) {
      const auto* bound = binding.as<relax::VarBinding>();
      if (!bound || !replaced.count(bound->var.get())) kept.push_back(relax::replace_vars(binding, replaced));
    }
    for (relax::Expr& result : results_) result = relax::replace_vars(result, replaced);
    kept = needed(std::move(kept));
    ir::Attributes attrs = main_->attrs;
    ir::Value::List list;
    for (const std::string& name : output_names_) list.emplace_back(name);
    attrs.set("output_names", std::move(list));
    return graph::make_function(params(inputs), std::move(kept), result(), attrs, main_->is_pure);
  }

 private:
  // The names of what a binding gives, as the model calls it.
  void name(const relax::VarBinding& bound) {
    if (const auto* item = bound.value.as<relax::TupleGetItem>()) {
      const auto it = items_.find(item->tuple.get());
      if (it != items_.end()) values_.emplace(it->second.at(static_cast<size_t>(item->index)), bound.var);
      return;
    }
    const onnx::NodeCallAttributes* node = onnx::as_node_call(bound.value);
    if (!node) return;
    std::vector<std::string> there = node->given_outputs();
    if (there.size() == 1)
      values_.emplace(there[0], bound.var);
    else
      items_[bound.var.get()] = std::move(there);
  }

  const relax::Expr& find(const std::string& name) const {
    const auto it = values_.find(name);
    if (it == values_.end())
      refuse("the model has no value called '" + name + "'",
             "a value that shapes or constants decide, or that another value is, has no node of its own");
    return it->second;
  }

  // An input tells its symbols as they are: other extents get a symbol of their own.
  static relax::StructInfo open_info(const relax::StructInfo& info, const std::string& name) {
    const auto* tensor = info.as<relax::TensorStructInfo>();
    if (!tensor) return info;
    if (tensor->ndim < 0) refuse("the rank of '" + name + "' is not known, so it cannot be an input");
    std::vector<ir::Expr> shape;
    for (int64_t d = 0; d < tensor->ndim; ++d) {
      const ir::Expr extent = tensor->shape ? tensor->shape->at(static_cast<size_t>(d)) : ir::Expr();
      const bool is_plain = extent && (ir::as_int(extent) || extent.is<ir::VarNode>());
      shape.push_back(is_plain ? extent : ir::Expr(ir::size_var(name + "_dim_" + std::to_string(d))));
    }
    return relax::tensor_info(std::move(shape), tensor->dtype);
  }

  std::vector<relax::Binding> needed(std::vector<relax::Binding> bindings) {
    const auto use = [&](const relax::Expr& e) {
      ir::pre_order(e, [&](const ir::NodeRef& n) {
        if (n.is<relax::VarNode>()) used_.insert(n.get());
        return !n.is<relax::VarNode>();
      });
    };
    for (const relax::Expr& result : results_) use(result);
    std::vector<relax::Binding> kept;
    for (auto it = bindings.rbegin(); it != bindings.rend(); ++it) {
      const auto* bound = it->as<relax::VarBinding>();
      if (!bound || !used_.count(bound->var.get())) continue;
      use(bound->value);
      kept.push_back(*it);
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
  }

  // The given ones; without them those of the model's that are needed.
  std::vector<relax::Var> params(const std::vector<std::string>& inputs) const {
    std::vector<relax::Var> made;
    for (const relax::VarNode* var : given_) made.emplace_back(var);
    for (const relax::Var& param : main_->params) {
      if (!used_.count(param.get())) continue;
      if (!inputs.empty()) refuse("the outputs need the input '" + param->name + "' too", "name it among the inputs");
      made.push_back(param);
    }
    return made;
  }

  relax::Expr result() const {
    if (results_.size() == 1) return results_[0];
    std::vector<relax::StructInfo> infos;
    for (const relax::Expr& each : results_) infos.push_back(each->struct_info);
    return relax::with_struct_info(ir::make<relax::Tuple>(results_),
                                   ir::make<relax::TupleStructInfo>(std::move(infos)));
  }

  relax::Function main_;
  std::vector<relax::Binding> bindings_;
  std::unordered_map<std::string, relax::Expr> values_;
  std::unordered_map<const ir::Node*, std::vector<std::string>> items_;
  std::vector<std::string> output_names_;
  std::vector<relax::Expr> results_;
  std::vector<const relax::VarNode*> given_;
  std::unordered_set<const ir::Node*> used_;
};

}  // namespace

support::Result<ir::IRModule> extract_nodes(ir::IRModule module, const std::vector<std::string>& inputs,
                                            const std::vector<std::string>& outputs) {
  return support::catch_diagnostics([&]() -> support::Result<ir::IRModule> {
    const auto main = module.find_as<relax::FunctionNode>("main");
    module.set("main", Extraction(main).run(inputs, outputs));
    return module;
  });
}

}  // namespace lathe::driver
