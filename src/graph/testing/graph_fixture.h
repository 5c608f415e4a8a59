// What the tests of graph passes share: small graphs built in a line each, their operators by name, and the graph
// oracle before and after a pass.
#pragma once

#include "ir/pass.h"
#include "relax/block_builder.h"
#include "target/target.h"

namespace lathe::graph::testing {

using relax::Expr;
using Extents = std::vector<int64_t>;

// A function "main" under construction. Inputs come before the first call.
class Graph {
 public:
  Expr input(const std::string& name, std::vector<ir::Expr> shape, ir::DType dtype = ir::DType::float32());
  Expr input(const std::string& name, const Extents& shape, ir::DType dtype = ir::DType::float32());
  Expr call(const relax::Operator& op, std::vector<Expr> args, relax::AttributesRef attributes = {});
  // Emits what is no operator's call.
  Expr emit(Expr value);
  // For calls of tensor programs, behind the inputs.
  relax::BlockBuilder& builder();
  ir::IRModule finish(Expr result);
  ir::IRModule finish(std::vector<Expr> results);

 private:
  relax::BlockBuilder builder_;
  std::vector<relax::Var> params_;
  bool begun_ = false;
};

// Constants: of these values, of one value everywhere, and of random values in [low, high].
Expr values(const Extents& shape, const std::vector<double>& elements, ir::DType dtype = ir::DType::float32());
Expr filled(const Extents& shape, double value, ir::DType dtype = ir::DType::float32());
Expr weights(const Extents& shape, uint64_t seed, double low = -1, double high = 1);
Expr shape(const Extents& extents);

// The operators that "main" calls, in order; a call of a function is the operators of its body, as "[add nn.relu]", an
// item of a tuple is "item".
std::vector<std::string> calls(const ir::IRModule& module);
// The first call of the operator in "main", or null.
const relax::Call* find_call(const ir::IRModule& module, std::string_view op);
// The constant that "main" returns, or null.
const relax::Constant* constant_result(const ir::IRModule& module);

// The context of passes in tests: constants are folded by the graph oracle.
ir::PassContext context();

// A pass that chooses by the target, for vectors of four floats.
ir::Pass for_four_lanes(support::Result<ir::IRModule> (*pass)(ir::IRModule, const target::Target&,
                                                              const ir::PassContext&));

// The pass makes of the programs in x_test.txt what is expected there, and "main" computes the same; `test` is the
// __FILE__ of x_test.cpp.
void expect_text(const ir::Pass& pass, const char* test);

// How the results of two modules differ on random inputs, every symbolic extent being 1, 2, 7 and 0 in turn; empty when
// they agree within `tolerance` of the larger of 1 and the value: to the bit where that is 0. A second module that is
// not well formed differs too, and so does one that accepts inputs which the first refuses.
std::string difference(const ir::IRModule& before, const ir::IRModule& after, double tolerance = 0);

}  // namespace lathe::graph::testing
