// Weights that constants determine though they are not computed yet: what is scaled, turned and packed is computed in
// one go, so that hundreds of megabytes are written once.
#pragma once

#include "graph/rewrite_bindings.h"

namespace lathe::graph {

// Constants, and variables that a function makes of them by views, permutations and products with other constants, as
// large as what they are made of.
class ConstantWeights {
 public:
  explicit ConstantWeights(const Function& function);
  bool has(const Expr& e) const { return e && (e.is<Constant>() || vars_.count(e.get())); }

 private:
  std::unordered_set<const ir::Node*> vars_;
};

// The variables that are products of a constant and what is computed before them, and the kernels of convolutions
// without groups and nothing else.
std::unordered_set<const ir::Node*> scaled_kernels(const Function& function);

}  // namespace lathe::graph
