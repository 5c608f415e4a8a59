#include "te/tensor.h"

#include "ir/visit.h"
#include "te/codes.h"

namespace lathe::te {

using ir::DType;
using ir::IterType;

namespace {

std::vector<IterVar> axes_of(const std::vector<Expr>& shape) {
  std::vector<IterVar> axis;
  for (size_t d = 0; d < shape.size(); ++d)
    axis.push_back(ir::make<ir::IterVarNode>(ir::Range{ir::int64(0), shape[d]}, ir::var("i" + std::to_string(d)),
                                             IterType::spatial));
  return axis;
}

std::vector<Expr> vars_of(const std::vector<IterVar>& axis) {
  std::vector<Expr> vars;
  for (const IterVar& iter : axis) vars.push_back(iter->var);
  return vars;
}

std::vector<Expr> as_index(std::vector<Expr> shape) {
  for (Expr& extent : shape) extent = ir::cast(DType::int64(), std::move(extent));
  return shape;
}

[[noreturn]] void refuse(support::Code code, std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = code, .message = std::move(message)});
}

// A body is one Reduce, or has none inside.
void check_reduce_is_outermost(const std::string& name, const Expr& body) {
  const auto* outer = body.as<ir::Reduce>();
  ir::pre_order(body, [&](const ir::NodeRef& n) {
    if (n->node_class().family != "expr") return true;
    if (n.as<ir::Reduce>() && n.as<ir::Reduce>() != outer)
      refuse(codes::nested_reduce, "the body of '" + name +
                                       "' has a reduction inside an expression; compute the "
                                       "reduction as a tensor of its own");
    return true;
  });
}

}  // namespace

Tensor placeholder(std::vector<Expr> shape, DType dtype, std::string name) {
  return {ir::buffer(std::move(name), as_index(std::move(shape)), dtype), nullptr};
}

static std::vector<Tensor> tensors_of(OperationNode operation, const std::vector<Expr>& shape) {
  const bool several = operation.body.size() > 1;
  for (size_t k = 0; k < operation.body.size(); ++k) {
    const Expr& body = operation.body[k];
    check_reduce_is_outermost(operation.name, body);
    const auto* reduce = body.as<ir::Reduce>();
    const auto* first = operation.body[0].as<ir::Reduce>();
    if (!reduce != !first || (reduce && reduce->axis != first->axis))
      refuse(codes::reduce_mismatch, "the bodies of '" + operation.name + "' do not reduce over the same axes");
    if (reduce) operation.reduce_axis = reduce->axis;
    operation.outputs.push_back(
        ir::buffer(several ? operation.name + "_v" + std::to_string(k) : operation.name, shape, body->dtype));
  }
  const auto shared = std::make_shared<const OperationNode>(std::move(operation));
  std::vector<Tensor> tensors;
  for (const ir::Buffer& buffer : shared->outputs) tensors.push_back({buffer, shared});
  return tensors;
}

Tensor compute(std::vector<Expr> shape, const Body& body, std::vector<Tensor> inputs, std::string name, std::string tag,
               ir::Attributes attrs) {
  shape = as_index(std::move(shape));
  OperationNode operation{.name = std::move(name), .tag = std::move(tag), .attrs = std::move(attrs)};
  operation.inputs = std::move(inputs);
  operation.axis = axes_of(shape);
  operation.body = {body(vars_of(operation.axis))};
  return tensors_of(std::move(operation), shape)[0];
}

std::vector<Tensor> compute_all(std::vector<Expr> shape,
                                const std::function<std::vector<Expr>(const std::vector<Expr>&)>& body,
                                std::vector<Tensor> inputs, std::string name) {
  shape = as_index(std::move(shape));
  OperationNode operation{.name = std::move(name)};
  operation.inputs = std::move(inputs);
  operation.axis = axes_of(shape);
  operation.body = body(vars_of(operation.axis));
  return tensors_of(std::move(operation), shape);
}

std::vector<Tensor> extern_op(std::vector<std::pair<std::vector<Expr>, DType>> outputs, std::vector<Tensor> inputs,
                              const std::function<tir::Stmt(const std::vector<ir::Buffer>& inputs,
                                                            const std::vector<ir::Buffer>& outputs)>& build,
                              std::string name) {
  OperationNode operation{.name = std::move(name)};
  operation.inputs = std::move(inputs);
  for (size_t k = 0; k < outputs.size(); ++k)
    operation.outputs.push_back(
        ir::buffer(outputs.size() > 1 ? operation.name + "_v" + std::to_string(k) : operation.name,
                   as_index(std::move(outputs[k].first)), outputs[k].second));
  std::vector<ir::Buffer> input_buffers;
  for (const Tensor& input : operation.inputs) input_buffers.push_back(input.buffer);
  operation.extern_body = build(input_buffers, operation.outputs);
  const auto shared = std::make_shared<const OperationNode>(std::move(operation));
  std::vector<Tensor> tensors;
  for (const ir::Buffer& buffer : shared->outputs) tensors.push_back({buffer, shared});
  return tensors;
}

}  // namespace lathe::te
