"""What can be shown of integer expressions.

    analyzer = lathe.arith.Analyzer()
    analyzer.bind(i, lathe.ir.Range(0, 64))
    analyzer.can_prove(i // 8 < 8)

Intervals of what expressions take (int_set.py), indices that split and fuse loop variables (iter_map.py), and linear
forms and the bounds that conditions give (linear.py).
"""

from ..names import refuser
from .analyzer import Analyzer, ConstIntBound, ModularSet
from .int_set import (
    IntervalSet,
    IntSet,
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
    neg_inf,
    pos_inf,
    union_lower_bound,
)
from .iter_map import (
    IterMapExpr,
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
)
from .linear import deduce_bound, detect_clip_bound, detect_common_subexpr, detect_linear_equation

__all__ = [
    "Analyzer", "ConstIntBound", "ModularSet",
    "IntSet", "IntervalSet", "estimate_region_lower_bound", "estimate_region_strict_bound",
    "estimate_region_upper_bound", "neg_inf", "pos_inf", "union_lower_bound",
    "IterMapExpr", "IterMapLevel", "IterMapResult", "IterMark", "IterSplitExpr", "IterSumExpr", "detect_iter_map",
    "inverse_affine_iter_map", "iter_map_simplify", "normalize_iter_map_to_expr",
    "deduce_bound", "detect_clip_bound", "detect_common_subexpr", "detect_linear_equation",
]  # fmt: skip

__getattr__ = refuser("lathe.arith", globals())
