// Tensor expressions: a tensor is a placeholder, or computed element by element from others.
#pragma once

#include <functional>

#include "ir/build.h"
#include "tir/stmt.h"

namespace lathe::te {

using ir::Expr;
using ir::IterVar;
using ir::Var;

struct OperationNode;

// A tensor of a tensor expression: the buffer it will live in, and the operation that computes it (null for a
// placeholder). `tensor(i, j)` is the element there, as an expression.
struct Tensor {
  ir::Buffer buffer;
  std::shared_ptr<const OperationNode> op;

  const std::vector<Expr>& shape() const { return buffer->shape; }
  ir::DType dtype() const { return buffer->dtype; }
  size_t ndim() const { return buffer->shape.size(); }
  Expr operator()(std::vector<Expr> indices) const { return ir::load(buffer, std::move(indices)); }
};

// How a tensor is computed: body[k] is the element of output k at `axis`; a body may be a Reduce (then every body is).
// An extern operation has a statement instead, over whole buffers.
struct OperationNode {
  std::string name;
  std::string tag;
  ir::Attributes attrs;
  std::vector<Tensor> inputs;  // every tensor that the bodies read
  std::vector<ir::Buffer> outputs;
  std::vector<IterVar> axis;  // spatial, one a dimension
  std::vector<IterVar> reduce_axis;
  std::vector<Expr> body;
  tir::Stmt extern_body;
};

// A tensor given from outside.
Tensor placeholder(std::vector<Expr> shape, ir::DType dtype = ir::DType::float32(), std::string name = "placeholder");
// The tensor whose element at (i, j, …) is body(i, j, …). `inputs` are the tensors the body reads.
using Body = std::function<Expr(const std::vector<Expr>& indices)>;
Tensor compute(std::vector<Expr> shape, const Body& body, std::vector<Tensor> inputs, std::string name = "compute",
               std::string tag = "", ir::Attributes attrs = {});
// Several outputs of one shape computed together (argmax and the like): one body a dtype.
std::vector<Tensor> compute_all(std::vector<Expr> shape,
                                const std::function<std::vector<Expr>(const std::vector<Expr>&)>& body,
                                std::vector<Tensor> inputs, std::string name = "compute");
// A tensor written by a statement over whole buffers; `build` gets the input and output buffers.
std::vector<Tensor> extern_op(std::vector<std::pair<std::vector<Expr>, ir::DType>> outputs, std::vector<Tensor> inputs,
                              const std::function<tir::Stmt(const std::vector<ir::Buffer>& inputs,
                                                            const std::vector<ir::Buffer>& outputs)>& build,
                              std::string name = "extern");

// An axis to reduce over, [min, min + extent).
IterVar reduce_axis(Expr min, Expr extent, std::string name = "k");
Expr sum(Expr source, std::vector<IterVar> axis, Expr init = {});
Expr prod(Expr source, std::vector<IterVar> axis);
Expr max(Expr source, std::vector<IterVar> axis);  // NaN propagates
Expr min(Expr source, std::vector<IterVar> axis);
// Of floats that are no NaN; -inf where there is none. One instruction less a vector on x86 than `max`.
Expr max_of_numbers(Expr source, std::vector<IterVar> axis);
// A reducer of several values at once; see CommReducer.
ir::CommReducer comm_reducer(
    const std::function<std::vector<Expr>(const std::vector<Expr>& lhs, const std::vector<Expr>& rhs)>& combine,
    const std::function<std::vector<Expr>(const std::vector<ir::DType>&)>& identity, std::vector<ir::DType> dtypes);

// The function computing `outputs` from `inputs`: parameters are the inputs, then the outputs, one block a computed
// tensor, intermediate tensors allocated in the root block. Symbolic dimensions that no parameter's shape binds alone
// become scalar parameters after the buffers.
tir::Function create_prim_func(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                               std::vector<Var> scalars = {}, ir::Attributes attrs = {});

}  // namespace lathe::te
