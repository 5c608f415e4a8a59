// One function of the register program in the making: its bindings as instructions.
#pragma once

#include <unordered_set>

#include "ir/node_name.h"
#include "lower/legalize/versions.h"
#include "lower/program/program_parts.h"
#include "lower/program/scalars.h"
#include "relax/assert_op.h"
#include "relax/control.h"

namespace lathe::lower {

using Registers = std::vector<uint32_t>;  // of one value: a tuple has those of its items

class FunctionLowering {
 public:
  FunctionLowering(ProgramParts& parts, const std::string& name);
  support::Status run();

 private:
  using Status = support::Status;

  static support::Diagnostic refuse(const ir::NodeRef& at, std::string message);
  static std::string operator_prefix(const ir::NodeRef& at);  // "Gather: ", for what a check says

  // ---- signature ----
  static abi::PortSpec port(const std::string& name, const relax::TensorStructInfo& info);
  // The kind of a value that is one register and no tensor: a sequence or an optional.
  static std::optional<abi::ValueKind> collection_kind(const relax::StructInfo& info);
  Status declare_input(const relax::Var& param);
  void declare_states();
  Status declare_parameter(const relax::Var& param);
  void bind_symbols(const relax::StructInfo& info, const Registers& registers);
  Status check_input(const relax::Var& param);
  Status match(uint32_t reg, const relax::TensorStructInfo& info, const std::string& message, const std::string& node);
  Status finish_main(const relax::Expr& result);
  Status finish(const relax::Expr& result);
  bool written_in_place(const relax::Expr& result, size_t index) const;

  // ---- values ----
  uint32_t tensor_register(const relax::TensorStructInfo& info, const std::string& name);
  // The registers that a value of that struct info needs.
  support::Result<Registers> make_registers(const relax::StructInfo& info, const std::string& name);
  uint32_t constant_register(const relax::Constant& constant);
  support::Result<Registers> values(const relax::Expr& e);
  support::Result<uint32_t> scalar_register(const ir::Expr& e);
  Status push_dims(std::vector<uint32_t>& operands, const std::vector<ir::Expr>& shape);
  support::Result<uint32_t> allocate(const relax::Var& var, int output, const relax::TensorStructInfo& info,
                                     const std::string& node);
  // A copy of the tensor in memory of its own, or in `storage`.
  // The memory of `from`, from element `first` on, under another shape, and the register whose memory a view lies in.
  support::Result<uint32_t> viewed(uint32_t from, const relax::TensorStructInfo& info, const std::string& name,
                                   const std::string& node, int64_t first = 0);
  // The memory of a value that parts are computed into, made when it is first asked for.
  support::Result<uint32_t> whole_register(const relax::Var& var, const std::string& node);
  uint32_t memory_of(uint32_t reg) const;
  support::Result<uint32_t> copied(uint32_t reg, const relax::TensorStructInfo& info, uint32_t storage = abi::absent);

  // ---- bindings ----
  Status step(const relax::Binding& binding);
  Status cast(const relax::MatchCast& cast, const relax::Binding& at);
  Status check(const relax::Assert& parts, const ir::NodeRef& at);
  Status check_extents(const relax::MatchCast& cast, const relax::ShapeExpr& extents, const relax::Binding& at);
  Status bind_integers(const relax::ShapeStructInfo& shape, uint32_t tensor, const std::string& node);
  Status call_kernel(const relax::VarBinding& bound, const relax::CallTir& parts);
  bool is_state_in_place(const relax::Expr& e) const;
  void emit_kernel(const std::string& name, const Registers& tensors, const std::vector<uint32_t>& scalars,
                   const std::string& node);
  // Whether a call with so many tensors and these scalars has the version's sizes, as an operand; nothing where it
  // never has.
  support::Result<std::optional<uint32_t>> fits_call(const Version& version, size_t tensors,
                                                     const std::vector<ir::Expr>& scalars);
  Status call_runtime_kernel(const relax::VarBinding& bound, const relax::Call& call,
                             const relax::RuntimeKernel& kernel);
  Status view(const relax::VarBinding& bound, const relax::Call& call);
  Status batch_part(const relax::VarBinding& bound, const relax::Call& call);
  Status joined_batch(const relax::VarBinding& bound, const relax::Call& call);

  // ---- control (lower_control.cpp) ----
  Status branch(const relax::VarBinding& bound, const relax::Branch& branch);
  Status loop(const relax::VarBinding& bound, const relax::Loop& loop);
  Status call_function(const relax::VarBinding& bound, const std::string& name, const std::vector<relax::Expr>& args);
  support::Result<Registers> arguments(const std::vector<relax::Expr>& args);
  Status emit_call(const std::string& name, const Registers& args, const Registers& results, const ir::NodeRef& at,
                   const std::string& node);
  Status stack(uint32_t into, uint32_t sequence, uint32_t count, const relax::TensorStructInfo& row,
               const std::string& node);

  // ---- sequences and optionals (lower_collection.cpp) ----
  // Whether the operator is one of theirs.
  support::Result<bool> collection(const relax::VarBinding& bound, const relax::Call& call, const relax::Operator& op);
  support::Result<uint32_t> position(const relax::Call& call, size_t i, const std::string& node);
  void check_position(uint32_t sequence, uint32_t position, bool may_be_end, const relax::Call& call);
  uint32_t scalar_tensor(uint32_t scalar, ir::DType dtype, const std::string& node);
  Status join(uint32_t into, uint32_t sequence, const relax::TensorStructInfo& element, bool new_axis,
              const relax::Call& call);
  Status split(uint32_t into, const relax::Call& call, const relax::TensorStructInfo& element, const std::string& node);

  // ---- strings (lower_strings.cpp) ----
  // Whether the operator is one that the program itself knows.
  support::Result<bool> strings(const relax::VarBinding& bound, const relax::Call& call, const relax::Operator& op);
  // The value of the outside that a parameter of the main function is, with numbers for its strings.
  Status take_strings(const relax::Var& param);
  // The register with strings for their numbers.
  uint32_t given_strings(uint32_t reg, const relax::StructInfo& info);

  uint32_t immediate(int64_t value) { return parts_.writer.immediate(value); }

  ProgramParts& parts_;
  const PlannedFunction& planned_;
  abi::FunctionWriter& function_;
  Scalars scalars_;
  std::vector<uint32_t> slots_;
  std::unordered_map<const ir::Node*, Registers> registers_;
  std::unordered_map<uint32_t, uint32_t> constants_;  // registers by the program's constant
  // Tensors whose memory lasts as long as anybody holds them: no arena, no slot, nothing of a caller's.
  std::unordered_set<uint32_t> lasting_;
  std::unordered_map<uint32_t, uint32_t> views_;
  std::unordered_map<const ir::Node*, uint32_t> wholes_;  // by the variable of the joined value
};

}  // namespace lathe::lower
