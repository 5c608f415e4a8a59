#include "lower/program/scalars.h"

#include "ir/match.h"
#include "ir/visit.h"
#include "lower/codes.h"
#include "support/mutation.h"

namespace lathe::lower {

LATHE_FAULT(write_program_swaps_scalars, "lower_test", "shape arithmetic takes its operands the wrong way round");

using abi::Opcode;

bool Scalars::known(const ir::Expr& e) const {
  for (const ir::Var& var : ir::free_vars(e))
    if (!bound(var)) return false;
  return true;
}

support::Result<uint32_t> Scalars::binary(Opcode opcode, const ir::Expr& a, const ir::Expr& b) {
  uint32_t left = TRY(operand(a)), right = TRY(operand(b));
  if (support::flip(write_program_swaps_scalars)) std::swap(left, right);
  const uint32_t result = function_.reg(abi::ValueKind::scalar);
  function_.emit(opcode, {result, left, right});
  return result;
}

support::Result<uint32_t> Scalars::operand(const ir::Expr& e) {
  if (const auto value = ir::as_int(e)) return program_.immediate(*value);
  if (const auto it = computed_.find(e); it != computed_.end()) return it->second;
  using R = support::Result<uint32_t>;
  R result = ir::match(
      e,
      [&](const ir::VarNode& var) -> R {
        const auto it = registers_.find(&var);
        if (it != registers_.end()) return it->second;
        return support::Diagnostic{.code = codes::unbound_dimension,
                                   .message = "the symbolic dimension '" + var.name + "' is not bound by any input"};
      },
      [&](const ir::Cast& cast) -> R { return operand(cast.value); },
      [&](const ir::Add& n) -> R { return binary(Opcode::scalar_add, n.a, n.b); },
      [&](const ir::Sub& n) -> R { return binary(Opcode::scalar_subtract, n.a, n.b); },
      [&](const ir::Mul& n) -> R { return binary(Opcode::scalar_multiply, n.a, n.b); },
      [&](const ir::FloorDiv& n) -> R { return binary(Opcode::scalar_floor_divide, n.a, n.b); },
      [&](const ir::FloorMod& n) -> R { return binary(Opcode::scalar_floor_modulo, n.a, n.b); },
      [&](const ir::Min& n) -> R { return binary(Opcode::scalar_minimum, n.a, n.b); },
      [&](const ir::Max& n) -> R { return binary(Opcode::scalar_maximum, n.a, n.b); },
      [&](const ir::EQ& n) -> R { return binary(Opcode::scalar_equal, n.a, n.b); },
      [&](const ir::NE& n) -> R { return binary(Opcode::scalar_not_equal, n.a, n.b); },
      [&](const ir::LT& n) -> R { return binary(Opcode::scalar_less, n.a, n.b); },
      [&](const ir::LE& n) -> R { return binary(Opcode::scalar_less_equal, n.a, n.b); },
      [&](const ir::GT& n) -> R { return binary(Opcode::scalar_less, n.b, n.a); },
      [&](const ir::GE& n) -> R { return binary(Opcode::scalar_less_equal, n.b, n.a); },
      [&](const ir::And& n) -> R { return binary(Opcode::scalar_and, n.a, n.b); },
      [&](const ir::Or& n) -> R { return binary(Opcode::scalar_or, n.a, n.b); },
      [&](const ir::Not& n) -> R { return binary(Opcode::scalar_equal, n.a, ir::boolean(false)); },
      [&](const ir::Select& n) -> R {
        const uint32_t condition = TRY(operand(n.condition)), a = TRY(operand(n.true_value));
        const uint32_t b = TRY(operand(n.false_value));
        const uint32_t reg = function_.reg(abi::ValueKind::scalar);
        function_.emit(Opcode::scalar_select, {reg, condition, a, b});
        return reg;
      },
      [&](const ir::ExprNode& other) -> R {
        return support::Diagnostic{.code = codes::shape_arithmetic,
                                   .message = "a shape may not be computed by " + std::string(other.node_class().name)};
      });
  if (result.ok()) computed_[e] = *result;
  return result;
}

}  // namespace lathe::lower
