// A model run by the interpreters of both IRs instead of compiled code: the target `interp`, and the oracle of
// `lathe verify`.
#pragma once

#include "relax/expr.h"
#include "support/result.h"

namespace lathe::driver {

// The model with each operator as one tensor program, neither fused nor scheduled nor changed by any other pass.
support::Result<ir::IRModule> one_program_an_operator(ir::IRModule module);

// An input or output as its struct info tells; states are neither (lower/states).
struct Signature {
  std::vector<relax::Var> inputs;
  std::vector<std::string> output_names;
  std::vector<relax::StructInfo> outputs;
};
Signature signature_of(const ir::IRModule& module);

class Interpreted {
 public:
  // The module as it was read. Diagnostic: driver-no-main.
  static support::Result<std::shared_ptr<const Interpreted>> make(ir::IRModule module);

  const Signature& signature() const { return signature_; }
  support::Result<std::vector<ir::TensorData>> run(const std::vector<ir::TensorData>& inputs) const;

 private:
  ir::IRModule module_;
  Signature signature_;
};
using InterpretedRef = std::shared_ptr<const Interpreted>;

}  // namespace lathe::driver
