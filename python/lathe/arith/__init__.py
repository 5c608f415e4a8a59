"""What can be shown of integer expressions.

    analyzer = lathe.arith.Analyzer()
    analyzer.bind(i, lathe.ir.Range(0, 64))
    analyzer.can_prove(i // 8 < 8)

Intervals of what expressions take (int_set.py), indices that split and fuse loop variables (iter_map.py) and their
division by the inner ones (subspace.py), linear forms and the bounds that conditions give (linear.py), and systems of
linear equations and inequalities, solved (int_solver.py).
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
from .int_solver import (
    IntConstraints,
    IntConstraintsTransform,
    IntGroupBounds,
    solve_linear_equations,
    solve_linear_inequalities,
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
from .subspace import normalize_to_iter_sum, subspace_divide

__all__ = [
    "Analyzer", "ConstIntBound", "ModularSet",
    "IntSet", "IntervalSet", "estimate_region_lower_bound", "estimate_region_strict_bound",
    "estimate_region_upper_bound", "neg_inf", "pos_inf", "union_lower_bound",
    "IterMapExpr", "IterMapLevel", "IterMapResult", "IterMark", "IterSplitExpr", "IterSumExpr", "detect_iter_map",
    "inverse_affine_iter_map", "iter_map_simplify", "normalize_iter_map_to_expr",
    "normalize_to_iter_sum", "subspace_divide",
    "IntConstraints", "IntConstraintsTransform", "IntGroupBounds", "solve_linear_equations",
    "solve_linear_inequalities", "deduce_bound", "detect_clip_bound", "detect_common_subexpr", "detect_linear_equation",
]  # fmt: skip

__getattr__ = refuser("lathe.arith", globals())
