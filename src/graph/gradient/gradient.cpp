#include "graph/codes.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/build.h"
#include "ops/gradient/backward.h"
#include "relax/infer.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(gradient_takes_another_parameter, "graph_test", "the gradient of one parameter is given for another");

namespace {

using ops::gradient::carries_gradient;

support::Failure wrong_request(std::string message) {
  return support::Failure{{support::Diagnostic{.code = codes::gradient_request, .message = std::move(message)}}};
}

class Gradient {
 public:
  Gradient(ir::IRModule module, const GradientRequest& request)
      : builder_(std::move(module)), request_(request), backward_(builder_, expanded_) {}

  Result<ir::IRModule> run(const ir::PassContext& context) {
    expanded_ = TRY(expand_composites(builder_.module(), context));
    const auto function = expanded_.find_as<relax::FunctionNode>(request_.function);
    if (!function) return wrong_request("there is no function '" + request_.function + "'");
    builder_.begin_scope();
    builder_.begin_dataflow();
    Replacement copies;
    const std::vector<Var> params = ops::gradient::copy_parameters(function->params, copies);
    TRY(choose_wanted(params));
    const auto body = TRY(backward_.copy(function->body, std::move(copies)));
    TRY(seed(body.result));
    TRY(backward_.run(body.bindings));
    const Expr both = TRY(with_gradients(body.result));
    const Expr all = request_.replaces ? flat(both) : both;
    const Expr scope = builder_.end_scope(all);
    std::vector<Binding> bindings;
    for (const BindingBlock& block : scope.as<SeqExpr>()->blocks)
      bindings.insert(bindings.end(), block->bindings.begin(), block->bindings.end());
    ir::IRModule made = builder_.finish();
    made.set(request_.replaces ? request_.function : made.unique_name(request_.function + "_adjoint"),
             make_function(params, std::move(bindings), all, attributes_of(*function), function->is_pure));
    return made;
  }

 private:
  support::Status choose_wanted(const std::vector<Var>& params) {
    if (!request_.parameters) {
      for (const Var& param : params)
        if (carries_gradient(param->struct_info)) wanted_.push_back(param);
      if (wanted_.empty()) return wrong_request("no parameter of '" + request_.function + "' is a tensor of floats");
    } else {
      for (const std::string& name : *request_.parameters) {
        const auto it =
            std::find_if(params.begin(), params.end(), [&](const Var& param) { return param->name == name; });
        if (it == params.end()) return wrong_request("'" + request_.function + "' has no parameter '" + name + "'");
        if (!carries_gradient((*it)->struct_info))
          return wrong_request("the parameter '" + name + "' is no tensor of floats, which alone have gradients");
        wanted_.push_back(*it);
      }
    }
    for (const Var& param : wanted_) backward_.want(param);
    return support::success();
  }

  support::Status seed(const Expr& result) {
    Expr target = result;
    if (const auto* tuple = result.as<Tuple>()) {
      const auto count = static_cast<int64_t>(tuple->items.size());
      if (request_.target < 0 || request_.target >= count)
        return wrong_request("'" + request_.function + "' has " + std::to_string(count) + " results, not a result " +
                             std::to_string(request_.target));
      target = tuple->items[static_cast<size_t>(request_.target)];
    } else if (request_.target != 0) {
      return wrong_request("'" + request_.function + "' has one result, not a result " +
                           std::to_string(request_.target));
    }
    const auto* info = as_tensor(target);
    if (!carries_gradient(target->struct_info) || !info->shape || !info->shape->empty())
      return wrong_request("the result whose gradient is asked for is " +
                           (info ? relax::text_of(*info) : std::string("no tensor")) +
                           ", not a scalar tensor of floats");
    return backward_.add(target, ops::build::scalar(info->dtype, 1));
  }

  // (result, (gradients…)).
  Result<Expr> with_gradients(const Expr& result) {
    std::vector<Expr> gradients;
    for (const Var& param : wanted_) {
      const Var& from = support::flip(gradient_takes_another_parameter) ? wanted_[0] : param;
      const Expr adjoint = backward_.of(from);
      gradients.push_back(adjoint ? adjoint : TRY(ops::gradient::zeros_like(builder_, param)));
    }
    return tuple_of({result, tuple_of(std::move(gradients))});
  }

  // The items of a tuple of tuples in one.
  static Expr flat(const Expr& nested) {
    std::vector<Expr> items;
    const std::function<void(const Expr&)> add = [&](const Expr& e) {
      if (const auto* tuple = e.as<Tuple>()) {
        for (const Expr& item : tuple->items) add(item);
        return;
      }
      items.push_back(e);
    };
    add(nested);
    return tuple_of(std::move(items));
  }

  // What a model calls its inputs stays. Its outputs are followed by the gradients, each named after its parameter.
  Attributes attributes_of(const relax::FunctionNode& function) const {
    Attributes attrs = function.attrs;
    if (!request_.replaces) {
      attrs.erase("output_names");
      attrs.erase("global_symbol");
    } else if (const auto* names = attrs.get<ir::Value::List>("output_names")) {
      ir::Value::List all = *names;
      for (const Var& param : wanted_) all.push_back("gradient_" + param->name);
      attrs.set("output_names", std::move(all));
    }
    return attrs;
  }

  BlockBuilder builder_;
  ir::IRModule expanded_;
  const GradientRequest& request_;
  ops::gradient::Backward backward_;
  std::vector<Var> wanted_;
};

}  // namespace

Result<IRModule> gradient(IRModule module, const GradientRequest& request, const PassContext& context) {
  return support::catch_diagnostics([&] { return Gradient(std::move(module), request).run(context); });
}

}  // namespace lathe::graph
