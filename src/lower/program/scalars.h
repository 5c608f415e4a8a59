// Shape arithmetic in the register program: integer expressions over symbolic dimensions become scalar instructions.
#pragma once

#include "abi/program_writer.h"
#include "ir/build.h"
#include "support/result.h"

namespace lathe::lower {

class Scalars {
 public:
  Scalars(abi::ProgramWriter& program, abi::FunctionWriter& function) : program_(program), function_(function) {}

  // The register that holds `var` from here on.
  void bind(const ir::Var& var, uint32_t reg) { registers_[var.get()] = reg; }
  bool bound(const ir::Var& var) const { return registers_.count(var.get()) != 0; }
  // Whether every variable in `e` is bound.
  bool known(const ir::Expr& e) const;
  // The operand (register or immediate) with the value of `e`; instructions are emitted where needed.
  support::Result<uint32_t> operand(const ir::Expr& e);

 private:
  support::Result<uint32_t> binary(abi::Opcode opcode, const ir::Expr& a, const ir::Expr& b);

  abi::ProgramWriter& program_;
  abi::FunctionWriter& function_;
  std::unordered_map<const ir::Node*, uint32_t> registers_;
  // Expressions computed already; kept alive so that their addresses stay theirs.
  std::unordered_map<ir::Expr, uint32_t> computed_;
};

}  // namespace lathe::lower
