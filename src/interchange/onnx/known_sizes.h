// What is known of sizes while a model is read: the bounds of its symbols, and sizes that have to be the same.
#pragma once

#include "arith/analyzer.h"
#include "relax/dim_sizes.h"

namespace lathe::onnx {

// The bounds of symbols, by what is told of them.
class SymbolBounds {
 public:
  void tell(const ir::Var& symbol, const relax::DimSizes& sizes);
  // Whether the integer is at least that for all values of its symbols.
  bool at_least(const ir::Expr& e, int64_t bound) const;
  // The same integer in a simpler form for the sizes that symbols have.
  ir::Expr simplified(const ir::Expr& e) const;

 private:
  mutable arith::Analyzer analyzer_;  // remembers what it has looked up
};

// Sizes that a model computes and a reshape requires to be others, which tensors have: what comes after is about these.
class SameSizes {
 public:
  void add(const ir::Expr& computed, const ir::Expr& own);
  // The size that it has to be, or itself.
  ir::Expr own(const ir::Expr& size) const;

 private:
  std::vector<std::pair<ir::Expr, ir::Expr>> pairs_;
};

// What a node sees of both; the second is written by reshapes.
struct KnownSizes {
  const SymbolBounds* bounds = nullptr;
  SameSizes* same = nullptr;
};

}  // namespace lathe::onnx
