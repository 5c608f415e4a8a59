#include "arith/linear.h"

#include "arith/knowledge.h"
#include "ir/visit.h"

namespace lathe::arith {

using namespace ir;

std::optional<LinearForm> linear_coefficients(const Expr& e, std::span<const Var> vars, Analyzer& analyzer) {
  if (!e->dtype.is_scalar() || !e->dtype.is_integer()) return std::nullopt;
  Knowledge& known = analyzer.knowledge();
  Sum rest = to_sum(known, analyzer.simplify(e));
  if (rest.overflow) return std::nullopt;
  LinearForm form;
  for (const Var& v : vars) {
    Sum multiples, others;
    split_by(known, rest, v, multiples, others);
    if (multiples.overflow || others.overflow) return std::nullopt;
    form.coefficients.push_back(to_expr(known, multiples));
    rest = std::move(others);
  }
  form.rest = to_expr(known, rest);
  const auto mentions = [&](const Expr& part) {
    return std::any_of(vars.begin(), vars.end(), [&](const Var& v) { return uses_var(part, v); });
  };
  if (mentions(form.rest) || std::any_of(form.coefficients.begin(), form.coefficients.end(), mentions))
    return std::nullopt;
  return form;
}

}  // namespace lathe::arith
