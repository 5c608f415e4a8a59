// Expressions back from an affine map: its indices rebuilt, and its inverse.
#include "arith/affine.h"
#include "arith/codes.h"

namespace lathe::arith {
namespace {

using namespace ir;
using support::Result;

// The digit of `source_value`.
Expr digit_of(const Expr& source_value, const AffineDigit& d, const Expr& source_extent, Analyzer& analyzer) {
  const Expr quotient = floordiv(source_value, d.lower);
  const bool top = analyzer.can_prove(le(source_extent, analyzer.simplify(d.lower * d.extent)));
  return top ? quotient : floormod(quotient, d.extent);
}

}  // namespace

std::vector<Expr> normalize(const AffineMap& map, Analyzer& analyzer) {
  const Analyzer::Scope scope(analyzer);
  std::vector<Expr> values;
  const auto value_of = [&](const AffineSum& sum) {
    Expr total = sum.base ? sum.base : int64(0);
    for (const AffineDigit& d : sum.digits)
      total = total + digit_of(values[d.source], d, map.sources[d.source].extent, analyzer) * d.scale;
    return total;
  };
  for (const AffineSource& source : map.sources) {
    if (source.var) {
      analyzer.bind(source.var, Range{source.min, source.extent});
      values.push_back(source.var - source.min);
    } else {
      values.push_back(value_of(source.fused));
    }
  }
  std::vector<Expr> result;
  for (const AffineSum& sum : map.indices) result.push_back(analyzer.simplify(value_of(sum)));
  return result;
}

Result<std::vector<std::pair<Var, Expr>>> inverse(const AffineMap& map, const std::vector<Expr>& outputs,
                                                  Analyzer& analyzer) {
  support::require(outputs.size() == map.indices.size(), "an inverse takes one value an index");
  if (!map.injective)
    return support::Diagnostic{.code = code::not_injective,
                               .message = "the indices do not determine every loop variable, so they have no inverse"};
  const Analyzer::Scope scope(analyzer);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const auto* v = outputs[i].as<VarNode>();
        v && map.surjective && !map.indices[i].digits.empty() && is_int(map.indices[i].digits.back().scale, 1))
      analyzer.bind(Var(v), Range{map.indices[i].base, map.extents[i]});

  std::vector<Expr> values(map.sources.size());
  const auto distribute = [&](const AffineSum& sum, const Expr& value) {
    for (size_t k = 0; k < sum.digits.size(); ++k) {
      const AffineDigit& d = sum.digits[k];
      // What lies below a scale is never as large as it, with gaps between the scales or without.
      const Expr below = k > 0 ? floormod(value, sum.digits[k - 1].scale) : value;
      const Expr digit = floordiv(below, d.scale);
      const Expr part = digit * d.lower;
      values[d.source] = values[d.source] ? values[d.source] + part : part;
    }
  };
  for (size_t i = 0; i < outputs.size(); ++i)
    distribute(map.indices[i], analyzer.simplify(outputs[i] - map.indices[i].base));
  // Later sources are made of earlier ones.
  for (size_t s = map.sources.size(); s-- > 0;)
    if (!map.sources[s].var && values[s]) distribute(map.sources[s].fused, analyzer.simplify(values[s]));

  std::vector<std::pair<Var, Expr>> result;
  for (size_t s = 0; s < map.sources.size(); ++s) {
    const AffineSource& source = map.sources[s];
    if (!source.var) continue;
    const Expr value = values[s] ? values[s] + source.min : source.min;
    result.emplace_back(source.var, analyzer.simplify(value));
  }
  return result;
}

}  // namespace lathe::arith
