// Gradient (ai.onnx.preview.training): the part of the graph that leads from some values to another is taken again at
// the inputs, and differentiated.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build.h"
#include "ops/gradient/backward.h"

namespace lathe::onnx::operators {

namespace {

using ops::gradient::Backward;
using ops::gradient::CopiedBody;
namespace build = ops::build;

void gradient(NodeImport& c) {
  std::vector<std::string> names = c.attributes.texts("xs").value_or(std::vector<std::string>{});
  const std::vector<std::string> others = c.attributes.texts("zs").value_or(std::vector<std::string>{});
  const std::string result = c.attributes.text("y", "");
  const size_t wanted = names.size();
  names.insert(names.end(), others.begin(), others.end());
  if (wanted == 0 || c.input_count() != names.size() || c.output_count() > wanted)
    c.fail(codes::wrong_node, std::to_string(c.input_count()) + " inputs and " + std::to_string(c.output_count()) +
                                  " outputs, but 'xs' and 'zs' name " + std::to_string(wanted) + " and " +
                                  std::to_string(others.size()) + " values");

  // The part of the graph as a sequence over variables of its own, which are then the inputs, each a value by itself:
  // one tensor may be given for two names.
  relax::BlockBuilder& b = c.builder();
  std::vector<GraphValue> values;
  relax::Replacement copies;
  std::vector<relax::Expr> inputs;
  for (size_t i = 0; i < names.size(); ++i) {
    const relax::Expr input = c.input(i);
    if (i < wanted && !ops::gradient::carries_gradient(input->struct_info))
      c.fail(codes::wrong_node, c.name_of(i) + " is no tensor of floats, which alone have gradients");
    const relax::Var stand_in = relax::relax_var("at_" + std::to_string(i), input->struct_info);
    inputs.push_back(b.emit_output(input));
    copies[stand_in.get()] = inputs.back();
    values.push_back({.tensor = stand_in, .given_by = "the input of " + names[i]});
  }
  b.begin_scope();
  b.begin_dataflow();
  GraphValue made = c.graphs().convert_again(names, std::move(values), result);
  const relax::Expr part = b.end_scope(tensor_of(b, made));
  Backward backward(b, b.module());
  for (size_t i = 0; i < wanted; ++i) backward.want(inputs[i]);
  const CopiedBody body = backward.copy(part, std::move(copies)).value_or_throw();
  const auto* info = relax::as_tensor(body.result);
  if (!ops::gradient::carries_gradient(body.result->struct_info) || !info->shape)
    c.fail(codes::wrong_node, "'" + result + "' is no tensor of floats, which alone have gradients");

  const relax::Expr ones = c.call(ops::full, {ir::make<relax::ShapeExpr>(*info->shape), build::scalar(info->dtype, 1)});
  const auto differentiate = [&]() -> support::Status {
    TRY(backward.add(body.result, ones));
    return backward.run(body.bindings);
  };
  if (const support::Status done = differentiate(); !done.ok()) throw support::DiagnosticError(done.diagnostics());
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (!c.wants(i)) continue;
    const relax::Expr adjoint = backward.of(inputs[i]);
    c.set(i, adjoint ? adjoint : ops::gradient::zeros_like(b, inputs[i]).value_or_throw());
  }
}

const OperatorRow gradient_rows[] = {
    {"Gradient", {1}, 1, any_number, any_number, gradient, nullptr, "ai.onnx.preview.training", false, true},
};

}  // namespace

Table differentiate() { return gradient_rows; }

}  // namespace lathe::onnx::operators
