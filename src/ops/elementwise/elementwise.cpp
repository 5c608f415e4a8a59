#include "ops/elementwise/elementwise.h"

#include "support/mutation.h"

namespace lathe::ops {

LATHE_FAULT(ops_binary_operands, "ops_test", "an operator of two operands takes them the wrong way round");

std::string te_name(std::string_view operator_name) {
  return std::string(operator_name.substr(operator_name.rfind('.') + 1));
}

Operator unary(std::string_view name, DTypeSet dtypes, UnaryScalar f, std::string_view reference,
               relax::Gradient gradient) {
  return {.name = name,
          .inputs = {{"x"}},
          .infer = relax::same_type_as_input(dtypes),
          .meaning = relax::TeExpression(
              [name, f](const LowerContext& c) { return std::vector{te::topi::map(c.tensor(0), f, te_name(name))}; }),
          .fusion = FusionKind::elementwise,
          .gradient = std::move(gradient),
          .reference = reference};
}

Operator binary(std::string_view name, DTypeSet dtypes, BinaryScalar f, std::string_view reference, bool is_predicate,
                relax::Gradient gradient) {
  return {.name = name,
          .inputs = {{"a"}, {"b"}},
          .infer = [dtypes, is_predicate](const InferContext& c) -> Result<StructInfo> {
            TRY(relax::check_dtype(c, 0, dtypes));
            TRY(relax::check_same_dtype(c, 0, 1));
            return relax::broadcast_arguments(c, is_predicate ? DType::boolean() : c.tensor(0)->dtype);
          },
          .meaning = relax::TeExpression([name, f](const LowerContext& c) {
            return std::vector{te::topi::map(
                {c.tensor(0), c.tensor(1)}, *c.output().shape,
                [&](const std::vector<Expr>& v) {
                  const bool swapped = support::flip(ops_binary_operands);
                  return swapped ? f(v[1], v[0]) : f(v[0], v[1]);
                },
                te_name(name))};
          }),
          .fusion = FusionKind::broadcast,
          .gradient = std::move(gradient),
          .reference = reference};
}

}  // namespace lathe::ops
