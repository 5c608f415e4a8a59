#include "interchange/onnx/known_sizes.h"

#include "ir/structural.h"

namespace lathe::onnx {

void SymbolBounds::tell(const ir::Var& symbol, const relax::DimSizes& sizes) {
  static_assert(relax::DimSizes::unlimited == arith::ConstIntBound::positive_infinity);
  analyzer_.update(symbol, arith::ConstIntBound{sizes.least, sizes.most});
}

bool SymbolBounds::at_least(const ir::Expr& e, int64_t bound) const {
  if (const auto value = ir::as_int(e)) return *value >= bound;
  return analyzer_.can_prove_greater_equal(e, bound);
}

ir::Expr SymbolBounds::simplified(const ir::Expr& e) const { return analyzer_.simplify(e); }

void SameSizes::add(const ir::Expr& computed, const ir::Expr& own) { pairs_.emplace_back(computed, own); }

ir::Expr SameSizes::own(const ir::Expr& size) const {
  if (ir::as_int(size)) return size;
  for (const auto& [computed, own] : pairs_)
    if (ir::structural_equal(computed, size)) return own;
  return size;
}

}  // namespace lathe::onnx
