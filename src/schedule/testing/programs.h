// Small tensor programs that the tests of several primitives and rules share.
#pragma once

#include "schedule/schedule.h"

namespace lathe::schedule::testing {

struct Axis {
  std::string name;
  Expr extent;
  IterType type = IterType::spatial;
};

// Builds functions of elementwise blocks and reductions, block after block, each in its own loops.
class Builder {
 public:
  Buffer input(std::string name, std::vector<Expr> shape, DType dtype = DType::float32());
  Buffer output(std::string name, std::vector<Expr> shape, DType dtype = DType::float32());
  Buffer inner(std::string name, std::vector<Expr> shape, DType dtype = DType::float32());
  bool is_parameter(const Buffer& buffer) const {
    return std::find(parameters_.begin(), parameters_.end(), buffer) != parameters_.end();
  }
  Buffer inner(Buffer buffer);
  using Body = std::function<Expr(const std::vector<Expr>&)>;
  // to[i, j, …] = body(i, j, …) over all of `to`.
  void compute(const std::string& name, const Buffer& to, const Body& body);
  // to[spatial] = combine over `reduce` of body(spatial, reduce), from `identity`.
  using Combine = std::function<Expr(Expr, Expr)>;
  void reduce(const std::string& name, const Buffer& to, const std::vector<Axis>& reduce, const Body& body,
              const Combine& combine, Expr identity);
  void sum(const std::string& name, const Buffer& to, const std::vector<Axis>& reduce, const Body& body);
  void max(const std::string& name, const Buffer& to, const std::vector<Axis>& reduce, const Body& body);
  // The block of that name gets an annotation.
  void annotate(const std::string& block, const std::string& key, const ir::Value& value);
  void add(Stmt statement) { statements_.push_back(std::move(statement)); }
  Function build(std::vector<Var> scalars = {}) const;

 private:
  std::vector<Buffer> parameters_, inner_;
  std::vector<Stmt> statements_;
};

Expr f32(double value);

// The function that a script of one is.
Function from_text(const std::string& text);

// C[m, n] = sum over k of A[m, k] * B[k, n]
Function matmul(Expr m, Expr n, Expr k);
// D = relu(A @ B + bias), as three blocks
Function dense(Expr m, Expr n, Expr k);
// softmax over the last axis: blocks "max", "exp", "sum", "norm"
Function softmax(Expr rows, Expr columns);
// pad, convolution (weights "OHWI{n}o" when lanes > 0; what is padded is known to be zeros), bias, residual and relu
struct ConvShape {
  int64_t batch = 1, channels = 3, height = 8, width = 8, filters = 8, kernel = 3, stride = 1, padding = 1;
  int64_t lanes = 0;
  bool epilogue = true;
  bool depthwise = false;
};
Function conv2d(const ConvShape& shape);

}  // namespace lathe::schedule::testing
