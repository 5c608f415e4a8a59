// Affine (iterator) maps: index expressions that split and fuse loop variables, as `io*32 + ii` or `f // 7, f % 7`.
//
// Every index is a sum of digits of sources. A source is a loop variable, or a fusion: a sum of digits of earlier
// sources that counts 0, 1, 2, … without gaps. A digit (source // lower) % extent is scaled by `scale`.
#pragma once

#include "arith/int_set.h"
#include "support/result.h"

namespace lathe::arith {

struct AffineDigit {
  size_t source = 0;  // index into AffineMap::sources
  Expr lower, extent, scale;
};

struct AffineSum {
  std::vector<AffineDigit> digits;  // largest scale first
  Expr base;
};

struct AffineSource {
  Var var;  // a loop variable, counted from `min`; or null: a fusion
  Expr min;
  AffineSum fused;
  Expr extent;  // how many values it takes (a predicate may cut a fusion's)
};

struct AffineMap {
  std::vector<AffineSource> sources;
  std::vector<AffineSum> indices;
  // The values of index i are base_i + stride_i * [0, extents[i]), every one taken, where `surjective`.
  std::vector<Expr> extents;
  bool injective = false;   // different points of the domain have different indices
  bool surjective = false;  // the indices take every value of a box, independently of each other
  bool bijective() const { return injective && surjective; }
};

// The map from the domain (loop variables) to `indices`. `predicate` (null: none) says which points of the domain
// count; bounds like `io*32 + ii < n` on a fusion cut it. Refuses with the reason an index that is not affine or whose
// digits overlap (i + j).
support::Result<AffineMap> detect_affine(const std::vector<Expr>& indices, const Domain& domain, const Expr& predicate,
                                         Analyzer& analyzer);
// The map's indices as expressions in the simplest form that the map's structure gives.
std::vector<Expr> normalize(const AffineMap& map, Analyzer& analyzer);
// The domain's variables as expressions of index values `outputs`, where the map is injective.
support::Result<std::vector<std::pair<Var, Expr>>> inverse(const AffineMap& map, const std::vector<Expr>& outputs,
                                                           Analyzer& analyzer);

}  // namespace lathe::arith
